//! Documents of an earlier version, which lack terms.

use driftline_core::names::audience::Audience;
use driftline_mastodon::{TEXT_EXTRACTION, text_of_json};
use driftline_store::{Owner, Root, Store, instance, search, text_rebuild, timeline::Viewer};

use super::{candidate_part, candidates, found, index, number, text};
use crate::{
    audiences::ALL,
    world::{ANN, World, read, write},
};

on_both!(
    what_older_documents_may_lack_is_not_looked_up,
    owners_are_not_looked_up_in_older_documents,
);

/// Documents of extraction 2 had no labels of links.
fn what_older_documents_may_lack_is_not_looked_up(store: &Store) {
    assert_eq!(read(store, search::extraction), TEXT_EXTRACTION);
    let mut world = World::readable(store, "home");
    let mut linked = text(2, "a cat");
    linked.raw = linked
        .raw
        .replacen('{', r#"{"card":{"url":"https://a.example/"},"#, 1);
    world.poll(vec![text(3, "a cat"), linked, text(1, "a dog")]);
    write(store, search::root(), |tx| {
        tx.execute("update post_text set extraction = 2, labels = ''", &[])?;
        search::set_extraction(tx, 2)
    });
    while index(store, 100) > 0 {}
    assert_eq!(found(store, "has:link"), ["2"]);
    assert_eq!(candidates(store, "has:link"), ["3", "2", "1"]);
    assert_eq!(candidates(store, "cat has:link"), ["3", "2"]);
    assert_eq!(
        candidates(store, "cat OR after:2026-01-01"),
        ["3", "2", "1"]
    );
    rebuild_texts(store);
    for _ in 0..2 {
        assert_eq!(found(store, "has:link"), ["2"]);
        index(store, 100);
    }
    assert_eq!(candidates(store, "has:link"), ["2"]);
}

/// Makes the texts again that an earlier version made, so that their posts wait for the index.
fn rebuild_texts(store: &Store) {
    let portion = read(store, |tx| {
        text_rebuild::next_portion(tx, None, TEXT_EXTRACTION)
    });
    for (id, posts) in portion.expect("posts").outdated {
        write(store, instance::root(id), move |tx| {
            text_rebuild::rebuild(tx, id, &posts, text_of_json)
        });
    }
    write(store, search::root(), |tx| {
        search::set_extraction(tx, TEXT_EXTRACTION)
    });
}

/// Documents of extraction 2 did not name the owners of their sources. While there may be such documents, the sources of
/// an owner are looked up one by one.
fn owners_are_not_looked_up_in_older_documents(store: &Store) {
    let owner = Owner::Account(ANN);
    let homes = ["first", "second"];
    let mut homes = homes.map(|name| World::owned(store, name, owner, Audience::Private));
    for (id, home) in (1..).zip(&mut homes) {
        home.poll(vec![text(id, "a cat")]);
    }
    let add_to_owner = |number: i64| {
        write(store, Root::none(), move |tx| {
            Ok(tx.execute("update source set owner_id = owner_id + $1", &[&number])?)
        });
    };
    let found = || {
        let part = candidate_part(store, "cat", ALL, Viewer::Account(ANN));
        let mut found: Vec<u64> = part.posts.iter().map(number).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(found(), [1, 2]);
    // These documents name somebody else, so they are found without that term alone.
    add_to_owner(1);
    while index(store, 100) > 0 {}
    add_to_owner(-1);
    assert_eq!(found(), [0; 0]);
    write(store, search::root(), |tx| {
        tx.execute("update post_text set extraction = 2", &[])?;
        search::set_extraction(tx, 2)
    });
    assert_eq!(found(), [1, 2]);
    rebuild_texts(store);
    while index(store, 100) > 0 {}
    assert_eq!(found(), [1, 2]);
}
