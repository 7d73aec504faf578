//! Pushes of follows, blocks, mutes and notes on accounts: they do what programs of people do.

use driftline_core::{
    social::{Relation, RelationMove},
    sync::{ChangeResult, ObjectKey, PushChange},
};
use driftline_store::{
    AccountId, LocalAccountId, Store, account_id,
    social::{
        account_removal,
        copy_relations::RelatedAccount,
        local_account, mute,
        notification::{self, NotificationFilter},
        relation::{self, FollowOptions},
    },
    sync::Resolved,
};
use serde_json::{Value, json};

use super::{
    assert_refused, change, done, living, push, push_resolved,
    relations::{author, follow, log},
    rows, update_count,
};
use crate::{
    social::account,
    world::{EVERYTHING, START_MS, read, write},
};

on_both!(
    a_push_changes_relations_as_programs_of_people_do,
    a_block_ends_the_follow_with_a_usn_of_its_own,
    a_refused_relation_leaves_nothing,
    a_follow_and_a_mute_replace_those_of_a_copy,
    a_push_locks_accounts_in_one_order,
    mutes_and_notes_lock_the_other_account,
    objects_about_an_account_that_is_gone_can_be_deleted,
);

/// The accounts with these `acct`s.
fn resolved(accounts: &[(&str, AccountId)]) -> Resolved {
    let kinds = ["follow", "block", "mute", "account-note"];
    let related = accounts.iter().flat_map(|(acct, id)| {
        let other = RelatedAccount {
            canonical_id: *id,
            copy_id: None,
        };
        kinds.map(|kind| (key(&format!("{kind}:{acct}")), other))
    });
    Resolved {
        accounts: accounts
            .iter()
            .map(|(acct, id)| ((*acct).to_owned(), *id))
            .collect(),
        related: related.collect(),
        ..Resolved::default()
    }
}

fn key(text: &str) -> ObjectKey {
    ObjectKey::parse(text).expect("a key")
}

fn outgoing(store: &Store, account: LocalAccountId, other: AccountId) -> Relation {
    let row = read(store, move |tx| relation::to(tx, account, &[other])).pop();
    row.map(|row| row.pair.outgoing).unwrap_or_default()
}

fn sent_value(result: &ChangeResult) -> &Value {
    match result {
        ChangeResult::Done {
            value: Some(value), ..
        } => value,
        other => panic!("{other:?}"),
    }
}

fn a_push_changes_relations_as_programs_of_people_do(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let (author, bobs) = (author(store), account_id(bob));
    let resolved = resolved(&[("ann@sim.example", author), ("bob@local", bobs)]);
    let push = |changes| push_resolved(store, ann, changes, resolved.clone());
    let list = "list:000000000000000000000000000000aa";
    let member = "list-member:000000000000000000000000000000aa:ann@sim.example";
    let changes = || {
        vec![
            change("follow:ann@sim.example", 0, json!({"reblogs": false})),
            change("follow:bob@local", 0, json!({})),
            change("mute:bob@local", 0, json!({"expires_at": START_MS + 10})),
            change("account-note:bob@local", 0, json!({"text": "from school"})),
            change(list, 0, json!({"title": "friends"})),
            change(member, 0, json!({})),
        ]
    };
    let pushed = push(changes());
    assert_eq!(done(&pushed), [1, 2, 3, 4, 5, 6]);
    let expected = json!({"reblogs": false, "notify": false, "account": author.to_string()});
    assert_eq!(*sent_value(&pushed.results[0]), expected);
    // The same again takes no USN.
    assert_eq!(done(&push(changes())), [1, 2, 3, 4, 5, 6]);
    assert_eq!(outgoing(store, ann, author), Relation::Following);
    assert_eq!(outgoing(store, ann, bobs), Relation::Following);
    let mutes = read(store, move |tx| mute::of(tx, ann, &[bobs], START_MS));
    assert_eq!(mutes[0].until_ms, Some(START_MS + 10));
    let notified = read(store, move |tx| {
        notification::page(tx, bob, &NotificationFilter::default(), &EVERYTHING)
    });
    assert_eq!(notified.len(), 1, "of the follow");

    let changes = vec![
        change("follow:bob@local", 2, json!({"notify": true})),
        change("mute:bob@local", 3, json!({"notifications": false})),
        change("account-note:bob@local", 4, json!({"text": "moved away"})),
        // The follow's end takes the account out of the list, with the USN before its own.
        change("follow:ann@sim.example", 1, Value::Null),
    ];
    assert_eq!(done(&push(changes)), [7, 8, 9, 11]);
    assert_eq!(outgoing(store, ann, author), Relation::None);
    let changes = vec![
        change("mute:bob@local", 8, Value::Null),
        change("account-note:bob@local", 9, Value::Null),
        change("follow:bob@local", 7, Value::Null),
        // After its tombstone.
        change("follow:ann@sim.example", 11, json!({})),
    ];
    assert_eq!(done(&push(changes)), [12, 13, 14, 15]);
    let expected = [
        (list.to_owned(), 5),
        ("follow:ann@sim.example".to_owned(), 15),
    ];
    assert_eq!(living(store, ann), expected.into());
    let stale = push(vec![change("follow:ann@sim.example", 1, Value::Null)]);
    assert!(
        matches!(&stale.results[0], ChangeResult::Conflict { usn, value: Some(_), .. } if usn.get() == 15)
    );
    assert_eq!(rows(store, bob), []);
}

fn a_block_ends_the_follow_with_a_usn_of_its_own(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let bobs = account_id(bob);
    follow(store, ann, bobs, FollowOptions::default());
    follow(store, bob, account_id(ann), FollowOptions::default());
    let resolved = resolved(&[("bob@local", bobs)]);
    let block = vec![change("block:bob@local", 0, json!({}))];
    let pushed = push_resolved(store, ann, block, resolved.clone());
    assert_eq!(done(&pushed), [3]);
    let expected = [("follow:bob@local", 2, true), ("block:bob@local", 3, false)];
    assert_eq!(log(&rows(store, ann)), expected);
    assert_eq!(log(&rows(store, bob)), [("follow:ann@local", 2, true)]);
    let again = vec![
        change("follow:bob@local", 2, json!({})),
        change("block:bob@local", 3, Value::Null),
        change("follow:bob@local", 2, json!({})),
    ];
    let pushed = push_resolved(store, ann, again, resolved);
    let ChangeResult::Refused { reason, .. } = &pushed.results[0] else {
        panic!("{:?}", pushed.results);
    };
    assert!(reason.contains("unblock it first"), "{reason}");
    assert_eq!(outgoing(store, ann, bobs), Relation::Following);
    assert_eq!(update_count(store, ann), 5);
}

fn a_refused_relation_leaves_nothing(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let bobs = account_id(bob);
    let author = author(store);
    let resolved = resolved(&[
        ("ann@local", account_id(ann)),
        ("BOB@local", bobs),
        ("bob@local", bobs),
        ("ann@sim.example", author),
    ]);
    // The other one blocks it, which no words say.
    write(store, relation::root(bob, account_id(ann)), move |tx| {
        relation::change(tx, bob, account_id(ann), RelationMove::Block, START_MS)
    })
    .expect("a block");
    let refused = [
        (change("follow:eve@local", 0, json!({})), "no such account"),
        (
            change("block:eve@a.example", 0, json!({})),
            "no such account",
        ),
        (change("follow:ann@local", 0, json!({})), "your own account"),
        (change("block:ann@local", 0, json!({})), "your own account"),
        (change("mute:ann@local", 0, json!({})), "your own account"),
        (change("mute:BOB@local", 0, json!({})), "mute:bob@local"),
        (change("follow:bob@local", 0, json!({})), "no such account"),
        (
            change(
                "account-note:bob@local",
                0,
                json!({"text": "a".repeat(2_001)}),
            ),
            "1 to 2000 characters",
        ),
        (
            change("account-note:bob@local", 0, json!({"text": ""})),
            "1 to 2000 characters",
        ),
    ];
    let (changes, reasons): (Vec<PushChange>, Vec<&str>) = refused.into_iter().unzip();
    let pushed = push_resolved(store, ann, changes, resolved);
    assert_refused(&pushed, &reasons);
    assert_eq!(rows(store, ann), []);
}

/// Those of the copy end, each with a USN of its own.
fn a_follow_and_a_mute_replace_those_of_a_copy(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let (bobs, copy) = (account_id(bob), author(store));
    follow(store, ann, copy, FollowOptions::default());
    write(store, local_account::root(ann), move |tx| {
        mute::set(tx, ann, copy, true, None, START_MS)
    });
    let other = RelatedAccount {
        canonical_id: bobs,
        copy_id: Some(copy),
    };
    let resolved = Resolved {
        related: ["follow", "mute", "block"]
            .map(|kind| (key(&format!("{kind}:bob@local")), other))
            .into(),
        ..Resolved::default()
    };
    let changes = vec![
        change("follow:bob@local", 0, json!({})),
        change("mute:bob@local", 0, json!({})),
    ];
    let pushed = push_resolved(store, ann, changes, resolved.clone());
    assert_eq!(done(&pushed), [3, 5]);
    let expected = [
        ("follow:bob@local", 3, false),
        ("follow:ann@sim.example", 4, true),
        ("mute:bob@local", 5, false),
        ("mute:ann@sim.example", 6, true),
    ];
    assert_eq!(log(&rows(store, ann)), expected);
    let block = vec![change("block:bob@local", 0, json!({}))];
    let pushed = push_resolved(store, ann, block, resolved);
    assert_eq!(done(&pushed), [8], "after the end of the follow");
}

/// The account with the lower ID is the root, also of a push of the other one.
fn a_push_locks_accounts_in_one_order(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    for (pushing, other, key) in [
        (bob, ann, "follow:ann@local"),
        (ann, bob, "follow:bob@local"),
    ] {
        let id = account_id(other);
        let resolved = resolved(&[(key.trim_start_matches("follow:"), id)]);
        assert_eq!(resolved.root(pushing), local_account::root(ann));
        let follow = vec![change(key, 0, json!({}))];
        assert_eq!(done(&push_resolved(store, pushing, follow, resolved)), [1]);
        assert_eq!(outgoing(store, pushing, id), Relation::Following);
    }
}

/// Else a removal that begins meanwhile would not see them.
fn mutes_and_notes_lock_the_other_account(store: &Store) {
    let [bob, ann] = ["bob", "ann"].map(|name| account(store, name));
    for (name, value) in [
        ("mute:bob@local", json!({})),
        ("account-note:bob@local", json!({"text": "a"})),
    ] {
        let other = RelatedAccount {
            canonical_id: account_id(bob),
            copy_id: None,
        };
        let resolved = Resolved {
            related: [(key(name), other)].into(),
            ..Resolved::default()
        };
        assert_eq!(resolved.root(ann), local_account::root(bob));
        let pushed = push_resolved(store, ann, vec![change(name, 0, value)], resolved);
        assert_eq!(done(&pushed).len(), 1);
    }
    assert_eq!(update_count(store, ann), 2);
}

fn objects_about_an_account_that_is_gone_can_be_deleted(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let changes = vec![
        change("mute:bob@local", 0, json!({})),
        change("account-note:bob@local", 0, json!({"text": "a"})),
    ];
    let resolved = resolved(&[("bob@local", account_id(bob))]);
    assert_eq!(done(&push_resolved(store, ann, changes, resolved)), [1, 2]);
    write(store, local_account::root(bob), move |tx| {
        account_removal::begin(tx, bob)
    });
    // No name stands for it any more.
    let changes = vec![
        change("account-note:bob@local", 2, json!({"text": "b"})),
        change("mute:bob@local", 1, Value::Null),
    ];
    assert_eq!(done(&push(store, ann, changes)), [3, 4]);
    let changes = vec![change("account-note:bob@local", 3, Value::Null)];
    assert_eq!(done(&push(store, ann, changes)), [5]);
    assert!(living(store, ann).is_empty());
}
