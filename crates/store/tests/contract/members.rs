//! Members: leases that end by the database's clock, wishes that outlive them, and the number that rises
//! with what all are to notice.

use std::{collections::BTreeSet, thread, time::Duration};

use driftline_store::{
    Root, SourceId, Store, StoreError, Tx, database_clock,
    sharing::{
        change::{self, Change},
        member::{self, Beat, Beaten, MemberRow, Refusals},
    },
    source, source_lease,
};

use crate::world::{self, World, settings};

on_both!(
    a_database_clock_that_is_set_back_keeps_no_dead_member,
    a_member_joins_renews_and_leaves,
    a_name_is_one_runs_until_its_lease_ends,
    a_wish_to_drain_outlives_the_lease_and_the_row,
    what_all_are_to_notice_raises_the_number,
    leases_are_given_back_and_renewed_together,
);

/// No lease is longer than ten minutes.
const LONG_MS: i64 = 300_000;
const HOUR_MS: i64 = 3_600_000;

fn write<T: Send + 'static>(
    store: &Store,
    job: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
) -> T {
    world::write(store, Root::none(), job)
}

fn beat_of(name: &str, ttl_ms: i64) -> Beat {
    Beat {
        name: name.to_owned(),
        nonce: format!("{name}-1"),
        version: "1.2.3".to_owned(),
        share: 2,
        was_draining: false,
        refusals: Refusals::default(),
        sources: 3,
        buckets: 4,
        ttl_ms,
    }
}

fn is_draining(beaten: &Beaten) -> bool {
    matches!(
        beaten,
        Beaten::Renewed {
            is_draining: true,
            ..
        }
    )
}

fn beats(store: &Store, beat: Beat) -> Beaten {
    write(store, move |tx| member::beat(tx, &beat, false))
}

fn row(store: &Store, name: &str) -> Option<MemberRow> {
    let rows = write(store, member::list);
    rows.into_iter().find(|row| row.name == name)
}

fn current(store: &Store) -> Change {
    write(store, change::current)
}

fn a_database_clock_that_is_set_back_keeps_no_dead_member(store: &Store) {
    beats(store, beat_of("one", LONG_MS));
    let again = Beat {
        nonce: "another run".to_owned(),
        ..beat_of("one", LONG_MS)
    };
    assert_eq!(beats(store, again.clone()), Beaten::NameTaken);
    // As if the clock had been two hours ahead.
    let ahead = "update member set lease_until_ms = lease_until_ms + 7200000";
    write(store, move |tx| Ok(tx.execute(ahead, &[])?));
    assert_eq!(current(store).live, 0);
    assert!(matches!(beats(store, again), Beaten::Joined { .. }));
}

fn a_member_joins_renews_and_leaves(store: &Store) {
    let before = current(store);
    assert_eq!(before.live, 0);
    let joined = beats(store, beat_of("one", LONG_MS));
    assert_eq!(joined, Beaten::Joined { is_draining: false });
    let after = current(store);
    assert!(after.number > before.number && after.live == 1);
    let refusals = Refusals {
        sources: BTreeSet::from([SourceId::new(7)]),
        refreshing: true,
        ..Refusals::default()
    };
    let renewed = beats(
        store,
        Beat {
            refusals: refusals.clone(),
            ..beat_of("one", LONG_MS)
        },
    );
    let Beaten::Renewed {
        is_draining,
        change,
    } = renewed
    else {
        panic!("{renewed:?}");
    };
    assert_eq!((is_draining, change), (false, after));
    let row = row(store, "one").expect("a row");
    assert_eq!((row.share, row.sources, row.buckets), (2, 3, 4));
    assert_eq!((row.refusals, &*row.version), (refusals, "1.2.3"));
    let now_ms = write(store, |tx| Ok(database_clock::now_ms(tx)?));
    assert!((row.lease_until_ms - LONG_MS - now_ms).abs() < 60_000);
    assert!((row.since_ms - now_ms).abs() < 60_000 && row.left_ms.is_none());
    assert_eq!(current(store), after, "a renewal is no change");
    write(store, |tx| member::beat(tx, &beat_of("one", LONG_MS), true));
    assert!(current(store).number > after.number, "unless it says so");
    write(store, |tx| member::leave(tx, "one", "another run"));
    assert_eq!(current(store).live, 1);
    write(store, |tx| member::leave(tx, "one", "one-1"));
    let left = current(store);
    assert!(left.live == 0 && left.number > after.number);
    let row = self::row(store, "one").expect("it is shown for a while");
    assert!(row.left_ms.is_some() && row.sources == 0);
}

fn a_name_is_one_runs_until_its_lease_ends(store: &Store) {
    let second = |ttl_ms| Beat {
        nonce: "one-2".to_owned(),
        ..beat_of("one", ttl_ms)
    };
    beats(store, beat_of("one", LONG_MS));
    write(store, |tx| member::set_draining(tx, "one", true));
    assert_eq!(beats(store, second(LONG_MS)), Beaten::NameTaken);
    let renewed = beats(store, beat_of("one", 1));
    assert!(is_draining(&renewed));
    thread::sleep(Duration::from_millis(20));
    assert_eq!(current(store).live, 0);
    // A new start: the wish was for the run before.
    let joined = Beaten::Joined { is_draining: false };
    assert_eq!(beats(store, second(LONG_MS)), joined);
    assert_eq!(beats(store, beat_of("one", LONG_MS)), Beaten::NameTaken);
}

fn a_wish_to_drain_outlives_the_lease_and_the_row(store: &Store) {
    let wish = |is_draining| {
        write(store, move |tx| {
            member::set_draining(tx, "one", is_draining)
        })
    };
    assert_eq!(wish(true), None, "there is no such member");
    beats(store, beat_of("one", 1));
    let before = current(store).number;
    assert_eq!(wish(true), Some(true));
    assert!(current(store).number > before);
    assert_eq!(wish(true), Some(false));
    thread::sleep(Duration::from_millis(20));
    // The lease has ended: the row has not.
    let again = beats(store, beat_of("one", LONG_MS));
    assert!(is_draining(&again));
    // Rows of the long gone are swept when somebody joins, but wishes are kept for days.
    let ago = |name: &'static str, ms: i64| {
        write(store, move |tx| {
            let sql = "update member set lease_until_ms = lease_until_ms - $2 where name = $1";
            Ok(tx.execute(sql, &[&name, &ms])?)
        })
    };
    beats(store, beat_of("two", LONG_MS));
    ago("one", 4 * HOUR_MS);
    ago("two", 4 * HOUR_MS);
    beats(store, beat_of("three", LONG_MS));
    assert!(row(store, "two").is_none());
    assert!(row(store, "one").expect("it may not know yet").is_draining);
    ago("one", 8 * 24 * HOUR_MS);
    beats(store, beat_of("four", LONG_MS));
    assert!(row(store, "one").is_none());
    // It remembers.
    let remembers = Beat {
        was_draining: true,
        ..beat_of("one", LONG_MS)
    };
    assert_eq!(
        beats(store, remembers),
        Beaten::Joined { is_draining: true }
    );
    assert_eq!(wish(false), Some(true));
}

fn what_all_are_to_notice_raises_the_number(store: &Store) {
    let world = World::new(store, "home");
    let id = world.source;
    let mut number = current(store).number;
    let mut rises = |what: &str| {
        let now = current(store).number;
        assert!(now > number, "{what}");
        number = now;
    };
    World::new(store, "second");
    rises("a new source");
    write(store, move |tx| source::set_paused(tx, id, true));
    rises("a pause");
    let other = driftline_core::timeline::Settings {
        every_ms: 7,
        ..settings()
    };
    write(store, move |tx| source::set_settings(tx, id, &other));
    rises("settings");
    let token = source::TokenLocation::Environment("TOKEN".into());
    write(store, move |tx| source::set_token(tx, id, Some(&token)));
    rises("a token");
    let lease = write(store, move |tx| source_lease::claim(tx, id, "one", LONG_MS));
    let lease = lease.expect("a free source");
    write(store, move |tx| source_lease::release(tx, &lease));
    rises("a lease that is given back");
    world.remove(source::LastPosts::Remove);
    rises("a removal");
    assert!(!write(store, move |tx| source::set_paused(tx, id, true)));
    assert!(!write(store, move |tx| source_lease::release(tx, &lease)));
    assert_eq!(current(store).number, number, "nothing has changed");
}

fn leases_are_given_back_and_renewed_together(store: &Store) {
    let ids = ["a", "b", "c"].map(|name| World::new(store, name).source);
    let leases = ids.map(|id| {
        let lease = write(store, move |tx| source_lease::claim(tx, id, "one", LONG_MS));
        lease.expect("a free source")
    });
    let until = |at: usize| {
        let source = write(store, move |tx| source::by_id(tx, ids[at].id));
        source
            .expect("a source")
            .holding
            .map(|holding| holding.until_ms)
    };
    let renew = move |ttl_ms: i64, holder: &'static str| {
        write(store, move |tx| {
            source_lease::renew_held(tx, holder, &ids, ttl_ms)
        });
    };
    assert!(write(store, move |tx| source_lease::try_lock(tx, ids[0])));
    renew(9 * LONG_MS, "another");
    assert!((0..3).all(|at| until(at) == Some(leases[at].until_ms)));
    renew(2 * LONG_MS, "one");
    assert!((0..3).all(|at| until(at) > Some(leases[at].until_ms)));
    write(store, move |tx| source_lease::release(tx, &leases[1]));
    let two = write(store, move |tx| source_lease::release_all(tx, &leases));
    assert_eq!((two, until(0), until(1), until(2)), (2, None, None, None));
    renew(LONG_MS, "one");
    assert_eq!(until(0), None, "what was given back is not renewed");
}
