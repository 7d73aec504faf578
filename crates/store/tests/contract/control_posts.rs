//! Control posts: what a look-up that finds nothing is compared with.

use driftline_core::{
    post::{Post, Visibility},
    timeline::ControlPosts,
    upstream_id::UpstreamId,
};
use driftline_store::control_posts::control_posts;

use crate::world::{Store, World, post, posts, with};

on_both!(
    an_author_is_compared_with_posts_however_old,
    posts_that_the_source_lists_and_anyone_may_see_come_first,
    a_post_is_known_by_any_of_its_ids,
);

fn controls(world: &World, id: &str) -> ControlPosts {
    let (source, id) = (world.source, UpstreamId::from(id));
    let found = world
        .read(move |tx| control_posts(tx, source, (driftline_store::Owner::Operator, true), &id));
    found.expect("a stored post")
}

fn by(author: &str, id: u64) -> Post {
    let mut post = post(id, "text");
    post.author.id = author.into();
    post
}

fn texts(ids: &[UpstreamId]) -> Vec<&str> {
    ids.iter().map(UpstreamId::as_str).collect()
}

fn an_author_is_compared_with_posts_however_old(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([4, 3, 2, 1]));
    // More than any number of entries that a query reads.
    for page in 0..30_u64 {
        world.now_ms += 1_000;
        let ids = (page * 40 + 10..page * 40 + 50).rev();
        world.poll(ids.map(|id| by("8", id)).collect());
    }
    let found = controls(&world, "4");
    assert_eq!(texts(&found.of_author), ["3", "2"]);
    assert_eq!(texts(&found.of_others), ["1209"], "one of each author");
}

fn posts_that_the_source_lists_and_anyone_may_see_come_first(store: &Store) {
    let mut world = World::readable(store, "home");
    let private = with(Visibility::Private, post(6, "text"));
    let boost = Post {
        boost_of: Some(Box::new(post(1, "text"))),
        ..post(5, "text")
    };
    let rest = posts([4, 3, 2, 1]);
    let page = [by("8", 7), private, boost].into_iter().chain(rest);
    world.poll(page.collect());
    let found = controls(&world, "3");
    assert_eq!(texts(&found.of_author), ["4", "2"]);
    world.look_up("4", driftline_core::answer::LookUp::Hidden);
    world.look_up("2", driftline_core::answer::LookUp::Gone);
    assert_eq!(texts(&controls(&world, "3").of_author), ["1", "4"]);
    // Of whom nothing else is stored.
    assert_eq!(texts(&controls(&world, "7").of_author), [""; 0]);
    // Where only followers may see the rest, the rest has to do.
    world.look_up("1", driftline_core::answer::LookUp::Gone);
    world.look_up("3", driftline_core::answer::LookUp::Gone);
    assert_eq!(texts(&controls(&world, "4").of_author), ["6"]);
}

fn a_post_is_known_by_any_of_its_ids(store: &Store) {
    let mut world = World::readable(store, "home");
    let id = |n: u8, digits: &str| format!("{digits}{n:032x}");
    let stored = [2, 1].map(|n| post(id(n, "0000000000"), "text"));
    world.poll(stored.into());
    let found = controls(&world, &id(2, "1700000002"));
    assert_eq!(texts(&found.of_author), [id(1, "0000000000")]);
}
