//! Forgetting an instance: what hangs from it goes, what is of others stays.

use driftline_core::{api::Api, names::audience::Audience};
use driftline_store::{
    InstanceId, Owner, Store, StoreError, Tx, Viewer,
    credential::{self, NewCredential},
    instance,
    instance_removal::{self, Part, Step},
    known_instances, local_ids,
    source::LastPosts,
    testing::IndexWatch,
};

use crate::world::{START_MS, World, names, posts, read, write};

on_both!(an_instance_is_forgotten_with_all_that_hangs_from_it);

/// A source of another instance.
fn elsewhere(store: &Store) -> World {
    let origin = "https://elsewhere.example";
    let (owner, audience) = (Owner::Operator, Audience::Public);
    let mut world = World::of_server(store, "elsewhere", origin, owner, audience);
    world.poll(Vec::new());
    world
}

fn remove_next(store: &Store, instance: InstanceId, part: Part, after: &str) -> Option<Step> {
    let after = after.to_owned();
    write(store, instance::root(instance), move |tx| {
        instance_removal::remove_next(tx, instance, part, &after)
    })
}

fn remove(store: &Store, instance: InstanceId) -> bool {
    write(store, instance::root(instance), move |tx| {
        instance_removal::remove(tx, instance)
    })
}

/// The rows of each table that hang from an instance.
fn rows(store: &Store, instance: InstanceId) -> Vec<(&'static str, i64)> {
    let id = instance.raw().cast_signed();
    let count = move |tx: &mut Tx<'_>| {
        let counted = TABLES.iter().map(|table| {
            let sql = format!("select count(*) from {table} where instance_id = $1");
            Ok((*table, tx.query_one(&sql, &[&id], |row| row.i64(0))?))
        });
        counted.collect::<Result<Vec<_>, StoreError>>()
    };
    let counts = read(store, count);
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn an_instance_is_forgotten_with_all_that_hangs_from_it(store: &Store) {
    let mut home = World::readable(store, "home");
    let mut other = elsewhere(store);
    home.poll(posts(1..=3));
    other.poll(posts(1..=1_500));
    let (instance, at_home) = (other.source.instance, home.timeline());
    let mut given: Vec<_> = other.timeline().iter().map(|post| post.id).collect();
    let new = NewCredential {
        name: "reader".to_owned(),
        origin: "https://elsewhere.example".to_owned(),
        api: Api::Mastodon,
        token: None,
        monthly_posts: None,
    };
    let added = store.write_blocking(local_ids::root(), move |tx| {
        credential::add(tx, &new, START_MS)
    });
    let key = added.expect("a write").expect("a credential");
    let counts = read(store, |tx| {
        known_instances::post_counts(tx, Viewer::Operator)
    });
    assert_eq!(counts[&instance], 1_500);
    let contents = store.read_blocking(move |tx| instance_removal::contents(tx, instance));
    let contents = contents.expect("contents");
    assert_eq!((contents.posts, contents.accounts), (1_500, 1));
    assert!(!remove(store, instance), "it has a source");

    // Posts that were kept belong to no source.
    other.remove(LastPosts::Keep);
    assert!(!remove(store, instance), "it has a credential");
    let gone = store.write_blocking(local_ids::root(), move |tx| credential::remove(tx, key));
    assert!(gone.expect("a removal"));
    assert!(!remove(store, instance), "it has posts");
    let mut watch = IndexWatch::default();
    watch.check(store);
    let mut removed = Vec::new();
    for part in [Part::Posts, Part::Accounts] {
        let mut after = String::new();
        while let Some(step) = remove_next(store, instance, part, &after) {
            watch.check(store);
            removed.push(step.removed);
            after = step.after;
        }
    }
    assert_eq!(removed, [1_000, 500, 1]);
    assert!(remove(store, instance));
    assert!(
        !rows(store, instance)
            .iter()
            .any(|(table, _)| *table != "entry_alias")
    );
    let known = read(store, instance::all);
    assert_eq!(known.len(), 1);
    assert_eq!(home.timeline(), at_home);
    assert_eq!(names(&home.public()), ["3", "2", "1"]);

    // It may come back, under IDs that were never given.
    let mut again = elsewhere(store);
    assert_ne!(again.source.instance, instance);
    again.poll(posts(1..=3));
    let new: Vec<_> = again.timeline().iter().map(|post| post.id).collect();
    assert_eq!(new.len(), 3);
    given.retain(|id| new.contains(id));
    assert_eq!(given, []);
}

const TABLES: [&str; 21] = [
    "account",
    "claim_lease",
    "count_history",
    "credential",
    "entry",
    "entry_alias",
    "fetched_account",
    "freshness",
    "gap",
    "instance_info",
    "learned_state",
    "library",
    "look_up_ability",
    "outbox",
    "pending_lookup",
    "post",
    "post_text",
    "quarantine",
    "quota",
    "schedule",
    "upstream_post",
];
