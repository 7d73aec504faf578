//! Accounts as sources have shown them: each viewer sees what its own sources were shown.

use driftline_core::{
    names::audience::Audience,
    post::{Post, References},
};
use driftline_store::{
    AccountId, LocalAccountId, Owner, Store, account, author_hosts, reference,
    source::LastPosts,
    timeline::{self, Viewer},
    viewer::ReadableSources,
};

use crate::world::{ANN, BOB, EVERYTHING, World, post};

on_both!(
    a_private_source_changes_nothing_of_what_others_see_of_an_author,
    who_claims_the_names_of_others_learns_nothing_of_what_private_sources_have_seen,
    names_of_other_sources_take_no_place_among_those_that_are_found,
    the_id_of_an_account_that_others_were_shown_says_nothing_of_its_name,
    all_profiles_of_a_source_are_removed_with_their_terms,
);

fn add(store: &Store, owner: LocalAccountId, host: &str, audience: Audience) -> World {
    let (name, origin) = (
        format!("{host}{}", audience.name()),
        format!("https://{host}"),
    );
    World::of_server(store, &name, &origin, Owner::Account(owner), audience)
}

fn by(id: u64, acct: &str, display_name: &str) -> Post {
    let mut post = post(id, "text");
    post.author.acct = acct.to_owned();
    post.author.display_name = display_name.to_owned();
    post.author.raw = format!(r#"{{"note":"{display_name}"}}"#);
    post
}

/// The names under which a viewer's sources have shown an account.
fn names_for(world: &World, viewer: Viewer, id: AccountId) -> Vec<String> {
    let found = world.read(move |tx| {
        let sources = ReadableSources::load(tx, viewer)?.keys();
        account::by_ids(tx, &[id], &sources)
    });
    let shown = found.into_iter().inspect(|account| {
        assert!(account.raw.contains(&account.display_name), "{account:?}");
    });
    let mut names: Vec<String> = shown.map(|account| account.display_name).collect();
    names.sort_unstable();
    names
}

fn a_private_source_changes_nothing_of_what_others_see_of_an_author(store: &Store) {
    let mut public = add(store, BOB, "sim.example", Audience::Public);
    let mut private = add(store, ANN, "sim.example", Audience::Private);
    private.poll(vec![by(1, "eve", "Eve, to friends")]);
    public.poll(vec![by(2, "eve", "Eve")]);
    private.poll(vec![
        by(4, "eve", "Eve, to her dearest"),
        by(3, "eve", "Eve, to friends"),
    ]);
    let id = public.public()[0].account.expect("an author");
    let seen = |viewer| names_for(&public, viewer, id);
    for other in [Viewer::Anonymous, Viewer::Account(BOB), Viewer::Operator] {
        assert_eq!(seen(other), ["Eve"], "{other:?}");
    }
    assert_eq!(seen(Viewer::Account(ANN)), ["Eve", "Eve, to her dearest"]);
    private.set_audience(Audience::Members);
    assert_eq!(seen(Viewer::Account(BOB)), ["Eve", "Eve, to her dearest"]);
    assert_eq!(seen(Viewer::Anonymous), ["Eve"]);
    private.remove(LastPosts::Remove);
    assert_eq!(seen(Viewer::Account(ANN)), ["Eve"]);
}

/// Bob's own server shows authors of another server under their names there.
fn who_claims_the_names_of_others_learns_nothing_of_what_private_sources_have_seen(store: &Store) {
    let mut private = add(store, ANN, "far.example", Audience::Private);
    private.poll(vec![by(1, "eve", "Eve, to friends")]);
    let mut own = add(store, BOB, "bobs.example", Audience::Private);
    let mut eve = by(1, "eve@far.example", "E");
    eve.author.id = "8".into();
    own.poll(vec![by(2, "mallory@far.example", "M"), eve]);
    let bob = Viewer::Account(BOB);
    let key = own.source;
    let shown = own.read(move |tx| timeline::source(tx, key, &EVERYTHING, bob));
    let seen_author: Vec<AccountId> = shown.iter().filter_map(|post| post.account).collect();
    assert_eq!(seen_author.len(), 2);
    for (author, name) in seen_author.iter().zip(["M", "E"]) {
        assert_eq!(names_for(&own, bob, *author), [name]);
    }
    // Once the own server is gone, nothing is left.
    own.remove(LastPosts::Remove);
    for author in seen_author {
        assert!(names_for(&own, bob, author).is_empty());
    }
    let hosts = |viewer| private.read(move |tx| author_hosts::known_to(tx, viewer));
    assert!(hosts(bob).is_empty());
    assert_eq!(hosts(Viewer::Account(ANN)).len(), 1);
}

fn names_of_other_sources_take_no_place_among_those_that_are_found(store: &Store) {
    let mut private = add(store, ANN, "sim.example", Audience::Private);
    let many = (1..=20).rev().map(|n| {
        let mut post = by(n, &format!("a{n:02}"), "A");
        post.author.id = format!("a{n}").as_str().into();
        post
    });
    private.poll(many.collect());
    let mut public = add(store, BOB, "sim.example", Audience::Public);
    let mut last = by(30, "az", "Z");
    last.author.id = "az".into();
    public.poll(vec![last]);
    let found = |viewer, after: &'static str| {
        public.read(move |tx| {
            let sources = ReadableSources::load(tx, viewer)?.keys();
            account::beginning_with(tx, ("a", after), &sources, 5)
        })
    };
    let keys =
        |found: Vec<(String, AccountId)>| found.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
    assert_eq!(keys(found(Viewer::Anonymous, "")), ["az@sim.example"]);
    assert!(found(Viewer::Anonymous, "az@sim.example").is_empty());
    assert_eq!(found(Viewer::Account(ANN), "").len(), 5);
    let after = keys(found(Viewer::Account(ANN), "a05@sim.example"));
    assert_eq!(after[0], "a06@sim.example");
}

/// The ID by which posts of the instance name the account 8 to a viewer.
fn id_for(world: &World, viewer: Viewer) -> AccountId {
    let instance = world.source.instance;
    let references = References {
        accounts: vec!["8".into()],
        ..References::default()
    };
    let found = world.read(move |tx| {
        let readable = ReadableSources::load(tx, viewer)?;
        let ids = reference::local_ids(tx, instance, &references)?;
        ids.for_viewer(tx, &readable)
    });
    found.accounts["8"]
}

fn the_id_of_an_account_that_others_were_shown_says_nothing_of_its_name(store: &Store) {
    let mut public = add(store, BOB, "sim.example", Audience::Public);
    let mut naming = by(1, "ann", "Ann");
    naming.references.accounts = vec!["8".into()];
    public.poll(vec![naming]);
    let before = id_for(&public, Viewer::Anonymous);
    let mut private = add(store, ANN, "sim.example", Audience::Private);
    let mut eve = by(2, "eve", "Eve");
    eve.author.id = "8".into();
    private.poll(vec![eve.clone()]);
    assert_eq!(id_for(&public, Viewer::Anonymous), before);
    assert_eq!(id_for(&public, Viewer::Account(BOB)), before);
    let known = id_for(&public, Viewer::Account(ANN));
    assert_ne!(known, before);
    public.poll(vec![eve]);
    assert_eq!(id_for(&public, Viewer::Anonymous), known);
}

fn all_profiles_of_a_source_are_removed_with_their_terms(store: &Store) {
    let mut public = add(store, BOB, "sim.example", Audience::Public);
    let mut private = add(store, ANN, "sim.example", Audience::Private);
    // More than are removed at once.
    let ids: Vec<u64> = (1..=1_050).collect();
    for ids in ids.chunks(350) {
        let posts = ids.iter().rev().map(|id| {
            let mut post = by(*id, &format!("a{id}"), "Cat");
            post.author.id = format!("a{id}").as_str().into();
            post
        });
        private.poll(posts.collect());
    }
    public.poll(vec![by(2_000, "eve", "Eve")]);
    let instance = public.source.instance.raw().cast_signed();
    let count = |table: &'static str| {
        public.read(move |tx| {
            let sql = format!("select count(*) from {table} where instance_id = $1");
            Ok(tx.query_one(&sql, &[&instance], |row| row.i64(0))?)
        })
    };
    let counts = || [count("account_profile"), count("nickname_term")];
    let before = counts();
    assert_eq!(before[0], 1_051);
    private.remove(LastPosts::Remove);
    let after = counts();
    assert_eq!(after[0], 1);
    assert!((1..10).contains(&after[1]), "{before:?} {after:?}");
}
