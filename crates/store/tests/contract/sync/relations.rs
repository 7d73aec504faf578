//! Follows, blocks, mutes and notes on accounts as objects of the library of the account that has them, and of no other.

use driftline_core::{
    names::acct::AcctKey,
    social::{ListSettings, Nickname, Profile, RelationMove, RepliesPolicy},
};
use driftline_store::{
    AccountId, LocalAccountId, Store, StoreError, account_id,
    social::{
        account_note::{self, AccountNoteRefused},
        account_removal, list, list_member, local_account, mute, profile,
        relation::{self, FollowOptions},
    },
};
use serde_json::json;

use super::{Replica, Row, living, rows, update_count};
use crate::{
    social::account,
    world::{START_MS, World, post, read, write},
};

on_both!(
    each_change_of_a_relation_takes_one_usn,
    a_mute_that_has_ended_is_the_same_object_when_it_is_set_again,
    a_note_on_an_account_is_set_once_and_bounded,
    a_requested_follow_is_an_object_that_the_other_account_changes,
    the_libraries_of_others_forget_an_account_that_is_removed,
    a_removal_ends_once_nobody_names_the_account,
);

/// An author whom the source shows.
pub(super) fn author(store: &Store) -> AccountId {
    let mut world = World::readable(store, "home");
    world.poll(vec![post(1, "text")]);
    let key = AcctKey::new("ann", "https://sim.example").expect("a name");
    AccountId::new(key.account_id())
}

pub(super) fn follow(
    store: &Store,
    account: LocalAccountId,
    other: AccountId,
    options: FollowOptions,
) {
    write(store, relation::root(account, other), move |tx| {
        relation::follow(tx, account, other, options, START_MS)
    })
    .expect("a follow");
}

fn act(store: &Store, account: LocalAccountId, other: AccountId, action: RelationMove) {
    write(store, relation::root(account, other), move |tx| {
        relation::change(tx, account, other, action, START_MS)
    })
    .expect("a change");
}

fn set_mute(
    store: &Store,
    account: LocalAccountId,
    other: AccountId,
    until_ms: Option<i64>,
    now_ms: i64,
) {
    let set = write(store, local_account::root(account), move |tx| {
        mute::set(tx, account, other, true, until_ms, now_ms)
    });
    assert!(set);
}

fn set_note(
    store: &Store,
    account: LocalAccountId,
    other: AccountId,
    text: &str,
) -> Result<(), AccountNoteRefused> {
    let text = text.to_owned();
    write(store, local_account::root(account), move |tx| {
        account_note::set(tx, account, other, &text, START_MS)
    })
}

/// The key, the USN of the last change and whether the object is removed, by the USNs.
pub(super) fn log(rows: &[Row]) -> Vec<(&str, u64, bool)> {
    let rows = rows.iter();
    rows.map(|row| (row.key.as_str(), row.usn, row.is_removed))
        .collect()
}

fn value(store: &Store, account: LocalAccountId, key: &str) -> serde_json::Value {
    let mut replica = Replica::default();
    replica.pull(store, account);
    replica.objects[key].1.clone()
}

fn each_change_of_a_relation_takes_one_usn(store: &Store) {
    let [ann, bob] = ["ann", "Bob"].map(|name| account(store, name));
    let (author, bobs) = (author(store), account_id(bob));
    let both = FollowOptions {
        show_boosts: Some(false),
        notify: Some(true),
    };
    let key = "follow:ann@sim.example";
    let plain = || json!({"reblogs": true, "notify": false, "account": author.to_string()});
    for _ in 0..2 {
        follow(store, ann, author, FollowOptions::default());
        assert_eq!(update_count(store, ann), 1);
    }
    assert_eq!(value(store, ann, key), plain());
    for _ in 0..2 {
        follow(store, ann, author, both);
        assert_eq!(update_count(store, ann), 2);
    }
    let changed = json!({"reblogs": false, "notify": true, "account": author.to_string()});
    assert_eq!(value(store, ann, key), changed);
    for _ in 0..2 {
        act(store, ann, author, RelationMove::Unfollow);
        assert_eq!(log(&rows(store, ann)), [(key, 3, true)]);
    }
    // All its options at once, and the same key after a tombstone.
    follow(store, ann, author, both);
    assert_eq!(log(&rows(store, ann)), [(key, 4, false)]);
    assert_eq!(rows(store, ann)[0].first_usn, 1);

    follow(store, ann, bobs, FollowOptions::default());
    for _ in 0..2 {
        act(store, ann, bobs, RelationMove::Block);
        let expected = [
            (key, 4, false),
            ("follow:bob@local", 6, true),
            ("block:bob@local", 7, false),
        ];
        assert_eq!(log(&rows(store, ann)), expected);
    }
    let block = value(store, ann, "block:bob@local");
    assert_eq!(block, json!({"account": bobs.to_string()}));
    act(store, ann, bobs, RelationMove::Unblock);
    assert_eq!(update_count(store, ann), 8);
    // An end of a follow takes the account out of lists.
    follow(store, ann, bobs, FollowOptions::default());
    write(store, local_account::root(ann), move |tx| {
        let settings = ListSettings {
            title: "friends".to_owned(),
            replies_policy: RepliesPolicy::List,
            exclusive: false,
            predicate: None,
            notify: false,
        };
        let list = list::create(tx, ann, settings, START_MS)?.expect("a list");
        list_member::add(tx, ann, list.id, &[bobs], START_MS)
    })
    .expect("a member");
    act(store, ann, bobs, RelationMove::Unfollow);
    assert_eq!(update_count(store, ann), 13);
    // What others do to the account, and what it does to them, is in its own library alone.
    assert_eq!(rows(store, bob), []);
    follow(store, bob, account_id(ann), FollowOptions::default());
    assert_eq!(update_count(store, ann), 13);
    assert_eq!(
        living(store, bob),
        [("follow:ann@local".to_owned(), 1)].into()
    );
}

fn a_mute_that_has_ended_is_the_same_object_when_it_is_set_again(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let bobs = account_id(bob);
    let key = "mute:bob@local";
    let end_ms = START_MS + 10;
    for _ in 0..2 {
        set_mute(store, ann, bobs, Some(end_ms), START_MS);
        assert_eq!(log(&rows(store, ann)), [(key, 1, false)]);
    }
    let expected =
        json!({"notifications": true, "expires_at": end_ms, "account": bobs.to_string()});
    assert_eq!(value(store, ann, key), expected);
    set_mute(store, ann, bobs, Some(end_ms + 1), START_MS);
    assert_eq!(log(&rows(store, ann)), [(key, 2, false)]);
    // Its end is no change.
    set_mute(store, ann, bobs, None, end_ms + 5);
    assert_eq!(log(&rows(store, ann)), [(key, 3, false)]);
    assert_eq!(rows(store, ann)[0].first_usn, 1);
    assert!(value(store, ann, key)["expires_at"].is_null());
    set_mute(store, ann, bobs, Some(end_ms), START_MS);
    for expected in [true, false] {
        let removed = write(store, local_account::root(ann), move |tx| {
            mute::remove(tx, ann, bobs)
        });
        assert_eq!(removed, expected);
        assert_eq!(log(&rows(store, ann)), [(key, 5, true)]);
    }
    assert_eq!(rows(store, bob), []);
}

fn a_note_on_an_account_is_set_once_and_bounded(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let (bobs, key) = (account_id(bob), "account-note:bob@local");
    let longest = "字".repeat(2_000);
    for (text, usn) in [("a", 1), ("a", 1), (longest.as_str(), 2)] {
        assert_eq!(set_note(store, ann, bobs, text), Ok(()));
        assert_eq!(log(&rows(store, ann)), [(key, usn, false)]);
    }
    let expected = json!({"text": longest, "account": bobs.to_string()});
    assert_eq!(value(store, ann, key), expected);
    for text in ["字".repeat(2_001), "a\0".to_owned()] {
        assert_eq!(
            set_note(store, ann, bobs, &text),
            Err(AccountNoteRefused::Text)
        );
    }
    let notes = read(store, move |tx| account_note::to(tx, ann, &[bobs]));
    assert_eq!(notes[0].text, longest);
    assert_eq!(
        read(store, move |tx| account_note::to(tx, bob, &[bobs])),
        []
    );
    for _ in 0..2 {
        assert_eq!(set_note(store, ann, bobs, ""), Ok(()));
        assert_eq!(log(&rows(store, ann)), [(key, 3, true)]);
    }
    assert_eq!(rows(store, bob), []);
}

fn a_requested_follow_is_an_object_that_the_other_account_changes(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let (anns, bobs, key) = (account_id(ann), account_id(bob), "follow:bob@local");
    write(store, local_account::root(bob), move |tx| {
        let locked = Profile {
            locked: true,
            ..Profile::default()
        };
        profile::set(tx, bob, &Nickname::default(), &locked, START_MS)
    })
    .expect("a profile");
    follow(store, ann, bobs, FollowOptions::default());
    assert_eq!(value(store, ann, key)["requested"], true);
    act(store, bob, anns, RelationMove::AcceptFollow);
    assert_eq!(value(store, ann, key).get("requested"), None);
    assert_eq!(log(&rows(store, ann)), [(key, 2, false)]);
    act(store, bob, anns, RelationMove::RemoveFollower);
    assert_eq!(log(&rows(store, ann)), [(key, 3, true)]);
    follow(store, ann, bobs, FollowOptions::default());
    act(store, bob, anns, RelationMove::RejectFollow);
    assert_eq!(log(&rows(store, ann)), [(key, 5, true)]);
    assert_eq!(log(&rows(store, bob)), [("profile:self", 1, false)]);
    follow(store, ann, bobs, FollowOptions::default());
    act(store, bob, anns, RelationMove::Block);
    assert_eq!(log(&rows(store, ann)), [(key, 7, true)]);
    assert_eq!(
        living(store, bob),
        [
            ("profile:self".to_owned(), 1),
            ("block:ann@local".to_owned(), 2)
        ]
        .into()
    );
}

fn the_libraries_of_others_forget_an_account_that_is_removed(store: &Store) {
    let [ann, bob, cat, dan] = ["ann", "bob", "cat", "dan"].map(|name| account(store, name));
    let bobs = account_id(bob);
    let author = author(store);
    follow(store, ann, bobs, FollowOptions::default());
    follow(store, ann, author, FollowOptions::default());
    set_mute(store, ann, bobs, None, START_MS);
    assert_eq!(set_note(store, ann, bobs, "text"), Ok(()));
    act(store, cat, bobs, RelationMove::Block);
    // It follows others, who have nothing of it.
    follow(store, bob, account_id(dan), FollowOptions::default());
    write(store, local_account::root(bob), move |tx| {
        account_removal::begin(tx, bob)
    });
    let owners = move || read(store, move |tx| account_removal::owners_naming(tx, bob, 10));
    assert_eq!(owners(), [ann, cat]);
    for owner in [ann, cat] {
        write(store, local_account::root(owner), move |tx| {
            account_removal::forget(tx, owner, bob)
        });
    }
    assert_eq!(owners(), []);
    let expected = [
        ("follow:ann@sim.example", 2, false),
        ("follow:bob@local", 5, true),
        ("mute:bob@local", 6, true),
        ("account-note:bob@local", 7, true),
    ];
    assert_eq!(log(&rows(store, ann)), expected);
    assert_eq!(log(&rows(store, cat)), [("block:bob@local", 2, true)]);
    assert_eq!(rows(store, dan), []);
    loop {
        let removed = write(store, local_account::root(bob), move |tx| {
            account_removal::remove_some(tx, bob)
        });
        if removed.is_done {
            break;
        }
    }
    let left = read(store, move |tx| {
        let mut left = Vec::new();
        for table in ["relation", "mute", "account_note"] {
            let count = format!("select count(*) as rows from {table} where other_id = $1");
            let other = i64::try_from(bob).expect("an ID");
            left.push(tx.query_one(&count, &[&other], |row| row.i64("rows"))?);
        }
        Ok::<_, StoreError>(left)
    });
    assert_eq!(left, [0, 0, 0]);
    assert_eq!(update_count(store, ann), 7);
}

/// A mute or note that is stored after the others have forgotten the account ends with a USN, too.
fn a_removal_ends_once_nobody_names_the_account(store: &Store) {
    let [ann, bob, cat] = ["ann", "bob", "cat"].map(|name| account(store, name));
    let bobs = account_id(bob);
    set_mute(store, ann, bobs, None, START_MS);
    assert_eq!(set_note(store, ann, bobs, "text"), Ok(()));
    write(store, local_account::root(bob), move |tx| {
        account_removal::begin(tx, bob)
    });
    let is_removed = || {
        let removed = write(store, local_account::root(bob), move |tx| {
            account_removal::remove_some(tx, bob)
        });
        removed.is_done
    };
    for _ in 0..3 {
        assert!(!is_removed());
    }
    assert_eq!(update_count(store, ann), 2);
    let owners = read(store, move |tx| account_removal::owners_naming(tx, bob, 10));
    assert_eq!(owners, [ann]);
    write(store, local_account::root(ann), move |tx| {
        account_removal::forget(tx, ann, bob)
    });
    let expected = [
        ("mute:bob@local", 3, true),
        ("account-note:bob@local", 4, true),
    ];
    assert_eq!(log(&rows(store, ann)), expected);
    // Nobody begins to name it any more.
    let muted = store.write_blocking(local_account::root(cat), move |tx| {
        mute::set(tx, cat, bobs, true, None, START_MS).map(drop)
    });
    let noted = store.write_blocking(local_account::root(cat), move |tx| {
        account_note::set(tx, cat, bobs, "text", START_MS).map(drop)
    });
    for refused in [muted, noted] {
        assert_eq!(refused, Err(StoreError::NoAccount));
    }
    assert!(is_removed());
    assert_eq!(rows(store, cat), []);
}
