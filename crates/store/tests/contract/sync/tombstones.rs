//! The collection of tombstones.

use driftline_core::sync::LibraryState;
use driftline_db::Column;
use driftline_store::{LocalAccountId, Store, social::local_account, sync::Start};

use super::{
    Replica,
    histories::{cursor, start},
    living, remove_note, rows, set_note, update_count,
};
use crate::{
    social::account,
    world::{read, write},
};

on_both!(
    a_collection_moves_the_horizon_and_leaves_no_ghosts,
    additions_collect_tombstones_in_parts,
);

/// Gives a library more objects: tombstones, as notes that were written and removed leave them, or objects without values.
pub(super) fn add_rows(store: &Store, account: LocalAccountId, count: i64, is_removed: bool) {
    let (first, id) = (update_count(store, account) + 1, sql(account));
    write(store, local_account::root(account), move |tx| {
        let usns = first..first + count;
        let keys: Vec<String> = usns.clone().map(|usn| format!("note:old{usn}")).collect();
        tx.execute_many(
            "insert into library_object (account_id, id, key, kind, first_usn, usn, removed)
             select $1, -r.usn, r.key, 'note', r.usn, r.usn, $2 from {rows as r(key, usn)}",
            &[&id, &is_removed],
            &[
                Column::text(keys.iter().map(String::as_str)),
                Column::i64(usns),
            ],
        )?;
        tx.execute(
            "update library set update_count = update_count + $2
             where owner_kind = 'account' and owner_id = $1",
            &[&id, &count],
        )?;
        Ok(())
    });
}

/// The number of a library's tombstones, and the USN of the oldest.
fn tombstones(store: &Store, account: LocalAccountId) -> (usize, u64) {
    let rows = rows(store, account).into_iter();
    let usns: Vec<u64> = rows
        .filter(|row| row.is_removed)
        .map(|row| row.usn)
        .collect();
    (usns.len(), usns[0])
}

fn horizon(store: &Store, account: LocalAccountId) -> u64 {
    let id = sql(account);
    read(store, move |tx| {
        Ok(tx.query_one(
            "select horizon from library where owner_kind = 'account' and owner_id = $1",
            &[&id],
            |row| Ok(row.i64("horizon")?.cast_unsigned()),
        )?)
    })
}

fn sql(account: LocalAccountId) -> i64 {
    i64::try_from(account).expect("an ID")
}

fn a_collection_moves_the_horizon_and_leaves_no_ghosts(store: &Store) {
    let (ann, bob) = (account(store, "ann"), account(store, "bob"));
    let (mut old, mut recent) = (Replica::default(), Replica::default());
    for number in 1..=3 {
        set_note(store, ann, number, "text");
        set_note(store, bob, number, "text");
    }
    old.pull(store, ann);
    remove_note(store, ann, 1);
    remove_note(store, bob, 1);
    // The next removal takes the USN 11,000.
    add_rows(store, ann, 10_993, true);
    set_note(store, ann, 4, "text");
    recent.pull(store, ann);
    assert_eq!(update_count(store, ann), 10_998);
    set_note(store, ann, 5, "text");
    assert_eq!(horizon(store, ann), 0);
    remove_note(store, ann, 4);
    // With its own, which came after the collection.
    assert_eq!(tombstones(store, ann), (10_001, 998));
    assert_eq!(horizon(store, ann), 997);

    let first = old.step(store, ann, 100).expect("a chunk");
    assert_eq!(first.state, LibraryState::Full);
    old.pull(store, ann);
    let next = recent.step(store, ann, 100).expect("a chunk");
    assert_eq!(next.state, LibraryState::Changes);
    recent.pull(store, ann);
    for replica in [old, recent] {
        assert_eq!(replica.usns(), living(store, ann));
    }
    assert_eq!(start(store, ann, &cursor(store, ann)), Start::Current);
    assert_eq!(
        rows(store, bob).len(),
        3,
        "another account's tombstone stays"
    );
    assert_eq!(horizon(store, bob), 0);
}

/// A collection may be due with any change, and deletes a bounded number.
fn additions_collect_tombstones_in_parts(store: &Store) {
    let ann = account(store, "ann");
    set_note(store, ann, 1, "text");
    add_rows(store, ann, 16_998, true);
    set_note(store, ann, 2, "text");
    assert_eq!(update_count(store, ann), 17_000);
    assert_eq!(tombstones(store, ann), (11_998, 5_002));
    assert_eq!(horizon(store, ann), 5_001);
    add_rows(store, ann, 999, true);
    set_note(store, ann, 2, "changed");
    assert_eq!(update_count(store, ann), 18_000);
    assert_eq!(tombstones(store, ann), (10_000, 7_999));
    assert_eq!(horizon(store, ann), 7_998);
}
