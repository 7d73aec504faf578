//! What instances say of themselves, and the hosts of authors.

use driftline_core::{
    names::audience::Audience,
    post::{Post, Visibility},
    social::InstanceSelfDescription,
};
use driftline_store::{
    InstanceId, Owner, Store, Viewer, author_hosts, instance,
    instance_info::{self, StoredInstanceInfo},
    instance_removal,
    source::{self, LastPosts},
};

use crate::world::{ANN, World, post, read, write};

on_both!(
    an_instance_is_asked_by_one_and_what_it_said_is_kept,
    of_many_who_ask_at_once_one_does,
    what_an_instance_said_goes_with_it,
    hosts_of_authors_are_known_as_their_authors_are,
);

fn claim(store: &Store, instance: InstanceId, next_at_ms: i64, now_ms: i64) -> bool {
    write(store, instance::root(instance), move |tx| {
        instance_info::claim(tx, instance, next_at_ms, now_ms)
    })
}

fn said(name: &str, fetched_at_ms: i64) -> StoredInstanceInfo {
    let said = InstanceSelfDescription {
        name: name.to_owned(),
        description: "two\nlines".to_owned(),
        version: "1.2".to_owned(),
        software_name: "sim".to_owned(),
        extensions: vec!["a\"b".to_owned(), "c".to_owned()],
        maintainer_name: "Ann".to_owned(),
    };
    StoredInstanceInfo {
        info: said.into(),
        fetched_at_ms,
    }
}

fn keep(store: &Store, instance: InstanceId, said: Option<StoredInstanceInfo>, next_at_ms: i64) {
    write(store, instance::root(instance), move |tx| {
        instance_info::store(tx, instance, said.as_ref(), next_at_ms)
    });
}

fn an_instance_is_asked_by_one_and_what_it_said_is_kept(store: &Store) {
    let world = World::readable(store, "home");
    let id = world.source.instance;
    let asks_at = || world.read(move |tx| instance_info::asks_at_ms(tx, id));
    let all = || world.read(instance_info::all);
    assert_eq!((asks_at(), all().len()), (None, 0));
    assert!(claim(store, id, 100, 10));
    assert!(!claim(store, id, 110, 20), "somebody asks it");
    assert_eq!(asks_at(), Some(100));
    assert!(all().is_empty(), "it has said nothing");
    keep(store, id, Some(said("one", 30)), 200);
    assert_eq!(all()[&id], said("one", 30));
    assert!(!claim(store, id, 300, 199));
    assert!(claim(store, id, 300, 200));
    // It did not answer: what it said before stays.
    keep(store, id, None, 400);
    assert_eq!((asks_at(), &all()[&id]), (Some(400), &said("one", 30)));
    keep(store, id, Some(said("two", 500)), 600);
    assert_eq!((asks_at(), &all()[&id]), (Some(600), &said("two", 500)));
}

fn of_many_who_ask_at_once_one_does(store: &Store) {
    let id = World::readable(store, "home").source.instance;
    let claimed = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| claim(store, id, 100, 10)))
            .collect();
        let all = all.into_iter().map(|one| one.join().expect("a claim"));
        all.filter(|claimed| *claimed).count()
    });
    assert_eq!(claimed, 1);
}

fn what_an_instance_said_goes_with_it(store: &Store) {
    let world = World::readable(store, "home");
    let (id, key) = (world.source.instance, world.source);
    assert!(claim(store, id, 100, 10));
    keep(store, id, Some(said("one", 30)), 200);
    world.write(move |tx| source::remove(tx, key, LastPosts::Remove));
    let removed = store.write_blocking(instance::root(id), move |tx| {
        instance_removal::remove(tx, id)
    });
    assert!(removed.expect("a removal"));
    assert!(read(store, instance_info::all).is_empty());
    // Whoever was about to ask it does not, and stores nothing.
    let claimed = store.write_blocking(instance::root(id), move |tx| {
        instance_info::claim(tx, id, 300, 250)
    });
    assert!(claimed.is_err());
    let stored = store.write_blocking(instance::root(id), move |tx| {
        instance_info::store(tx, id, Some(&said("one", 30)), 200)
    });
    assert!(stored.is_err());
    let asks_at = store.read_blocking(move |tx| instance_info::asks_at_ms(tx, id));
    assert_eq!(asks_at, Ok(None));
}

fn by(id: u64, acct: &str, visibility: Visibility) -> Post {
    let mut post = post(id, "text");
    post.author.id = format!("{}", 1_000 + id).as_str().into();
    post.author.acct = acct.to_owned();
    post.visibility = visibility;
    post
}

fn hosts_of_authors_are_known_as_their_authors_are(store: &Store) {
    let mut public = World::owned(store, "public", Owner::Operator, Audience::Public);
    let mut hidden = World::owned(store, "home", Owner::Account(ANN), Audience::Private);
    public.poll(vec![
        by(3, "own", Visibility::Public),
        by(2, "one@Far.example:81", Visibility::Public),
        by(1, "one@hidden.example", Visibility::Private),
    ]);
    hidden.poll(vec![by(4, "two@near.example", Visibility::Public)]);
    let hosts = |viewer| {
        let known = public.read(move |tx| author_hosts::known_to(tx, viewer));
        known.into_iter().collect::<Vec<_>>()
    };
    let world = ["far.example:81", "sim.example"];
    assert_eq!(hosts(Viewer::Anonymous), world);
    assert_eq!(
        hosts(Viewer::Account(ANN)),
        [world[0], "near.example", world[1]]
    );
    assert_eq!(
        hosts(Viewer::Operator),
        [world[0], "hidden.example", world[1]]
    );
}
