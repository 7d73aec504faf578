//! The instances that a viewer knows of, and how many posts of theirs.

use std::collections::HashMap;

use driftline_core::{api::Api, names::audience::Audience, post::Visibility};
use driftline_store::{
    Owner, Store,
    credential::{self, NewCredential},
    known_instances, local_ids,
    source::LastPosts,
    timeline::Viewer,
};

use crate::world::{ANN, BOB, START_MS, World, post, posts, with, write};

on_both!(
    servers_that_private_sources_read_or_have_read_are_not_known_to_others,
    servers_of_shared_sources_kept_posts_and_own_credentials_are_known,
    posts_that_only_private_sources_of_others_have_are_not_counted,
    instances_without_countable_posts_are_not_counted,
);

/// The viewers who may not read what Ann keeps to herself.
const OTHERS: [Viewer; 2] = [Viewer::Operator, Viewer::Account(BOB)];

/// A source of the server of that host.
fn add(store: &Store, host: &str, owner: Owner, audience: Audience) -> World {
    let name = format!("{host}-{}", audience.name());
    let origin = format!("https://{host}");
    World::of_server(store, &name, &origin, owner, audience)
}

/// The hosts of the instances that a viewer knows of.
fn known(store: &Store, viewer: Viewer) -> Vec<String> {
    let known = store.read_blocking(move |tx| known_instances::known_to(tx, viewer));
    let known = known.expect("instances").into_iter();
    known.map(|of| of.origin.replace("https://", "")).collect()
}

/// The number of posts that a viewer knows of each host, also of those that are not known to it.
fn counts(store: &Store, viewer: Viewer) -> HashMap<String, u64> {
    let counts = store.read_blocking(move |tx| known_instances::post_counts(tx, viewer));
    let counts = counts.expect("counts");
    let all = store.read_blocking(driftline_store::instance::all);
    let all = all.expect("instances").into_iter();
    let counted = all.filter_map(|of| {
        let count = counts.get(&of.id)?;
        Some((of.origin.replace("https://", ""), *count))
    });
    counted.collect()
}

fn servers_that_private_sources_read_or_have_read_are_not_known_to_others(store: &Store) {
    let anns = Viewer::Account(ANN);
    let mut home = add(store, "a.example", Owner::Account(ANN), Audience::Private);
    home.poll(posts([2, 1]));
    // The credential without a token comes with her source.
    let instance = home.source.instance;
    write(store, local_ids::root(), move |tx| {
        credential::find_or_add(tx, instance, (Owner::Operator, None), "anonymous", START_MS)
    });
    for viewer in OTHERS {
        assert!(known(store, viewer).is_empty(), "{viewer:?}");
    }
    assert_eq!(known(store, anns), ["a.example"]);
    home.remove(LastPosts::Remove);
    for viewer in [OTHERS[0], OTHERS[1], anns] {
        assert!(known(store, viewer).is_empty(), "{viewer:?}");
    }
}

fn servers_of_shared_sources_kept_posts_and_own_credentials_are_known(store: &Store) {
    let shared = add(store, "a.example", Owner::Account(ANN), Audience::Members);
    let mut kept = add(store, "b.example", Owner::Operator, Audience::Private);
    let gone = add(store, "c.example", Owner::Operator, Audience::Private);
    kept.poll(posts([2, 1]));
    let new = NewCredential {
        name: "reader".to_owned(),
        origin: "https://d.example".to_owned(),
        api: Api::Mastodon,
        token: None,
        monthly_posts: None,
    };
    write(store, local_ids::root(), move |tx| {
        credential::add(tx, &new, START_MS)
    })
    .expect("a credential");
    let all = ["a.example", "b.example", "c.example", "d.example"];
    assert_eq!(known(store, Viewer::Operator), all);
    assert_eq!(known(store, Viewer::Account(BOB)), ["a.example"]);
    kept.remove(LastPosts::Keep);
    gone.remove(LastPosts::Keep);
    let left = ["a.example", "b.example", "d.example"];
    assert_eq!(known(store, Viewer::Operator), left);
    shared.remove(LastPosts::Remove);
    // An account's private source of it changes nothing.
    add(store, "b.example", Owner::Account(ANN), Audience::Private);
    assert_eq!(known(store, Viewer::Operator), ["b.example", "d.example"]);
}

fn posts_that_only_private_sources_of_others_have_are_not_counted(store: &Store) {
    let mut public = add(store, "a.example", Owner::Operator, Audience::Public);
    let mut home = add(store, "a.example", Owner::Account(ANN), Audience::Private);
    let mut shared = add(store, "a.example", Owner::Account(ANN), Audience::Members);
    let narrow = with(Visibility::Private, post(9, "text"));
    // Ann's private source has posts of others first, and last.
    home.poll(posts([5, 4, 3, 2]));
    public.poll(posts([2, 1]));
    shared.poll(vec![narrow, post(3, "text")]);
    let of = |viewer| counts(store, viewer).get("a.example").copied();
    for viewer in OTHERS {
        assert_eq!(of(viewer), Some(3), "{viewer:?}");
    }
    assert_eq!(of(Viewer::Account(ANN)), Some(6));
    // The post that no other source has is kept, and stays in the number when Ann reads it.
    public.remove(LastPosts::Keep);
    assert_eq!(of(Viewer::Operator), Some(2));
    home.now_ms += 1_000;
    home.poll(posts([6, 5, 4, 3, 2, 1]));
    assert_eq!(of(Viewer::Operator), Some(2));
    assert_eq!(of(Viewer::Account(ANN)), Some(7));
}

fn instances_without_countable_posts_are_not_counted(store: &Store) {
    let mut home = add(store, "a.example", Owner::Account(ANN), Audience::Private);
    home.poll(posts([2, 1]));
    assert!(counts(store, Viewer::Operator).is_empty());
    assert_eq!(counts(store, Viewer::Account(ANN))["a.example"], 2);
}
