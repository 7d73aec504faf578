//! Pushes: each change is compared with the object's last USN, and takes the next one if it is stored.

use driftline_core::{
    social::Mark,
    sync::{ChangeResult, PushChange},
};
use driftline_store::{
    LocalAccountId, Store, account_id,
    social::{filter, list, local_account, marked_post},
    sync::Resolved,
    timeline::PostKey,
};
use serde_json::{Value, json};

use super::{
    Replica, assert_refused, change, done, kinds, living, note_change, note_key, post_name, push,
    push_resolved, rows, set_note, update_count,
};
use crate::{
    social::account,
    world::{read, write},
};

on_both!(
    each_stored_change_takes_the_next_usn,
    an_equal_value_takes_no_usn,
    a_change_of_another_version_is_in_conflict,
    a_refused_change_leaves_nothing,
    a_list_takes_its_accounts_with_it,
    a_marker_goes_where_the_device_says,
    before_is_the_cursor_of_a_replica_that_had_everything,
);

const LIST: &str = "list:000000000000000000000000000000aa";
const OTHER_LIST: &str = "list:000000000000000000000000000000bb";

fn member(list: &str, acct: &str) -> String {
    format!("{}:{acct}", list.replace("list:", "list-member:"))
}

/// The meaning of `ann@local` and of the post 1.
fn resolved(store: &Store, ann: LocalAccountId) -> (Resolved, PostKey) {
    let (post, key) = kinds::resolved(store);
    let resolved = Resolved {
        accounts: [("ann@local".to_owned(), account_id(ann))].into(),
        ..post
    };
    (resolved, key)
}

fn conflict(result: &ChangeResult) -> (u64, Option<&Value>) {
    match result {
        ChangeResult::Conflict { usn, value, .. } => (usn.get(), value.as_ref()),
        other => panic!("{other:?}"),
    }
}

fn each_stored_change_takes_the_next_usn(store: &Store) {
    let ann = account(store, "ann");
    let (resolved, post_key) = resolved(store, ann);
    let bookmark = format!("bookmark:{}", post_name(1));
    let favourite = format!("favourite:{}", post_name(1));
    let changes = vec![
        note_change(1, 0, "text"),
        change(LIST, 0, json!({"title": "friends"})),
        change(&member(LIST, "ann@local"), 0, json!({})),
        change(&bookmark, 0, json!({})),
        change(&favourite, 0, json!({})),
        change("marker:home", 0, json!({"last_read": "7"})),
    ];
    let pushed = push_resolved(store, ann, changes, resolved.clone());
    assert_eq!(done(&pushed), [1, 2, 3, 4, 5, 6]);
    assert_eq!((pushed.before.usn, pushed.after.usn), (0, 6));
    let changes = vec![
        note_change(1, 1, "other"),
        change(LIST, 2, json!({"title": "foes", "exclusive": true})),
        change(&bookmark, 4, Value::Null),
        change(&note_key(1), 7, Value::Null),
    ];
    assert_eq!(done(&push(store, ann, changes)), [7, 8, 9, 10]);
    // Programs of people see it, and take the next ones.
    let lists = read(store, move |tx| list::all(tx, ann));
    assert_eq!(lists.len(), 1);
    assert_eq!(lists[0].settings.title, "foes");
    assert!(lists[0].settings.exclusive);
    let marks = read(store, move |tx| marked_post::of(tx, ann, &[post_key.post]));
    assert_eq!(marks, [(post_key.post, Mark::Favourite)]);
    let id = lists[0].id;
    let removed = write(store, local_account::root(ann), move |tx| {
        list::remove(tx, ann, id)
    });
    assert!(removed);
    assert_eq!(update_count(store, ann), 12);
    let again = vec![change(&bookmark, 9, json!({}))];
    assert_eq!(done(&push_resolved(store, ann, again, resolved)), [13]);
    let usns: Vec<u64> = rows(store, ann).iter().map(|row| row.usn).collect();
    assert!(usns.is_sorted_by(|one, other| one < other), "{usns:?}");
    let mut replica = Replica::default();
    replica.pull(store, ann);
    assert_eq!(replica.usns(), living(store, ann));
}

fn an_equal_value_takes_no_usn(store: &Store) {
    let ann = account(store, "ann");
    let (resolved, _) = resolved(store, ann);
    let bookmark = format!("bookmark:{}", post_name(1));
    let changes = || {
        vec![
            note_change(1, 0, "text"),
            change(LIST, 0, json!({"title": "friends", "notify": false})),
            change(&member(LIST, "ann@local"), 0, json!({})),
            change(&bookmark, 0, json!({})),
            change("marker:home", 0, json!({"last_read": "7"})),
            // It was never there.
            change(&note_key(2), 0, Value::Null),
        ]
    };
    for _ in 0..2 {
        let pushed = push_resolved(store, ann, changes(), resolved.clone());
        assert_eq!(done(&pushed), [1, 2, 3, 4, 5, 0]);
        assert_eq!(update_count(store, ann), 5);
    }
    push(store, ann, vec![change(&note_key(1), 1, Value::Null)]);
    let again = push(store, ann, vec![change(&note_key(1), 1, Value::Null)]);
    assert_eq!(done(&again), [6], "the tombstone's");
    assert_eq!(again.before, again.after);
}

fn a_change_of_another_version_is_in_conflict(store: &Store) {
    let ann = account(store, "ann");
    set_note(store, ann, 1, "theirs");
    set_note(store, ann, 2, "theirs");
    push(store, ann, vec![change(&note_key(2), 2, Value::Null)]);
    let changes: Vec<PushChange> = vec![
        note_change(1, 0, "mine"),
        note_change(1, 2, "mine"),
        note_change(2, 2, "mine"),
        note_change(3, 9, "mine"),
        change(&note_key(1), u64::MAX, Value::Null),
    ];
    let pushed = push(store, ann, changes);
    let theirs = json!({"text": "theirs"});
    let conflicts: Vec<_> = pushed.results.iter().map(conflict).collect();
    let expected = [
        (1, Some(&theirs)),
        (1, Some(&theirs)),
        (3, None),
        (0, None),
        (1, Some(&theirs)),
    ];
    assert_eq!(conflicts, expected);
    assert_eq!(update_count(store, ann), 3);
    // With the tombstone's USN as base it comes again, and a change can follow in the same push.
    let changes = vec![note_change(2, 3, "mine"), note_change(2, 4, "mine, too")];
    assert_eq!(done(&push(store, ann, changes)), [4, 5]);
}

fn a_refused_change_leaves_nothing(store: &Store) {
    let ann = account(store, "ann");
    let bob = account(store, "bob");
    let (mut resolved, _) = resolved(store, ann);
    let bobs = account_id(bob);
    resolved.accounts.insert("bob@local".to_owned(), bobs);
    resolved
        .accounts
        .insert("ANN@local".to_owned(), account_id(ann));
    // A name by which this server does not know the post.
    let post = resolved.posts[&post_name(1)];
    resolved.posts.insert("id:7".to_owned(), post);
    push(
        store,
        ann,
        vec![change(LIST, 0, json!({"title": "friends"}))],
    );
    let filter = "filter:000000000000000000000000000000cc";
    let refused = [
        (change("later:1", 0, json!({})), "no objects of the kind"),
        (change(filter, 0, json!({"title": "x"})), "missing field"),
        (note_change(1, 0, ""), "1 to 10000 characters"),
        (change("marker:home", 0, Value::Null), "not deleted"),
        (change("profile:self", 0, Value::Null), "not deleted"),
        (
            change("bookmark:https://a.example/9", 0, json!({})),
            "no such post",
        ),
        (change("bookmark:id:7", 0, json!({})), "knows the post as"),
        (change(OTHER_LIST, 0, json!({"title": " "})), "blank"),
        (change(LIST, 1, json!({"title": ""})), "blank"),
        (
            change(LIST, 1, json!({"title": "x", "notify": true})),
            "predicate",
        ),
        (
            change(&member(OTHER_LIST, "ann@local"), 0, json!({})),
            "no such list",
        ),
        (
            change(&member(LIST, "eve@local"), 0, json!({})),
            "not followed",
        ),
        (
            change(&member(LIST, "bob@local"), 0, json!({})),
            "not followed",
        ),
        (
            change(&member(LIST, "ANN@local"), 0, json!({})),
            "not followed",
        ),
    ];
    let before = rows(store, ann);
    let (changes, reasons): (Vec<PushChange>, Vec<&str>) = refused.into_iter().unzip();
    let pushed = push_resolved(store, ann, changes, resolved);
    assert_refused(&pushed, &reasons);
    assert_eq!(rows(store, ann), before);
    let filters = read(store, move |tx| filter::all(tx, ann));
    assert_eq!(filters, []);
    let lists = read(store, move |tx| list::all(tx, ann));
    assert_eq!(lists[0].settings.title, "friends");
}

fn a_list_takes_its_accounts_with_it(store: &Store) {
    let ann = account(store, "ann");
    let (resolved, _) = resolved(store, ann);
    let own = member(LIST, "ann@local");
    let make = |base: u64| {
        let settings = json!({"title": "friends", "replies_policy": "none"});
        let changes = vec![
            change(LIST, base, settings),
            change(&own, base.saturating_sub(1), json!({})),
        ];
        push_resolved(store, ann, changes, resolved.clone())
    };
    assert_eq!(done(&make(0)), [1, 2]);
    let pushed = push(store, ann, vec![change(LIST, 1, Value::Null)]);
    assert_eq!(done(&pushed), [4]);
    let gone: Vec<(String, u64, bool)> = rows(store, ann)
        .into_iter()
        .map(|row| (row.key, row.usn, row.is_removed))
        .collect();
    assert_eq!(gone, [(own.clone(), 3, true), (LIST.to_owned(), 4, true)]);
    // Both come back under their keys.
    assert_eq!(done(&make(4)), [5, 6]);
    assert_eq!(rows(store, ann).len(), 2);
    let alone = push(store, ann, vec![change(&own, 6, Value::Null)]);
    assert_eq!(done(&alone), [7]);
    assert_eq!(living(store, ann), [(LIST.to_owned(), 5)].into());
}

fn a_marker_goes_where_the_device_says(store: &Store) {
    let ann = account(store, "ann");
    let marker = |base, place: &str| change("marker:home", base, json!({ "last_read": place }));
    assert_eq!(done(&push(store, ann, vec![marker(0, "9")])), [1]);
    assert_eq!(done(&push(store, ann, vec![marker(1, "5")])), [2]);
    let late = push(store, ann, vec![marker(1, "11")]);
    assert_eq!(
        conflict(&late.results[0]),
        (2, Some(&json!({"last_read": "5"})))
    );
}

fn before_is_the_cursor_of_a_replica_that_had_everything(store: &Store) {
    let ann = account(store, "ann");
    let mut replica = Replica::default();
    replica.pull(store, ann);
    for number in 1..=3 {
        let pushed = push(store, ann, vec![note_change(number, 0, "text")]);
        assert_eq!(replica.cursor.as_ref(), Some(&pushed.before));
        assert_ne!(pushed.before, pushed.after);
        replica.cursor = Some(pushed.after);
        assert_eq!(replica.step(store, ann, 10), None);
    }
    set_note(store, ann, 4, "another program's");
    let pushed = push(store, ann, vec![note_change(5, 0, "text")]);
    assert_ne!(replica.cursor.as_ref(), Some(&pushed.before));
}
