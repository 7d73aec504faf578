//! Nothing of what is synced is left of an account that is removed.

use driftline_store::{
    AccountId, LocalAccountId, Store,
    social::{
        account_note, account_removal, local_account, mute,
        relation::{self, FollowOptions},
    },
    sync::{self, device},
};
use serde_json::json;

use super::{change, devices::request, note_change, push, remove_note, set_note};
use crate::{
    social::account,
    world::{START_MS, read, write},
};

on_both!(an_account_leaves_no_row);

/// The number of rows of each table that belong to accounts with libraries.
fn counts(store: &Store) -> Vec<(&'static str, i64)> {
    let tables = [
        "library",
        "library_opening",
        "library_object",
        "note",
        "draft",
        "account_note",
        "mute",
        "relation",
        "sync_device",
    ];
    read(store, move |tx| {
        let mut counts = Vec::new();
        for table in tables {
            let count = format!("select count(*) as rows from {table}");
            counts.push((table, tx.query_one(&count, &[], |row| row.i64("rows"))?));
        }
        Ok(counts)
    })
}

fn sync_something(store: &Store, account: LocalAccountId) {
    let draft = change(
        "draft:000000000000000000000000000000d1",
        0,
        json!({"text": "soon"}),
    );
    push(store, account, vec![note_change(1, 0, "text"), draft]);
    set_note(store, account, 2, "text");
    remove_note(store, account, 1);
    write(store, local_account::root(account), move |tx| {
        let other = AccountId::new((1 << 62) + 5);
        let followed = relation::follow(tx, account, other, FollowOptions::default(), START_MS)?;
        followed.expect("a follow");
        mute::set(tx, account, other, true, None, START_MS)?;
        account_note::set(tx, account, other, "text", START_MS)?.expect("a note");
        let push = request("000000000000000000000000000000aa", 1, "");
        device::record(tx, account, &push, "hash", "answer", START_MS)?;
        sync::require_full(tx, account)
    });
}

fn an_account_leaves_no_row(store: &Store) {
    let bob = account(store, "bob");
    sync_something(store, bob);
    let before = counts(store);
    let ann = account(store, "ann");
    sync_something(store, ann);
    for ((_, before), (table, now)) in before.iter().zip(counts(store)) {
        assert_eq!(now, 2 * before, "{table}");
    }
    write(store, local_account::root(ann), move |tx| {
        account_removal::begin(tx, ann)
    });
    loop {
        let removed = write(store, local_account::root(ann), move |tx| {
            account_removal::remove_some(tx, ann)
        });
        if removed.is_done {
            break;
        }
    }
    assert_eq!(counts(store), before);
}
