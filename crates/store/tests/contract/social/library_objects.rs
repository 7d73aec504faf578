//! What people keep: each change of an object takes the next USN of its account's library.

use std::collections::HashMap;

use driftline_core::social::{
    FilterAction, FilterContext, FilterKeyword, FilterSettings, ListSettings, Mark, MarkedTimeline,
    RelationMove, RepliesPolicy,
};
use driftline_store::{
    AccountId, InstanceId, LocalAccountId, LocalId, Root, Store, StoreError, Tx, account_id,
    social::{
        self, account_removal,
        filter::{self, KeywordChange},
        list, list_member, local_account, marked_post, marker, relation,
    },
    timeline::PostKey,
};

use super::{account, at_once, on_both_with_two, read, write};
use crate::world::START_MS;

on_both!(
    each_change_takes_one_usn_and_what_changes_nothing_takes_none,
    a_list_has_accounts_that_are_followed_and_loses_them_with_the_follow,
    a_filters_parts_change_the_filter,
    an_account_goes_with_what_it_kept,
);

fn copy(number: u64) -> AccountId {
    AccountId::new((1 << 62) + number)
}

fn post(number: u64) -> PostKey {
    PostKey {
        post: LocalId::new((1 << 40) + number),
        instance: InstanceId::new(1),
    }
}

fn follow(store: &Store, who: LocalAccountId, other: AccountId) {
    change(
        store,
        who,
        other,
        RelationMove::Follow { auto_accept: true },
    );
}

fn change(store: &Store, who: LocalAccountId, other: AccountId, done: RelationMove) {
    write(store, relation::root(who, other), move |tx| {
        relation::change(tx, who, other, done, START_MS)
    })
    .expect("a change");
}

fn settings(title: &str) -> ListSettings {
    ListSettings {
        predicate: None,
        notify: false,
        title: title.to_owned(),
        replies_policy: RepliesPolicy::List,
        exclusive: false,
    }
}

fn new_list(store: &Store, who: LocalAccountId, title: &str) -> LocalId {
    let settings = settings(title);
    let created = write(store, local_account::root(who), move |tx| {
        list::create(tx, who, settings.clone(), START_MS)
    });
    created.expect("a list").id
}

/// An object as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    kind: String,
    first_usn: i64,
    usn: i64,
    is_removed: bool,
}

/// The objects of an account in the order of their USNs. Every object has another USN, and the newest has
/// the library's.
fn objects(store: &Store, who: LocalAccountId) -> Vec<Object> {
    let key = i64::try_from(who).expect("an ID");
    let (objects, count) = read(store, move |tx| {
        let objects = tx.query(
            "select kind, first_usn, usn, removed from library_object where account_id = $1
             order by usn",
            &[&key],
            |row| {
                Ok(Object {
                    kind: row.text("kind")?,
                    first_usn: row.i64("first_usn")?,
                    usn: row.i64("usn")?,
                    is_removed: row.bool("removed")?,
                })
            },
        )?;
        let count = social::update_count_later(tx, who)?;
        Ok((objects, tx.rows(count)?.pop().unwrap_or_default()))
    });
    assert_eq!(objects.last().map_or(0, |object| object.usn), count);
    assert!(objects.is_sorted_by(|one, other| one.usn < other.usn));
    assert!(objects.iter().all(|object| object.first_usn <= object.usn));
    objects
}

fn kinds(objects: &[Object]) -> Vec<(&str, i64, i64, bool)> {
    let one = |of: &Object| (of.first_usn, of.usn, of.is_removed);
    let all = objects.iter().map(|of| {
        let (first_usn, usn, is_removed) = one(of);
        (of.kind.as_str(), first_usn, usn, is_removed)
    });
    all.collect()
}

fn each_change_takes_one_usn_and_what_changes_nothing_takes_none(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|text| account(store, text));
    let root = || local_account::root(ann);
    let mark = |mark, is_set| {
        write(store, root(), move |tx| match is_set {
            true => marked_post::set(tx, ann, mark, post(1), START_MS),
            false => marked_post::remove(tx, ann, mark, post(1).post).map(|_| ()),
        });
    };
    for _ in 0..2 {
        mark(Mark::Bookmark, true);
        mark(Mark::Favourite, true);
    }
    mark(Mark::Bookmark, false);
    mark(Mark::Bookmark, false);
    assert_eq!(
        kinds(&objects(store, ann)),
        [("favourite", 2, 2, false), ("bookmark", 1, 3, true)]
    );
    mark(Mark::Bookmark, true);
    assert_eq!(
        kinds(&objects(store, ann)),
        [("favourite", 2, 2, false), ("bookmark", 1, 4, false)],
        "it is the same bookmark again"
    );

    let list = new_list(store, ann, "friends");
    for title in ["friends", "foes"] {
        let set = write(store, root(), move |tx| {
            list::set(tx, ann, list, settings(title))
        });
        assert!(set.expect("a list").is_some());
    }
    let set = |version, id| {
        write(store, root(), move |tx| {
            marker::set(
                tx,
                ann,
                MarkedTimeline::Home,
                LocalId::new(id),
                version,
                START_MS,
            )
        })
    };
    assert_eq!(set(0, 7).map(|marker| marker.version), Ok(1));
    assert_eq!(set(0, 8), Err(marker::MarkerConflict));
    assert_eq!(set(1, 7).map(|marker| marker.version), Ok(1), "as it was");
    assert_eq!(set(1, 6).map(|marker| marker.version), Ok(2));
    let expected = [
        ("favourite", 2, 2, false),
        ("bookmark", 1, 4, false),
        ("list", 5, 6, false),
        ("marker", 7, 8, false),
    ];
    assert_eq!(kinds(&objects(store, ann)), expected);
    assert_eq!(objects(store, bob), [], "another's library");
}

fn a_list_has_accounts_that_are_followed_and_loses_them_with_the_follow(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|text| account(store, text));
    let list = new_list(store, ann, "friends");
    let add = |who: LocalAccountId, members: &[AccountId]| {
        let members = members.to_vec();
        write(store, local_account::root(who), move |tx| {
            list_member::add(tx, who, list, &members, START_MS)
        })
    };
    let members = || read(store, move |tx| list_member::of(tx, ann, list));
    use list_member::AddRefused::{Known, Many, NoList, NotFollowed};
    follow(store, ann, copy(1));
    follow(store, ann, account_id(bob));
    assert_eq!(add(ann, &[copy(1), copy(2)]), Err(NotFollowed));
    assert_eq!(members(), [], "all or none");
    assert_eq!(add(bob, &[copy(1)]), Err(NoList), "another's list");
    assert_eq!(
        add(ann, &[copy(1), account_id(bob), account_id(ann)]),
        Ok(())
    );
    assert_eq!(add(ann, &[copy(1)]), Err(Known));
    assert_eq!(members(), [account_id(ann), account_id(bob), copy(1)]);
    let many: Vec<AccountId> = (10..258).map(copy).collect();
    for one in &many {
        follow(store, ann, *one);
    }
    assert_eq!(add(ann, &many), Err(Many));
    assert_eq!(add(ann, &many[1..]), Ok(()));
    assert_eq!(members().len(), 250);

    let before = objects(store, ann).len();
    change(store, ann, copy(1), RelationMove::Unfollow);
    // Whom one blocks does not follow one any more.
    change(store, bob, account_id(ann), RelationMove::Block);
    let left = members();
    assert!(!left.contains(&copy(1)) && !left.contains(&account_id(bob)));
    assert_eq!(left.len(), 248);
    let all = objects(store, ann);
    assert_eq!(all.len(), before);
    let gone: Vec<&str> = all
        .iter()
        .filter(|object| object.is_removed)
        .map(|object| object.kind.as_str())
        .collect();
    assert_eq!(gone, ["list-member", "follow", "list-member", "follow"]);

    let removed = |who| {
        write(store, local_account::root(who), move |tx| {
            list::remove(tx, who, list)
        })
    };
    assert!(!removed(bob) && removed(ann) && !removed(ann));
    let left = objects(store, ann);
    let mut left = left.iter().filter(|object| !object.is_removed);
    assert!(left.all(|object| object.kind == "follow"));
    assert_eq!(members(), []);
}

fn a_filters_parts_change_the_filter(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|text| account(store, text));
    let settings = FilterSettings {
        title: "pets".to_owned(),
        contexts: vec![FilterContext::Home],
        action: FilterAction::Warn,
        expires_at_ms: None,
    };
    let word = |keyword: &str| FilterKeyword {
        keyword: keyword.to_owned(),
        whole_word: true,
    };
    let (of_new, words) = (settings.clone(), vec![word("cat"), word("dog")]);
    let made = write(store, local_account::root(ann), move |tx| {
        filter::create(tx, ann, of_new.clone(), &words, START_MS)
    });
    let made = made.expect("a filter");
    let id = made.id;
    assert_eq!(made.keywords.len(), 2);
    let set = |who, changes: Vec<KeywordChange>| {
        let settings = settings.clone();
        write(store, local_account::root(who), move |tx| {
            filter::set(tx, who, id, settings.clone(), &changes, START_MS)
        })
    };
    assert_eq!(set(ann, Vec::new()), Ok(made.clone()), "as it was");
    let [cat, dog] = [&made.keywords[0], &made.keywords[1]];
    let horse = filter::Keyword {
        id: dog.id,
        rule: word("horse"),
    };
    let changes = vec![
        KeywordChange::Remove(cat.id),
        KeywordChange::Set(horse),
        KeywordChange::Add(word("fox")),
    ];
    assert_eq!(
        set(bob, changes.clone()),
        Err(filter::FilterRefused::NotFound)
    );
    let changed = set(ann, changes.clone()).expect("a filter");
    let words: Vec<&str> = changed
        .keywords
        .iter()
        .map(|word| &*word.rule.keyword)
        .collect();
    assert_eq!(words, ["horse", "fox"]);
    assert_eq!(set(ann, changes), Err(filter::FilterRefused::NotFound));
    let add = || {
        write(store, local_account::root(ann), move |tx| {
            filter::add_post(tx, ann, id, post(1), START_MS)
        })
    };
    let part = add().expect("a post");
    assert_eq!(add(), Err(filter::FilterRefused::KnownPost));
    assert_eq!(kinds(&objects(store, ann)), [("filter", 1, 3, false)]);
    let remove = |who| {
        write(store, local_account::root(who), move |tx| {
            filter::remove_post(tx, who, part.id)
        })
    };
    assert!(!remove(bob) && remove(ann));
    assert!(write(store, local_account::root(ann), move |tx| {
        filter::remove(tx, ann, id)
    }));
    assert_eq!(kinds(&objects(store, ann)), [("filter", 1, 5, true)]);
    assert_eq!(read(store, move |tx| filter::all(tx, ann)), []);
}

#[test]
fn two_writers_of_a_library_take_different_usns() {
    on_both_with_two(|one, other| {
        let ann = account(one, "ann");
        let mark = |store: &Store, mark, from: u64| {
            for number in from..from + 20 {
                write(store, local_account::root(ann), move |tx| {
                    marked_post::set(tx, ann, mark, post(number), START_MS)
                });
            }
        };
        at_once(
            || mark(one, Mark::Bookmark, 0),
            || mark(other, Mark::Bookmark, 10),
        );
        let all = objects(one, ann);
        let usns: Vec<i64> = all.iter().map(|object| object.usn).collect();
        assert_eq!(usns, (1..=30).collect::<Vec<i64>>());
    });
}

fn an_account_goes_with_what_it_kept(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|text| account(store, text));
    for who in [ann, bob] {
        let list = new_list(store, who, "friends");
        write(store, local_account::root(who), move |tx| {
            let own = account_id(who);
            list_member::add(tx, who, list, &[own], START_MS)?.expect("a member");
            marked_post::set(tx, who, Mark::Bookmark, post(1), START_MS)?;
            marker::set(tx, who, MarkedTimeline::Home, LocalId::new(7), 0, START_MS)
        })
        .expect("a marker");
    }
    let raw = i64::try_from(ann).expect("an ID");
    let many = i64::from(account_removal::CHUNK) + 5;
    write(store, Root::none(), move |tx| {
        for number in 0..many {
            tx.execute_later(
                "insert into marked_post (account_id, post_id, mark, id, instance_id)
                 values ($1, $2, 'favourite', $2, 1)",
                &[&raw, &(1_000 + number)],
            )?;
        }
        Ok(())
    });
    let planned = read(store, move |tx| account_removal::plan(tx, ann));
    assert_eq!(planned.objects, 4);
    write(store, local_account::root(ann), move |tx| {
        account_removal::begin(tx, ann)
    });
    let marked = store.write_blocking(local_account::root(ann), move |tx| {
        marked_post::set(tx, ann, Mark::Bookmark, post(2), START_MS)
    });
    assert_eq!(marked, Err(StoreError::NoAccount));
    let mut calls = 0;
    loop {
        calls += 1;
        let removed = write(store, local_account::root(ann), move |tx| {
            account_removal::remove_some(tx, ann)
        });
        if removed.is_done {
            break;
        }
    }
    assert!(calls > 1, "it goes in chunks");
    let left: HashMap<&str, i64> = read(store, move |tx| {
        let tables = [
            "library_object",
            "marked_post",
            "list",
            "list_member",
            "marker",
        ];
        let mut left = HashMap::new();
        for table in tables {
            left.insert(table, rows(tx, table)?);
        }
        Ok(left)
    });
    // Those of the other one.
    assert_eq!(left["library_object"], 4);
    assert!(
        left.iter()
            .all(|(table, rows)| *table == "library_object" || *rows == 1)
    );
}

fn rows(tx: &mut Tx<'_>, table: &str) -> Result<i64, StoreError> {
    let count = format!("select count(*) as rows from {table}");
    Ok(tx.query_one(&count, &[], |row| row.i64("rows"))?)
}
