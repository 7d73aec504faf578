//! Copies of this server's own accounts, which other servers show.

use driftline_core::{
    names::{acct::AcctKey, audience::Audience},
    social::{Nickname, Profile},
};
use driftline_store::{
    Owner, Store, account_id,
    social::{
        local_account, profile,
        relation::{self, FollowOptions},
    },
    timeline::{self, HomeRule, Viewer},
    viewer::ReadableSources,
};

use super::{account, name, read, write};
use crate::world::{EVERYTHING, START_MS, World, post};

on_both!(
    a_copy_of_an_own_account_changes_nothing_of_it,
    accounts_are_found_by_many_names,
);

fn a_copy_of_an_own_account_changes_nothing_of_it(store: &Store) {
    let (ann, bob) = (account(store, "ann"), account(store, "bob"));
    let own = Profile {
        bio: "Hello".to_owned(),
        ..Profile::default()
    };
    let stored = own.clone();
    write(store, local_account::root(ann), move |tx| {
        let nickname = Nickname::new("Ann").expect("a nickname");
        profile::set(tx, ann, &nickname, &stored, START_MS)
    })
    .expect("a profile");
    let root = relation::root(bob, account_id(ann));
    write(store, root, move |tx| {
        relation::follow(tx, bob, account_id(ann), FollowOptions::default(), START_MS)
    })
    .expect("a follow");
    let before = read(store, move |tx| local_account::by_id(tx, ann));
    let origin = "https://b.example";
    let mut world = World::of_server(store, "b", origin, Owner::Operator, Audience::Public);
    let mut lie = post(1, "text");
    lie.author.acct = "ann@own.example".to_owned();
    // Its ID there is that of the account here.
    lie.author.id = ann.to_string().as_str().into();
    lie.author.display_name = "LIE".to_owned();
    lie.author.raw = r#"{"note":"LIE","statuses_count":99}"#.to_owned();
    world.poll(vec![lie]);
    let copy = AcctKey::new("ann@own.example", "")
        .expect("a name")
        .account_id();
    assert_eq!(world.public()[0].account.map(|id| id.raw()), Some(copy));
    let after = read(store, move |tx| local_account::by_id(tx, ann));
    assert_eq!(after, before);
    let kept = read(store, move |tx| profile::load(tx, ann));
    assert_eq!(kept, own);
    // It is a post neither of the account, nor for those who follow the account.
    let viewer = Viewer::Account(bob);
    let of_ann = read(store, move |tx| {
        timeline::by_author(tx, &EVERYTHING, viewer, account_id(ann), None)
    });
    assert_eq!(of_ann.posts, []);
    let home = read(store, move |tx| {
        let followed = relation::followed(tx, bob)?.into_iter();
        let rule = HomeRule {
            sources: Vec::new(),
            authors: followed.map(|row| row.other).collect(),
        };
        assert_eq!(rule.authors, [account_id(ann)]);
        let readable = ReadableSources::load(tx, viewer)?;
        timeline::home(tx, &EVERYTHING, &readable, &rule, None)
    });
    assert_eq!(home.posts, []);
}

fn accounts_are_found_by_many_names(store: &Store) {
    let (ann, bob) = (account(store, "Ann"), account(store, "bob"));
    let found = read(store, |tx| {
        local_account::by_names(tx, &[name("ann"), name("BOB"), name("nobody")])
    });
    let mut ids: Vec<_> = found.into_iter().map(|account| account.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [ann, bob]);
    assert_eq!(read(store, |tx| local_account::by_names(tx, &[])), []);
}
