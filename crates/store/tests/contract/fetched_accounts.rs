//! Accounts that were fetched by their names, of which no post is stored.

use driftline_core::{names::acct::AcctKey, post::Author};
use driftline_store::{
    AccountId, LocalAccountId, Owner, SourceKey, Store, Viewer, account, author_hosts, local_ids,
    source::{self, LastPosts},
    thread_source::{self, FetchedFor},
    timeline,
    viewer::ReadableSources,
};

use crate::world::{START_MS, World, posts};

on_both!(
    an_account_is_known_to_those_for_whom_it_was_fetched,
    what_has_no_name_or_id_is_not_stored,
);

fn cat() -> Author {
    Author {
        id: "70".into(),
        acct: "cat@far.example".to_owned(),
        display_name: "Cat".to_owned(),
        url: Some("https://far.example/@cat".to_owned()),
        uri: None,
        raw: r#"{"id":"70","acct":"cat@far.example"}"#.to_owned(),
    }
}

fn id_of(acct: &str) -> AccountId {
    AccountId::new(AcctKey::new(acct, "").expect("a name").account_id())
}

fn fetch(store: &Store, world: &World, whose: FetchedFor, author: Author) -> (SourceKey, bool) {
    let instance = world.source.instance;
    let key = store.write_blocking(local_ids::root(), move |tx| {
        let instance = driftline_store::instance::by_id(tx, instance)?.expect("an instance");
        thread_source::find_or_add(tx, &instance, whose, START_MS)
    });
    let key = key.expect("a source");
    let new = store.write_blocking(source::root(key), move |tx| {
        thread_source::store_account(tx, key, &author, START_MS)
    });
    (key, new.expect("a write"))
}

fn knows(world: &World, viewer: Viewer) -> bool {
    let id = id_of("cat@far.example");
    let known = world.read(move |tx| timeline::known_authors(tx, &[id], viewer));
    known.contains(&id)
}

fn an_account_is_known_to_those_for_whom_it_was_fetched(store: &Store) {
    let world = World::readable(store, "home");
    let (ann, bob) = (LocalAccountId::new(1 << 50), LocalAccountId::new(1 << 51));
    let viewers = [
        Viewer::Account(ann),
        Viewer::Account(bob),
        Viewer::Operator,
        Viewer::Anonymous,
    ];
    let known = || viewers.map(|viewer| knows(&world, viewer));
    let hosts = |viewer| world.read(move |tx| author_hosts::known_to(tx, viewer));
    assert_eq!(known(), [false; 4]);
    let whose = FetchedFor::Owner(Owner::Account(ann));
    let (of_ann, new) = fetch(store, &world, whose, cat());
    assert!(new);
    assert_eq!(known(), [true, false, false, false]);
    assert_eq!(hosts(Viewer::Account(ann)).len(), 1);
    assert!(hosts(Viewer::Account(bob)).is_empty());
    // Again, under the name that it has now.
    let renamed = Author {
        display_name: "Cats".to_owned(),
        ..cat()
    };
    assert_eq!(fetch(store, &world, whose, renamed), (of_ann, false));
    let stored = world.read(move |tx| account::by_ids(tx, &[id_of("cat@far.example")], &[of_ann]));
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].display_name, "Cats");
    // It goes with what it was fetched for.
    world.write(move |tx| source::remove(tx, of_ann, LastPosts::Remove));
    assert_eq!(known(), [false; 4]);
    assert!(fetch(store, &world, FetchedFor::World, cat()).1);
    assert_eq!(known(), [true; 4]);
}

fn what_has_no_name_or_id_is_not_stored(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts(1..=1));
    let count = || {
        let found = world.read(|tx| {
            let sources = ReadableSources::load(tx, Viewer::Operator)?.keys();
            account::beginning_with(tx, ("", ""), &sources, 10)
        });
        found.len()
    };
    assert_eq!(count(), 1);
    for author in [
        Author {
            acct: String::new(),
            ..cat()
        },
        Author {
            id: "".into(),
            ..cat()
        },
    ] {
        assert!(!fetch(store, &world, FetchedFor::World, author).1);
    }
    assert_eq!(count(), 1);
    assert!(!knows(&world, Viewer::Anonymous));
}
