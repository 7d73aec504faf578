//! Authors.

use driftline_store::{
    account, local_ids,
    source::{self, NewSource},
    testing::new_source,
};

use crate::world::{Store, World, post};

on_both!(
    authors_are_shared_renamed_and_may_be_missing,
    an_accounts_id_does_not_tell_when_it_was_first_seen,
    an_account_has_one_id_through_every_instance,
);

fn authors_are_shared_renamed_and_may_be_missing(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(vec![post(2, "text"), post(1, "text")]);
    let mut renamed = post(3, "text");
    renamed.author.display_name = "Anna".to_owned();
    let mut without_author = post(4, "text");
    without_author.author.id = "".into();
    second.poll(vec![without_author, renamed]);
    let posts = first.public();
    assert_eq!(posts[0].account, None);
    let id = posts[1].account.expect("an account");
    assert!(posts[1..].iter().all(|post| post.account == Some(id)));
    let source = second.source;
    let accounts = first.read(move |tx| account::by_ids(tx, &[id, id], &[source]));
    assert_eq!(accounts.len(), 1);
    assert_eq!(accounts[0].display_name, "Anna");
    assert_eq!(
        (&*accounts[0].acct, &*accounts[0].upstream_id),
        ("ann", "7")
    );
}

fn an_accounts_id_does_not_tell_when_it_was_first_seen(store: &Store) {
    let mut world = World::readable(store, "home");
    let ids: Vec<u64> = (1..=20)
        .map(|n| {
            let mut post = post(n, "text");
            post.author.id = n.to_string().as_str().into();
            post.author.acct = format!("name{n}");
            world.poll(vec![post]);
            world.public()[0].account.expect("an account").raw()
        })
        .collect();
    assert!(!ids.is_sorted(), "{ids:?}");
    assert!(ids.iter().all(|id| id.to_string().len() == 19), "{ids:?}");
}

fn an_account_has_one_id_through_every_instance(store: &Store) {
    let at = |name: &str| {
        let new = NewSource {
            origin: format!("https://{name}.example"),
            ..new_source(name)
        };
        let add = store.write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 1));
        World::of(store, add.expect("a write").expect("a free name"))
    };
    let (mut own, mut other) = (at("own"), at("other"));
    own.poll(vec![post(1, "text")]);
    let id = own.public()[0].account.expect("an account");
    let mut copy = post(2, "text");
    copy.author.id = "70".into();
    copy.author.acct = "Ann@own.example".to_owned();
    other.poll(vec![copy, post(1, "by another ann")]);
    let accounts: Vec<_> = other.timeline().iter().map(|post| post.account).collect();
    assert_eq!(accounts[0], Some(id));
    assert_ne!(accounts[1], Some(id));
}
