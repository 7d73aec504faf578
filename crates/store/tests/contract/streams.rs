//! What a stream shows is stored at once and proves nothing.

use driftline_core::{
    answer::{Event, LookUp},
    post::Post,
};
use driftline_store::{StoreError, refresh, source_lease};

use crate::world::{START_MS, Store, World, names, post, posts};

on_both!(
    a_streamed_post_is_there_at_once_with_its_id_and_its_first_due_time,
    a_streamed_post_is_no_anchor_and_new_to_the_machine_until_a_page_shows_it,
    posts_of_held_pages_are_stored_in_their_order_and_are_new_until_their_pages_are_committed,
    a_page_that_was_asked_for_before_need_not_list_a_streamed_post,
    edits_and_deletions_are_applied_to_what_is_stored_and_to_nothing_else,
    a_late_event_of_a_new_post_does_not_bring_an_old_version_back,
    an_event_revives_nothing_but_a_page_does,
    ids_that_the_order_cannot_hold_are_ignored,
    a_lost_lease_stores_nothing,
);

pub(crate) fn posted(id: u64) -> Event {
    Event::Posted(Box::new(post(id, "text")))
}

fn edited(id: u64, text: &str) -> Event {
    Event::Edited(Box::new(Post {
        edited_at_ms: Some(START_MS),
        ..post(id, text)
    }))
}

pub(crate) fn deleted(id: u64) -> Event {
    Event::Deleted(id.to_string().as_str().into())
}

fn a_streamed_post_is_there_at_once_with_its_id_and_its_first_due_time(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([5]));
    let machine = world.machine.clone();
    let summary = world.stream(vec![posted(9), posted(7), posted(9), posted(8)]);
    assert_eq!((summary.new, summary.edited), (3, 0));
    assert_eq!(summary.update_count, 4);
    assert_eq!(names(&world.timeline()), ["8", "7", "9", "5"], "as seen");
    assert_eq!(names(&world.public()), ["8", "7", "9", "5"]);
    let id = world.timeline()[0].post_id;
    let state = world.read(move |tx| refresh::refresh_state(tx, id));
    assert!(state.is_some_and(|state| state.due_at_ms.is_some()));
    let again = world.stream(vec![posted(7), posted(8), posted(9)]);
    assert_eq!((again.new, again.update_count), (0, 4), "stored once");
    // The machine is as it was, in the store too.
    let source = world.source;
    let stored = world.read(move |tx| driftline_store::machine::load(tx, source));
    assert_eq!(stored, machine);
}

fn a_streamed_post_is_no_anchor_and_new_to_the_machine_until_a_page_shows_it(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([5]));
    world.stream(vec![posted(7), posted(9)]);
    assert_eq!(world.anchor().as_deref(), Some("5"));
    let before = world.machine.counters().stored;
    let summary = world.poll(posts([7, 6, 5]));
    assert_eq!(summary.new, 1, "the source had one of them");
    assert_eq!(world.machine.counters().stored, before + 2, "no page had");
    assert_eq!(world.anchor().as_deref(), Some("7"));
    let again = world.poll(posts([7, 6, 5]));
    assert_eq!(again.new, 0);
    assert_eq!(world.machine.counters().stored, before + 2, "once");
    assert_eq!(
        world.anchor().as_deref(),
        Some("7"),
        "9 is still to be shown"
    );
}

/// The pages of a backlog, in the order in which they were answered: the newest first.
fn posts_of_held_pages_are_stored_in_their_order_and_are_new_until_their_pages_are_committed(
    store: &Store,
) {
    let mut world = World::readable(store, "home");
    world.poll(posts([5]));
    world.stream(vec![posted(11)]);
    let (machine, before) = (world.machine.clone(), world.machine.counters().stored);
    let mut edited = posts([8, 7, 6, 5]);
    edited[3] = post(5, "edited");
    let summary = world.store_posts(vec![posts([12, 11, 10, 9, 8]), edited.clone()]);
    assert_eq!((summary.new, summary.edited), (6, 0));
    let order = ["12", "10", "9", "8", "7", "6", "11", "5"];
    assert_eq!(
        names(&world.timeline()),
        order,
        "as listed, above what was there"
    );
    let source = world.source;
    let stored = world.read(move |tx| driftline_store::machine::load(tx, source));
    assert_eq!(stored, machine, "they prove nothing");
    assert_eq!(world.store_posts(vec![posts([12, 11])]).new, 0, "once");

    assert_eq!(world.poll(posts([12, 11, 10, 9, 8])).new, 0);
    assert_eq!(
        world.machine.counters().stored,
        before + 5,
        "new to the machine"
    );
    let edits = world.poll(edited).edited;
    assert_eq!(edits, 1, "the page's commit does the rest");
    assert_eq!(names(&world.timeline()), order);
}

fn a_page_that_was_asked_for_before_need_not_list_a_streamed_post(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([9, 5]));
    world.stream(vec![posted(7)]);
    assert_eq!(world.poll(posts([9, 5])).absent, 0);
    world.now_ms += 1;
    assert_eq!(world.poll(posts([9, 5])).absent, 1);
    assert_eq!(world.look_up("7", LookUp::Gone).deleted, 1);
}

fn edits_and_deletions_are_applied_to_what_is_stored_and_to_nothing_else(store: &Store) {
    let mut world = World::readable(store, "home");
    let mut other = World::readable(store, "other");
    world.poll(posts([6, 5]));
    other.poll(posts([4]));
    world.now_ms += 1;
    let summary = world.stream(vec![
        edited(5, "edited"),
        edited(4, "not of this source"),
        edited(3, "not stored"),
        deleted(6),
        deleted(4),
        deleted(3),
        deleted(6),
    ]);
    assert_eq!((summary.new, summary.edited, summary.deleted), (0, 1, 1));
    assert_eq!(names(&world.timeline()), ["5"]);
    assert!(world.timeline()[0].raw.contains("edited"));
    assert_eq!(names(&other.timeline()), ["4"]);
    assert!(!other.timeline()[0].raw.contains("not of"));
    // The version that a page still showed when it was asked for is older.
    world.poll(posts([5]));
    assert!(world.timeline()[0].raw.contains("edited"));
}

/// A boost changes with the post that it boosts, and has no time of its own for that.
fn a_late_event_of_a_new_post_does_not_bring_an_old_version_back(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![post(5, "changed")]);
    world.now_ms += 1;
    let summary = world.stream(vec![posted(5)]);
    assert_eq!((summary.new, summary.edited), (0, 0));
    assert!(world.timeline()[0].raw.contains("changed"));
}

fn an_event_revives_nothing_but_a_page_does(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([5]));
    world.now_ms += 1;
    let summary = world.stream(vec![
        posted(6),
        deleted(6),
        posted(6),
        deleted(5),
        posted(5),
    ]);
    assert_eq!((summary.new, summary.deleted, summary.revived), (1, 2, 0));
    assert_eq!(world.timeline(), []);
    world.now_ms += 1;
    assert_eq!(world.stream(vec![posted(5), edited(6, "x")]).revived, 0);
    assert_eq!(world.timeline(), []);
    world.now_ms += 1;
    assert_eq!(world.poll(posts([6, 5])).revived, 2);
    assert_eq!(names(&world.timeline()), ["6", "5"]);
}

fn ids_that_the_order_cannot_hold_are_ignored(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([5]));
    let summary = world.stream(vec![
        Event::Posted(Box::new(post("01H", "text"))),
        Event::Deleted("x".into()),
        Event::Deleted("".into()),
        posted(6),
    ]);
    assert_eq!((summary.new, summary.deleted), (1, 0));
    assert_eq!(names(&world.timeline()), ["6", "5"]);
}

fn a_lost_lease_stores_nothing(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([5]));
    let source = world.source;
    let lease = world
        .write(move |tx| source_lease::claim(tx, source, "one", 60_000))
        .expect("a lease");
    world.fence = Some(lease.fence);
    assert_eq!(world.stream(vec![posted(6)]).new, 1);
    assert!(world.write(move |tx| source_lease::release(tx, &lease)));
    assert_eq!(
        world.try_stream(vec![posted(7)]),
        Err(StoreError::LeaseLost)
    );
    assert_eq!(names(&world.timeline()), ["6", "5"]);
}
