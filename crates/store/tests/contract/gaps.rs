//! The ledger's ranges as rows.

use driftline_core::{
    timeline::{Gap, GapKind, Provisional},
    upstream_id::Key,
};
use driftline_store::{CommitMachine, commit_machine, machine};

use crate::world::{Store, World, on_both};

on_both!(what_stays_is_not_written_again);

fn gap(low: &str, high: &str, kind: GapKind) -> Gap {
    Gap {
        low: Key::from_stored(low),
        high: Key::from_stored(high),
        kind,
    }
}

#[test]
fn every_kind_comes_back_as_it_was() {
    let open = |history, tries, fill_requested| GapKind::Open {
        history,
        tries,
        fill_requested,
    };
    let provisional = |read_age_ms, tries| {
        GapKind::Provisional(Provisional {
            read_age_ms,
            from_ms: -5,
            until_ms: i64::MAX,
            tries,
        })
    };
    let highest = Key::highest();
    let all = vec![
        gap("", "0011", open(true, 0, true)),
        gap("0011", "0012", open(false, u32::MAX, false)),
        gap("0012", "0015", GapKind::Unrecoverable),
        gap("0015", "0201", provisional(0, 0)),
        gap("0201", "0301", provisional(86_400_000_000, 7)),
        gap(
            "0301",
            highest.as_str(),
            GapKind::PassedOver {
                read_age_ms: 15_000,
            },
        ),
    ];
    let fewer = vec![all[0].clone(), all[3].clone()];
    let other = vec![
        all[0].clone(),
        gap("0015", "0016", open(false, 1, true)),
        gap("a B~", "b", GapKind::Unrecoverable),
    ];
    on_both(|store| {
        let world = World::new(store, "home");
        let bystander = World::new(store, "bystander");
        put(&bystander, &all);
        for gaps in [&all, &fewer, &other, &Vec::new(), &all] {
            put(&world, gaps);
            let source = world.source;
            let loaded = world.read(move |tx| machine::load(tx, source));
            assert_eq!(loaded.ledger().gaps(), &gaps[..]);
        }
        let source = bystander.source;
        let loaded = bystander.read(move |tx| machine::load(tx, source));
        assert_eq!(loaded.ledger().gaps(), all);
    });
}

fn what_stays_is_not_written_again(store: &Store) {
    let world = World::new(store, "home");
    let one = gap("1", "2", GapKind::open());
    put(&world, std::slice::from_ref(&one));
    // A row that a save of the same ranges would overwrite or remove.
    world.write(|tx| Ok(tx.execute("update gap set from_ms = 77", &[])?));
    put(&world, &[one, gap("3", "4", GapKind::open())]);
    let marked = world.read(|tx| {
        let sql = "select low from gap where from_ms = 77";
        Ok(tx.query(sql, &[], |row| row.text(0))?)
    });
    assert_eq!(marked, ["1"]);
}

fn put(world: &World, gaps: &[Gap]) {
    let source = world.source;
    let mut machine = world.machine.clone();
    machine.restore_gaps(gaps.to_vec());
    world.write(move |tx| {
        commit_machine(
            tx,
            &CommitMachine {
                source,
                fence: None,
                machine: &machine,
            },
        )
    });
}
