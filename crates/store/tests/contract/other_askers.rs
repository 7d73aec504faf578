//! What only other crates ask of the store: their statements are in the list because of this, and known
//! to be accepted by a distributed PostgreSQL.

use std::fs;

use driftline_core::{
    api::Api,
    quota::QuotaLedger,
    refresh::{AgeTable, RefreshObservation, RefreshPlan},
};
use driftline_db::testing::databases;
use driftline_store::{
    CredentialKey, InstanceId, LocalId, Root, Store, Target, Viewer,
    credential::{self, NewCredential, Quarantine},
    export, instance, local_ids, machine, quota,
    refresh::{
        ObservationReport, Shards, bands, due_by, growth_histories, learn, learned_state,
        learned_state_root, next_due_ms, overdue, pending_post, with_outbox,
    },
    source, touch,
};

use crate::world::{START_MS, World, open, posts, read, write};

on_both!(
    what_is_due_is_told_of_each_instance,
    what_is_known_of_an_instance_is_kept,
    a_credentials_quotas_and_quarantine_are_kept,
);

const LATER_MS: i64 = START_MS + 1_000_000_000;

fn instance_of(store: &Store) -> InstanceId {
    read(store, instance::all)[0].id
}

fn what_is_due_is_told_of_each_instance(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([2, 1]));
    let instance = instance_of(store);
    let all = (instance, Shards::ALL);
    let times = (START_MS, LATER_MS);
    let first = read(store, move |tx| {
        next_due_ms(tx, instance, Shards::ALL, START_MS)
    });
    let due = read(store, move |tx| due_by(tx, &[all], times));
    assert_eq!(due.get(&instance).copied(), first);
    assert_eq!(read(store, move |tx| due_by(tx, &[all, all], times)), due);
    let unknown = InstanceId::new(1_000);
    for instances in [vec![instance], vec![unknown, instance]] {
        let (asked, last) = (instances.clone(), instances.len() - 1);
        let states = read(store, move |tx| {
            bands(tx, &asked, &AgeTable::default(), LATER_MS)
        });
        let posts = |at: usize| states[at].iter().map(|band| band.posts).sum::<u64>();
        assert_eq!((0..=last).map(posts).sum::<u64>(), posts(last));
        assert_eq!(posts(last), 2);
        let behind = read(store, move |tx| overdue(tx, &instances, LATER_MS));
        assert_eq!((behind.len(), behind[last].overdue), (last + 1, 2));
        assert_eq!(behind.iter().map(|one| one.scheduled).sum::<u64>(), 2);
    }
    assert_eq!(read(store, |tx| with_outbox(tx, LATER_MS)), []);
    let none = read(store, |tx| {
        pending_post(tx, "https://sim.example/@ann/9", Viewer::Operator)
    });
    assert!(none.is_none());
}

fn what_is_known_of_an_instance_is_kept(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([2, 1]));
    let (source, instance) = (world.source, instance_of(store));
    assert_eq!(
        read(store, move |tx| source::key(tx, source.id)),
        Some(source)
    );
    let known = read(store, move |tx| instance::by_id(tx, instance));
    assert_eq!(known.map(|known| known.id), Some(instance));
    write(store, learned_state_root(instance), move |tx| {
        instance::set_batch_look_up(tx, instance, Some(true))
    });
    let has_it = read(store, move |tx| instance::has_batch_look_up(tx, instance));
    assert_eq!(has_it, Some(true));
    assert_eq!(
        read(store, move |tx| machine::lateness_of_others(tx, source)),
        []
    );
    let honoured = read(store, move |tx| machine::honoured_by(tx, instance));
    assert_eq!(honoured.len(), 1);
    assert!(read(store, move |tx| learned_state(tx, instance)).is_none());
    let learned = write(store, learned_state_root(instance), move |tx| {
        let report = ObservationReport {
            observation: &RefreshObservation::default(),
            offered_per_ms: 0.0,
            overdue: 0,
            now_ms: START_MS,
        };
        learn(tx, instance, &RefreshPlan::default(), &report)
    });
    let kept = read(store, move |tx| learned_state(tx, instance));
    assert_eq!(kept, Some(learned));
    let id = world.timeline()[0].post_id;
    let exported = read(store, move |tx| {
        export::post(tx, id, driftline_store::Viewer::Operator)
    });
    let name = exported.map(|post| post.upstream_id);
    assert_eq!(name.as_deref(), Some("2"));
    let growth = read(store, move |tx| {
        growth_histories(tx, instance, 0, LocalId::new(0), 10)
    });
    assert_eq!(growth.len(), 2);
    write(store, Root::none(), touch);
}

fn a_credentials_quotas_and_quarantine_are_kept(store: &Store) {
    let new = NewCredential {
        name: "one".into(),
        origin: "https://sim.example".into(),
        api: Api::Mastodon,
        token: None,
        monthly_posts: None,
    };
    let added = write(store, local_ids::root(), move |tx| {
        credential::add(tx, &new, 1)
    });
    let key: CredentialKey = added.expect("a credential");
    let root = || credential::root(key);
    let ledger = read(store, move |tx| quota::load(tx, key, "reads"));
    assert_eq!(ledger, QuotaLedger::default());
    write(store, root(), move |tx| {
        quota::store(tx, key, "reads", &QuotaLedger::default())
    });
    assert_eq!(read(store, quota::all).len(), 1);
    let quarantine = Quarantine {
        since_ms: 1,
        until_ms: 2,
        reason: "refused".into(),
    };
    let kept = quarantine.clone();
    write(store, root(), move |tx| {
        credential::quarantine(tx, key, &kept)
    });
    let known = read(store, move |tx| credential::by_key(tx, key));
    assert_eq!(known.and_then(|known| known.quarantine), Some(quarantine));
    assert!(write(store, root(), move |tx| credential::restore(tx, key)));
    assert!(!write(store, root(), move |tx| credential::restore(
        tx, key
    )));
}

/// Whether the store can be written is asked for where the disk may be full.
#[test]
fn a_touch_is_written_to_the_disk() {
    for fresh in databases() {
        let store = open(&fresh);
        write(&store, Root::none(), touch);
        if let Target::Sqlite { path } = &fresh.target {
            let name = path.file_name().expect("a file").display();
            let log = path.with_file_name(format!("{name}-wal"));
            let before = fs::read(&log).expect("a log");
            write(&store, Root::none(), touch);
            assert_ne!(fs::read(&log).expect("a log"), before);
        }
        store.close_blocking();
    }
}
