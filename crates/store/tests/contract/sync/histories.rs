//! A replica that has changes of another history of the store is recognised.

use std::{fs, path::Path};

use driftline_core::sync::LibraryState;
use driftline_db::testing::{Fresh, databases, is_distributed, postgres_database};
use driftline_store::{
    LocalAccountId, SecretUrl, Store, Target, backup, lineage, nonce,
    social::local_account,
    sync::{self, Cursor, Start},
    testing::open,
};

use super::{Replica, chunk, living, set_note, update_count};
use crate::{
    social::account,
    world::{START_MS, read, write},
};

on_both!(
    a_raised_epoch_makes_replicas_start_again,
    a_library_that_is_seen_before_or_after_its_objects_loses_nothing,
    devices_do_not_see_the_nonce_that_seals_cursors,
);

pub(super) fn start(store: &Store, account: LocalAccountId, cursor: &Cursor) -> Start {
    let cursor = cursor.clone();
    read(store, move |tx| sync::start(tx, account, Some(&cursor)))
}

pub(super) fn cursor(store: &Store, account: LocalAccountId) -> Cursor {
    read(store, move |tx| sync::current_cursor(tx, account))
}

/// A store on a copy of another one's file and log. Nothing may be written meanwhile.
fn open_copy(from: &Path, to: &Path) -> Store {
    for end in ["", "-wal"] {
        let [from, to] = [from, to].map(|path| format!("{}{end}", path.display()));
        if Path::new(&from).exists() {
            fs::copy(from, to).expect("a copy");
        }
    }
    let target = Target::Sqlite {
        path: to.to_owned(),
    };
    Store::open(target).expect("a store")
}

/// A file that is put back lacks changes, and gives their USNs to others, in one or several openings.
#[test]
fn a_replica_that_saw_what_a_copied_store_lacks_has_diverged() {
    let (fresh, folder) = (Fresh::sqlite(), tempfile::tempdir().expect("a folder"));
    let Target::Sqlite { path } = &fresh.target else {
        panic!("a file");
    };
    let store = Store::open(fresh.target.clone()).expect("a store");
    let ann = account(&store, "ann");
    let empty = cursor(&store, ann);
    set_note(&store, ann, 1, "text");
    set_note(&store, ann, 2, "text");
    let kept = cursor(&store, ann);
    store.close_blocking();
    let [copy, again] = ["copy.db", "again.db"].map(|name| folder.path().join(name));
    fs::copy(path, &copy).expect("a copy");

    // What the copy lacks, in an opening that it does not know.
    let store = Store::open(fresh.target.clone()).expect("a store");
    let mut lost = Vec::new();
    for number in 3..=6 {
        set_note(&store, ann, number, "lost");
        lost.push(cursor(&store, ann));
    }
    store.close_blocking();

    let mut store = open_copy(&copy, &again);
    assert_eq!(start(&store, ann, &kept), Start::Current);
    for opening in 0..3_u64 {
        for cursor in &lost {
            let known = start(&store, ann, cursor);
            assert_eq!(known, Start::Diverged, "{cursor} in opening {opening}");
        }
        // Two changes in each opening: the USNs of what is lost are given again.
        for number in 0..2 {
            set_note(&store, ann, 10 + 2 * opening + number, "other");
        }
        assert_eq!(start(&store, ann, &kept), Start::Changes);
        assert_eq!(start(&store, ann, &empty), Start::Changes);
        store.close_blocking();
        store = Store::open(Target::Sqlite {
            path: again.clone(),
        })
        .expect("a store");
    }
    assert_eq!(update_count(&store, ann), 8);
    let news = chunk(&store, ann, Some(lost[1].clone()), 10, 1_000_000).expect("news");
    assert_eq!(news.state, LibraryState::Diverged);
    assert_eq!((news.objects.len(), news.gone.len()), (0, 0));
    let mut replica = Replica::default();
    replica.pull(&store, ann);
    assert_eq!(replica.usns(), living(&store, ann));
    store.close_blocking();
}

/// The copy knows the opening of what it lacks. The last of its own openings began above that.
#[test]
fn a_replica_of_an_opening_that_the_copy_knows_has_diverged_too() {
    let (fresh, folder) = (Fresh::sqlite(), tempfile::tempdir().expect("a folder"));
    let Target::Sqlite { path } = &fresh.target else {
        panic!("a file");
    };
    let store = Store::open(fresh.target.clone()).expect("a store");
    let ann = account(&store, "ann");
    set_note(&store, ann, 1, "text");
    let kept = cursor(&store, ann);
    let copy = folder.path().join("copy.db");
    let mut copied = open_copy(path, &copy);
    set_note(&store, ann, 2, "lost");
    let lost = cursor(&store, ann);
    assert_eq!((&kept.nonce, lost.usn), (&lost.nonce, 2));
    store.close_blocking();
    for text in ["one", "two", "three"] {
        assert_eq!(start(&copied, ann, &lost), Start::Diverged, "before {text}");
        set_note(&copied, ann, 2, text);
        copied.close_blocking();
        let target = Target::Sqlite { path: copy.clone() };
        copied = Store::open(target).expect("a store");
    }
    assert_eq!(start(&copied, ann, &lost), Start::Diverged);
    assert_eq!(start(&copied, ann, &kept), Start::Changes);
    copied.close_blocking();
}

/// A second database of the same kind, empty.
fn second(target: &Target, folder: &Path) -> Target {
    match target {
        Target::Sqlite { .. } => Target::Sqlite {
            path: folder.join("second.db"),
        },
        Target::Postgres { schema, .. } => Target::Postgres {
            url: SecretUrl::new(postgres_database()),
            schema: schema.clone(),
        },
    }
}

/// A restored store goes on above all USNs that may have been given, so that only the opening shows it.
#[test]
fn a_replica_that_saw_what_a_restored_store_lacks_has_diverged() {
    if is_distributed() {
        return;
    }
    for fresh in databases() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("copy");
        let store = open(&fresh);
        let ann = account(&store, "ann");
        set_note(&store, ann, 1, "text");
        let kept = cursor(&store, ann);
        let snapshot = backup::copy(&fresh.target, &path, Box::new(|_| true)).expect("a copy");
        set_note(&store, ann, 2, "lost");
        let lost = cursor(&store, ann);
        store.close_blocking();
        let target = second(&fresh.target, folder.path());
        let way = (true, START_MS + 60_000);
        backup::restore(&path, &snapshot, &target, way, Box::new(|_| true)).expect("a restore");
        let store = Store::open(target).expect("a store");
        for number in 3..=4 {
            assert_eq!(start(&store, ann, &lost), Start::Diverged, "{}", fresh.name);
            assert_eq!(start(&store, ann, &kept), Start::Changes, "{}", fresh.name);
            set_note(&store, ann, number, "text");
        }
        let mut replica = Replica {
            cursor: Some(kept),
            ..Replica::default()
        };
        replica.pull(&store, ann);
        assert_eq!(replica.objects.len(), 2, "{}: what came since", fresh.name);
        store.close_blocking();
    }
}

fn a_raised_epoch_makes_replicas_start_again(store: &Store) {
    let ann = account(store, "ann");
    for number in 1..=3 {
        set_note(store, ann, number, "text");
    }
    let mut replica = Replica::default();
    let mut half = Replica::default();
    replica.pull(store, ann);
    half.step(store, ann, 1);
    let raise = || {
        write(store, local_account::root(ann), move |tx| {
            sync::require_full(tx, ann)
        });
    };
    raise();
    replica.objects.clear();
    replica.came.clear();
    let chunk = replica.step(store, ann, 2).expect("a chunk");
    assert_eq!(chunk.state, LibraryState::Full);
    assert_eq!(chunk.objects[0].usn.get(), 3, "from the newest on");
    let next = half.step(store, ann, 1).expect("a chunk");
    assert_eq!(next.objects[0].usn.get(), 2, "what has begun goes on");
    for replica in [&mut replica, &mut half] {
        replica.pull(store, ann);
        assert_eq!(replica.usns(), living(store, ann));
        assert_eq!(replica.cursor.as_ref().map(|cursor| cursor.epoch), Some(2));
    }
    let current = cursor(store, ann);
    let earlier = Cursor {
        epoch: 1,
        ..current.clone()
    };
    assert!(matches!(start(store, ann, &earlier), Start::Full { .. }));
    assert_eq!(start(store, ann, &current), Start::Current);
}

/// Moves the count of an account's library, as if its node showed other commits than that of its objects.
fn move_count(store: &Store, account: LocalAccountId, by: i64) {
    let id = i64::try_from(account).expect("an ID");
    let moved = write(store, local_account::root(account), move |tx| {
        Ok(tx.execute(
            "update library set update_count = update_count + $2
             where owner_id = $1 and owner_kind = 'account' and instance_id = 0",
            &[&id, &by],
        )?)
    });
    assert_eq!(moved, 1);
}

/// The nodes of a distributed store share no snapshot.
fn a_library_that_is_seen_before_or_after_its_objects_loses_nothing(store: &Store) {
    if !store.is_distributed() {
        return;
    }
    let ann = account(store, "ann");
    assert_eq!(update_count(store, ann), 0);
    for number in 1..=2 {
        set_note(store, ann, number, "text");
    }
    let first = cursor(store, ann);
    let mut replica = Replica::default();
    replica.pull(store, ann);

    // A commit's USN is seen, and its object is not yet.
    move_count(store, ann, 1);
    assert_eq!(cursor(store, ann), first);
    assert_eq!(start(store, ann, &first), Start::Current);
    replica.pull(store, ann);
    let mut full = Replica::default();
    full.pull(store, ann);
    move_count(store, ann, -1);
    set_note(store, ann, 3, "text");
    for replica in [&mut replica, &mut full] {
        replica.pull(store, ann);
        assert_eq!(replica.usns(), living(store, ann));
    }

    // The object is seen, and its USN is not yet. A device has the cursor from its push.
    let last = cursor(store, ann);
    move_count(store, ann, -1);
    assert_eq!(start(store, ann, &last), Start::Current);
    assert_eq!(start(store, ann, &first), Start::Current);
    let mut early = Replica::default();
    early.pull(store, ann);
    assert_eq!(early.objects.len(), 2, "up to its cursor");
    set_note(store, ann, 4, "text");
    assert_eq!(cursor(store, ann).usn, 4, "no USN is given twice");
    for replica in [&mut replica, &mut full, &mut early] {
        replica.pull(store, ann);
        assert_eq!(replica.usns(), living(store, ann));
    }

    // A restored store goes on above its rows.
    let last = cursor(store, ann);
    move_count(store, ann, 1_000);
    assert_eq!(start(store, ann, &last), Start::Current);
    let given = Cursor { usn: 1_004, ..last };
    assert_eq!(start(store, ann, &given), Start::Current);
    set_note(store, ann, 5, "text");
    assert_eq!(cursor(store, ann).usn, 1_005);
    for cursor in [given, first] {
        assert_eq!(start(store, ann, &cursor), Start::Changes);
    }
    replica.pull(store, ann);
    assert_eq!(replica.usns(), living(store, ann));
}

/// They see the lineage, and the nonces of openings.
fn devices_do_not_see_the_nonce_that_seals_cursors(store: &Store) {
    let ann = account(store, "ann");
    set_note(store, ann, 1, "text");
    let (nonce, lineage) = read(store, |tx| Ok((nonce(tx)?, lineage(tx)?)));
    assert_ne!(nonce, lineage);
    assert!(!cursor(store, ann).to_string().contains(&nonce));
}
