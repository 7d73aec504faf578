//! Drafts, filters and the own profile, as devices and programs of people change them.

use driftline_core::{
    social::{Nickname, Profile},
    sync::{ChangeResult, ObjectKey},
};
use driftline_db::Column;
use driftline_store::{
    InstanceId, LocalAccountId, LocalId, Store,
    social::{
        filter::{self, Filter},
        local_account, profile,
    },
    sync::{self, Resolved},
    timeline::PostKey,
};
use serde_json::{Value, json};

use super::{Replica, change, done, living, post_name, push, push_resolved, rows, update_count};
use crate::{
    social::account,
    world::{START_MS, World, post, read, write},
};

on_both!(
    a_draft_is_written_changed_and_deleted,
    an_account_has_a_bounded_number_of_drafts,
    a_filter_of_a_device_keeps_the_ids_of_its_parts,
    each_change_of_a_filter_takes_one_usn_by_whomever,
    a_push_reads_the_filters_that_it_changes_alone,
    the_own_profile_is_one_object_from_its_first_change_on,
);

const DRAFT: &str = "draft:000000000000000000000000000000d1";
const FILTER: &str = "filter:000000000000000000000000000000f1";
const PROFILE: &str = "profile:self";

/// The only change's status, its USN and its value or reason.
fn result(pushed: &sync::Pushed) -> (&str, u64, Value) {
    match pushed.results.as_slice() {
        [ChangeResult::Done { usn, value, .. }] => {
            ("done", usn.get(), value.clone().unwrap_or_default())
        }
        [ChangeResult::Conflict { usn, value, .. }] => {
            ("conflict", usn.get(), value.clone().unwrap_or_default())
        }
        [ChangeResult::Refused { reason, .. }] => ("refused", 0, reason.as_str().into()),
        other => panic!("{other:?}"),
    }
}

fn pulled(store: &Store, account: LocalAccountId, key: &str) -> Value {
    let mut replica = Replica::default();
    replica.pull(store, account);
    assert_eq!(replica.usns(), living(store, account));
    let object = replica.objects.remove(key);
    object.map(|(_, value)| value).unwrap_or_default()
}

fn a_draft_is_written_changed_and_deleted(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let draft = |base, text: &str| {
        let value = json!({"text": text, "in_reply_to": post_name(1), "later": true});
        vec![change(DRAFT, base, value)]
    };
    let stored = |text: &str| {
        json!({
            "text": text, "spoiler_text": "", "visibility": null, "sensitive": false,
            "language": null, "in_reply_to": post_name(1),
        })
    };
    let first = push(store, ann, draft(0, "one"));
    assert_eq!(result(&first), ("done", 1, stored("one")));
    let second = push(store, ann, draft(1, "two"));
    assert_eq!(result(&second), ("done", 2, stored("two")));
    let same = push(store, ann, draft(1, "two"));
    assert_eq!(result(&same), ("done", 2, stored("two")));
    let late = push(store, ann, draft(1, "three"));
    assert_eq!(result(&late), ("conflict", 2, stored("two")));
    assert_eq!(pulled(store, ann, DRAFT), stored("two"));
    assert_eq!(pulled(store, bob, DRAFT), Value::Null);
    let deleted = push(store, ann, vec![change(DRAFT, 2, Value::Null)]);
    assert_eq!(done(&deleted), [3]);
    assert_eq!(pulled(store, ann, DRAFT), Value::Null);
    assert_eq!(done(&push(store, ann, draft(3, "again"))), [4]);
    assert_eq!(pulled(store, ann, DRAFT), stored("again"));
    assert_eq!(rows(store, ann).len(), 1);
}

fn an_account_has_a_bounded_number_of_drafts(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let owner = i64::try_from(ann).expect("an ID");
    write(store, local_account::root(ann), move |tx| {
        Ok(tx.execute_many_later(
            "insert into draft (account_id, id, content)
             select $1, r.id, $2 from {rows as r(id)}",
            &[&owner, &"content"],
            &[Column::i64(1..=1_000_i64)],
        )?)
    });
    let draft = || vec![change(DRAFT, 0, json!({"text": "one more"}))];
    let refused = push(store, ann, draft());
    let reason = json!("an account has at most 1000 drafts");
    assert_eq!(result(&refused), ("refused", 0, reason));
    assert_eq!(update_count(store, ann), 0);
    assert_eq!(done(&push(store, bob, draft())), [1]);
}

fn filter_value(keywords: &[&str], posts: &[&str]) -> Value {
    let keywords: Vec<Value> = keywords
        .iter()
        .map(|keyword| json!({"keyword": keyword, "whole_word": true}))
        .collect();
    json!({
        "title": "pets", "contexts": ["home"], "action": "hide", "expires_at": null,
        "keywords": keywords, "posts": posts,
    })
}

fn only_filter(store: &Store, account: LocalAccountId) -> Filter {
    let mut filters = read(store, move |tx| filter::all(tx, account));
    assert_eq!(filters.len(), 1);
    filters.remove(0)
}

fn keywords(filter: &Filter) -> Vec<(LocalId, &str)> {
    let keywords = filter.keywords.iter();
    keywords
        .map(|keyword| (keyword.id, keyword.rule.keyword.as_str()))
        .collect()
}

/// The post 1, and what devices call it.
pub(super) fn resolved(store: &Store) -> (Resolved, PostKey) {
    let mut world = World::readable(store, "home");
    world.poll(vec![post(1, "text")]);
    let key = world.timeline()[0].key();
    let resolved = Resolved {
        posts: [(post_name(1), key)].into(),
        ..Resolved::default()
    };
    (resolved, key)
}

fn a_filter_of_a_device_keeps_the_ids_of_its_parts(store: &Store) {
    let ann = account(store, "ann");
    let (resolved, key) = resolved(store);
    let name = post_name(1);
    let set = |base, keywords: &[&str], posts: &[&str]| {
        let changes = vec![change(FILTER, base, filter_value(keywords, posts))];
        push_resolved(store, ann, changes, resolved.clone())
    };
    let first = set(0, &["cat", "dog"], &["https://nowhere.example/1", &name]);
    let stored = filter_value(&["cat", "dog"], &[&name]);
    assert_eq!(
        result(&first),
        ("done", 1, stored),
        "without the unknown post"
    );
    let made = only_filter(store, ann);
    assert_eq!(
        made.posts.iter().map(|part| part.key).collect::<Vec<_>>(),
        [key]
    );
    // A post without a name, which no device knows.
    let unnamed = PostKey {
        post: LocalId::new((1 << 40) + 1),
        instance: InstanceId::new(1),
    };
    let id = made.id;
    let added = write(store, local_account::root(ann), move |tx| {
        filter::add_post(tx, ann, id, unnamed, START_MS)
    });
    let added = added.expect("a post");
    let second = set(2, &["dog", "fox", "dog"], &[&name, &name]);
    assert_eq!(done(&second), [3]);
    let changed = only_filter(store, ann);
    assert_eq!(changed.id, made.id);
    let [_, dog] = made.keywords.as_slice() else {
        panic!("{made:?}");
    };
    let shown = keywords(&changed);
    assert_eq!(shown[0], (dog.id, "dog"));
    assert_eq!((shown[1].1, shown[2].1, shown.len()), ("fox", "dog", 3));
    assert_eq!(changed.posts, [made.posts[0], added]);
    let same = set(3, &["dog", "fox", "dog"], &[&name]);
    assert_eq!(result(&same), ("done", 3, Value::Null), "as it was");
    assert_eq!(done(&set(3, &["dog"], &[])), [4]);
    assert_eq!(only_filter(store, ann).posts, [added]);
    let names = read(store, move |tx| {
        let key = ObjectKey::parse(FILTER).expect("a key");
        sync::filter_post_names(tx, ann, &key)
    });
    assert!(names.is_empty());
}

fn each_change_of_a_filter_takes_one_usn_by_whomever(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let of_device = |base, title: &str| {
        let mut value = filter_value(&["cat"], &[]);
        value["title"] = json!(title);
        vec![change(FILTER, base, value)]
    };
    assert_eq!(done(&push(store, ann, of_device(0, "pets"))), [1]);
    let known = only_filter(store, ann);
    let (id, mut settings) = (known.id, known.settings);
    settings.title = "animals".to_owned();
    let set = write(store, local_account::root(ann), move |tx| {
        filter::set(tx, ann, id, settings.clone(), &[], START_MS)
    });
    assert!(set.is_ok());
    let late = push(store, ann, of_device(1, "beasts"));
    let (status, usn, value) = result(&late);
    assert_eq!(
        (status, usn, &value["title"]),
        ("conflict", 2, &json!("animals"))
    );
    let many = filter_value(&["cat"; 101], &[]);
    let refused = push(store, ann, vec![change(FILTER, 2, many)]);
    assert_eq!(result(&refused).0, "refused");
    let mut resolved = Resolved::default();
    let key = ObjectKey::parse(FILTER).expect("a key");
    resolved.filters_over_limit.insert(key);
    let refused = push_resolved(store, ann, of_device(2, "beasts"), resolved);
    assert_eq!(result(&refused).0, "refused");
    assert_eq!(update_count(store, ann), 2);
    // The same key is another object of another account.
    assert_eq!(done(&push(store, bob, of_device(0, "pets"))), [1]);
    let deleted = push(store, ann, vec![change(FILTER, 2, Value::Null)]);
    assert_eq!(done(&deleted), [3]);
    assert_eq!(read(store, move |tx| filter::all(tx, ann)), []);
    assert_eq!(only_filter(store, bob).settings.title, "pets");
}

fn a_push_reads_the_filters_that_it_changes_alone(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    let (resolved, _) = resolved(store);
    let set = |base, keyword: &str| {
        let value = filter_value(&[keyword], &[&post_name(1)]);
        push_resolved(
            store,
            ann,
            vec![change(FILTER, base, value)],
            resolved.clone(),
        )
    };
    assert_eq!(done(&set(0, "cat")), [1]);
    let owner = i64::try_from(ann).expect("an ID");
    write(store, local_account::root(ann), move |tx| {
        // No program can read it.
        tx.execute(
            "insert into filter (account_id, id, title, contexts, action, expires_at_ms)
             values ($1, 1, 'other', 'home', 'sink', null)",
            &[&owner],
        )?;
        tx.execute(
            "insert into filter_post (account_id, id, filter_id, instance_id, post_id)
             values ($1, 1, 1, 1, 1)",
            &[&owner],
        )?;
        Ok(())
    });
    assert_eq!(done(&set(1, "dog")), [2]);
    let counts = [ann, bob].map(|account| {
        read(store, move |tx| {
            let key = ObjectKey::parse(FILTER).expect("a key");
            filter::count_posts(tx, account, &[&key])
        })
    });
    assert_eq!(counts, [1, 0]);
}

fn the_own_profile_is_one_object_from_its_first_change_on(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|name| account(store, name));
    assert_eq!(pulled(store, ann, PROFILE), Value::Null);
    let picture = Some("https://files.example/a.webp".to_owned());
    let set = |bio: &str| {
        let profile = Profile {
            bio: bio.to_owned(),
            avatar: picture.clone(),
            ..Profile::default()
        };
        let nickname = Nickname::new("Ann").expect("a nickname");
        let set = write(store, local_account::root(ann), move |tx| {
            profile::set(tx, ann, &nickname, &profile, START_MS)
        });
        assert_eq!(set, Ok(()));
    };
    set("Hello");
    set("Hello");
    assert_eq!(update_count(store, ann), 1, "as it was");
    let value = |note: &str, fields: Value| {
        json!({
            "display_name": "Ann", "note": note, "fields": fields, "locked": false,
            "bot": false, "discoverable": false,
        })
    };
    assert_eq!(pulled(store, ann, PROFILE), value("Hello", json!([])));
    let fields = json!([{"name": "home", "value": "https://ann.example"}]);
    let with_empty = json!([{"name": "", "value": ""}, fields[0]]);
    let changed = vec![change(PROFILE, 1, value("Hi", with_empty))];
    let pushed = push(store, ann, changed);
    assert_eq!(result(&pushed), ("done", 2, value("Hi", fields.clone())));
    let stored = read(store, move |tx| profile::load(tx, ann));
    assert_eq!((stored.bio.as_str(), &stored.avatar), ("Hi", &picture));
    set("Hello again");
    let late = push(
        store,
        ann,
        vec![change(PROFILE, 2, value("Hi!", json!([])))],
    );
    assert_eq!(
        result(&late),
        ("conflict", 3, value("Hello again", json!([])))
    );
    let long = value(&"x".repeat(1_025), json!([]));
    let refused = push(store, ann, vec![change(PROFILE, 3, long)]);
    assert_eq!(result(&refused).0, "refused");
    assert_eq!(rows(store, ann).len(), 1);
    assert_eq!(update_count(store, ann), 3);
    // Another account's is its own, and a device may make it.
    let made = push(store, bob, vec![change(PROFILE, 0, value("Bob's", fields))]);
    assert_eq!(done(&made), [1]);
}
