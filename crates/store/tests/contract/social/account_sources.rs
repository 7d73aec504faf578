//! Sources that accounts own: their number, their names, and what becomes of what only they had.

use driftline_core::{names::audience::Audience, post::Visibility};
use driftline_store::{
    LocalAccountId, LocalId, Owner, SourceKey, Store, Viewer, credential, find, is_visible,
    local_ids,
    social::{
        account_source::{self, SourceRefused},
        local_account,
    },
    source::{self, LastPosts, NameRefused, NewSource, TokenLocation},
    testing::new_source,
};

use super::{account, name};
use crate::world::{World, post, read, with, write};

on_both!(
    an_account_has_so_many_sources_under_names_of_its_own,
    an_account_shows_sources_to_the_world_only_by_the_operators_leave,
    tokens_are_of_their_owner_and_go_with_the_last_source_that_uses_them,
    what_only_an_accounts_private_source_has_the_operator_does_not_see,
);

fn add(store: &Store, of: &str, new: NewSource) -> Result<SourceKey, SourceRefused> {
    let owner = read(store, {
        let name = name(of);
        move |tx| local_account::by_name(tx, &name)
    })
    .expect("an account");
    write(store, local_account::root(owner.id), move |tx| {
        account_source::add(tx, owner.id, &new, 2, 1)
    })
}

/// An account that may show its sources to the world.
fn publisher(store: &Store, name: &str) -> LocalAccountId {
    let id = account(store, name);
    publishing(store, id, true);
    id
}

fn publishing(store: &Store, id: LocalAccountId, may_publish: bool) {
    write(store, local_account::root(id), move |tx| {
        local_account::set_may_publish(tx, id, may_publish)
    });
}

fn token(text: &str) -> Option<TokenLocation> {
    Some(TokenLocation::Sealed(text.to_owned()))
}

fn an_account_has_so_many_sources_under_names_of_its_own(store: &Store) {
    publisher(store, "Ann");
    publisher(store, "bob");
    let named = |name: &str| new_source(name);
    let first = add(store, "ann", named("mine"));
    assert!(first.is_ok(), "{first:?}");
    let taken = SourceRefused::Name(NameRefused::Taken);
    assert_eq!(add(store, "ANN", named("mine")), Err(taken));
    let bad = SourceRefused::Name(NameRefused::Bad);
    assert_eq!(add(store, "ann", named("a/b")), Err(bad));
    assert!(
        add(store, "bob", named("mine")).is_ok(),
        "it is told nothing of the other"
    );
    let private = NewSource {
        allow_private: true,
        ..named("two")
    };
    assert_eq!(
        add(store, "ann", private),
        Err(SourceRefused::PrivateNetwork)
    );
    assert!(add(store, "ann", named("two")).is_ok());
    let ann = store.read_blocking(|tx| local_account::by_name(tx, &name("ann")));
    let ann = ann.expect("a read").expect("an account").id;
    let own = store.read_blocking(move |tx| account_source::list(tx, ann));
    let times: Vec<_> = own
        .expect("a read")
        .iter()
        .map(|of| of.created_at_ms)
        .collect();
    assert_eq!(times, [1, 2], "no two of one time");
    assert_eq!(
        add(store, "ann", named("three")),
        Err(SourceRefused::TooMany(2))
    );

    let by_name = |name: &'static str| {
        read(store, move |tx| source::by_name(tx, name)).map(|source| source.name)
    };
    assert_eq!(by_name("ANN/mine").as_deref(), Some("ann/mine"));
    assert_eq!(by_name("mine"), None);
    let key = first.expect("it was added");
    let rename = |to: &'static str| {
        write(store, source::root(key), move |tx| {
            source::rename(tx, key, to)
        })
    };
    assert_eq!(rename("ann/two"), Err(NameRefused::Taken));
    assert_eq!(
        rename("mine"),
        Err(NameRefused::Bad),
        "it would be the operator's"
    );
    assert_eq!(rename("ann/other"), Ok(()));
    // Those of others that are private are not listed.
    let listed = |viewer: Viewer| read(store, move |tx| source::readable(tx, viewer)).len();
    let owner = |name_of: &'static str| {
        read(store, move |tx| local_account::by_name(tx, &name(name_of)))
            .expect("an account")
            .id
    };
    assert_eq!(listed(Viewer::Operator), 3, "they are public here");
    for source in read(store, source::list) {
        let key = source.key();
        write(store, source::root(key), move |tx| {
            source::set_audience(tx, key, Audience::Private)
        });
    }
    assert_eq!(listed(Viewer::Operator), 0);
    assert_eq!(listed(Viewer::Account(owner("ann"))), 2);
    assert_eq!(listed(Viewer::Account(owner("bob"))), 1);
}

fn an_account_shows_sources_to_the_world_only_by_the_operators_leave(store: &Store) {
    let ann = account(store, "ann");
    let with = |name: &str, audience: Audience| NewSource {
        audience,
        ..new_source(name)
    };
    let refused = add(store, "ann", with("one", Audience::Public));
    assert_eq!(refused, Err(SourceRefused::MayNotPublish));
    let one = add(store, "ann", with("one", Audience::Members)).expect("added");
    let may_be = |owner: Owner, audience: Audience| {
        read(store, move |tx| {
            account_source::may_have(tx, owner, audience)
        })
    };
    assert!(!may_be(Owner::Account(ann), Audience::Public));
    assert!(may_be(Owner::Account(ann), Audience::Members));
    assert!(may_be(Owner::Operator, Audience::Public));

    publishing(store, ann, true);
    assert!(may_be(Owner::Account(ann), Audience::Public));
    let two = add(store, "ann", with("two", Audience::Public)).expect("added");
    World::of(store, two).poll(vec![post(1, "text")]);
    let is_public = || {
        read(store, |tx| {
            let id = find::post(tx, "sim.example/1")?.expect("a stored post");
            is_visible(tx, id, Viewer::Anonymous)
        })
    };
    assert!(is_public());

    publishing(store, ann, false);
    let withdraw = |key: SourceKey| {
        write(store, source::root(key), move |tx| {
            account_source::withdraw(tx, key)
        })
    };
    assert_eq!([one, two].map(withdraw), [false, true]);
    assert!(!is_public());
    let own = store.read_blocking(move |tx| account_source::list(tx, ann));
    let audiences: Vec<_> = own.expect("a read").iter().map(|of| of.audience).collect();
    assert_eq!(audiences, [Audience::Members, Audience::Private]);
}

fn tokens_are_of_their_owner_and_go_with_the_last_source_that_uses_them(store: &Store) {
    let ann = account(store, "ann");
    let private = |name: &str, token: Option<TokenLocation>| NewSource {
        audience: Audience::Private,
        token,
        ..new_source(name)
    };
    let one = add(store, "ann", private("one", token("x"))).expect("added");
    let two = add(store, "ann", private("two", token("x"))).expect("added");
    let owners = [Owner::Account(ann), Owner::Operator];
    let ids = owners.map(|owner| {
        write(store, local_ids::root(), move |tx| {
            credential::find_or_add(tx, one.instance, (owner, token("x").as_ref()), "x", 1)
        })
        .id
    });
    assert_ne!(ids[0], ids[1], "the same text, two owners");
    let left = || {
        let all = read(store, credential::list);
        all.into_iter().map(|of| of.id).collect::<Vec<_>>()
    };
    for (key, remaining) in [(one, &ids[..]), (two, &ids[1..])] {
        write(store, source::root(key), move |tx| {
            source::remove(tx, key, LastPosts::Remove)
        });
        write(store, local_ids::root(), move |tx| {
            credential::remove_unused(tx, key.instance, ann)
        });
        assert_eq!(left(), remaining);
    }
}

fn what_only_an_accounts_private_source_has_the_operator_does_not_see(store: &Store) {
    let ann = account(store, "ann");
    let new = NewSource {
        audience: Audience::Private,
        ..new_source("mine")
    };
    let mut mine = World::of(store, add(store, "ann", new).expect("added"));
    let of = |id: u64, visibility: Visibility| with(visibility, post(id, "text"));
    mine.poll(vec![of(2, Visibility::Public), of(1, Visibility::Direct)]);
    let mut operators = World::readable(store, "operators");
    operators.poll(vec![of(2, Visibility::Public)]);
    let seen = |id: u64, viewer: Viewer| {
        read(store, move |tx| {
            let name = format!("sim.example/{id}");
            let id: LocalId = find::post(tx, &name)?.expect("a stored post");
            is_visible(tx, id, viewer)
        })
    };
    assert!(seen(1, Viewer::Account(ann)) && seen(2, Viewer::Account(ann)));
    assert!(!seen(1, Viewer::Operator) && seen(2, Viewer::Operator));
    assert!(!seen(1, Viewer::Anonymous));
}
