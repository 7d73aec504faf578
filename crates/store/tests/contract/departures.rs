//! Departures: a source no longer lists a post, and nothing is erased.

use driftline_core::{
    answer::{Event, LookUp},
    post::{Post, Visibility},
};
use driftline_store::{
    GoneProof, Store, absence, completeness, notify,
    refresh::{LookupAnswer, outbox},
    source::{NewSource, TokenLocation},
    timeline::{self, Viewer},
};

use crate::{
    refresh::{MINUTE_MS, Workers, check_schedule, found, liked},
    world::{START_MS, World, names, new_source, post, posts, with},
};

on_both!(
    a_post_that_two_pages_lack_leaves_that_source_alone,
    a_page_that_shows_it_again_restores_it_where_readers_will_see_it,
    a_boost_that_the_stream_takes_back_leaves,
    a_page_out_of_a_cold_cache_ends_nothing,
    only_a_proven_look_up_deletes,
    what_another_credential_still_sees_is_not_deleted,
    what_refreshes_find_of_a_post_that_has_left_restores_nothing,
    what_has_left_stays_away_when_its_post_is_deleted_and_returns,
    what_had_left_does_not_come_back_by_a_look_up_or_a_stream,
);

/// A source that another account's token reads.
fn with_token(store: &Store, name: &str) -> World {
    let new = NewSource {
        token: Some(TokenLocation::File(name.into())),
        ..new_source(name)
    };
    let mut world = World::added(store, new);
    world.poll(Vec::new());
    world
}

/// Polls that lack a post until it has left.
fn leave(world: &mut World, listed: &[u64]) {
    world.now_ms += 1_000;
    assert_eq!(world.poll(posts(listed.iter().copied())).left, 0);
    world.now_ms += MINUTE_MS;
    assert_eq!(world.poll(posts(listed.iter().copied())).left, 1);
}

fn alive(id: u64) -> LookUp {
    LookUp::Found(Box::new(post(id, "text")))
}

fn a_post_that_two_pages_lack_leaves_that_source_alone(store: &Store) {
    let mut home = World::readable(store, "home");
    let mut other = World::readable(store, "other");
    for world in [&mut home, &mut other] {
        world.poll(posts([4, 3, 2, 1]));
    }
    let before = home.timeline();
    home.now_ms += 1_000;
    let summary = home.poll(posts([4, 3, 1]));
    assert_eq!((summary.absent, summary.left), (1, 0));
    assert_eq!(names(&home.timeline()), ["4", "3", "2", "1"]);
    // A page of a moment later comes out of the same cache.
    home.now_ms += 1_000;
    let summary = home.poll(posts([4, 3, 1]));
    assert_eq!((summary.absent, summary.left), (1, 0));
    home.now_ms += MINUTE_MS;
    let summary = home.poll(posts([4, 3, 1]));
    assert_eq!((summary.absent, summary.left), (0, 1));
    assert_eq!(summary.update_count, 5);
    let left_at_ms = home.now_ms;

    for viewer in [Viewer::Anonymous, Viewer::Operator] {
        assert_eq!(names(&home.timeline_for(viewer)), ["4", "3", "1"]);
        assert_eq!(names(&other.timeline_for(viewer)), ["4", "3", "2", "1"]);
    }
    assert_eq!(names(&home.public()), ["4", "3", "2", "1"]);
    let id = before[2].id;
    let found = home.read(move |tx| timeline::status(tx, id, Viewer::Anonymous));
    assert_eq!(found.expect("the post stays").upstream_id, "2");
    let row = home.export().remove(1);
    assert_eq!((row.usn, row.left_at_ms), (5, Some(left_at_ms)));
    assert!(row.post.raw.is_some() && row.post.deleted_at_ms.is_none());
    assert_eq!(other.usns(), [(1, 1), (2, 2), (3, 3), (4, 4)]);
    let source = home.source;
    let counts = home.read(move |tx| completeness::counts(tx, source));
    assert_eq!((counts.entries, counts.live, counts.left), (4, 3, 1));
    let workers = Workers::of(&home);
    let instance = workers.instance;
    let left = home.read(move |tx| absence::left(tx, instance, row.post_id));
    assert_eq!(left, [(home.source.id, left_at_ms)]);

    // It is missed no more, and what it says is no news of the source.
    home.now_ms += MINUTE_MS;
    let summary = home.poll(posts([4, 3, 1]));
    assert_eq!((summary.absent, summary.update_count), (0, 5));
    assert_eq!(home.look_up("2", alive(2)).update_count, 5);
    assert_eq!(home.machine.counters().deleted, 0);
}

fn a_page_that_shows_it_again_restores_it_where_readers_will_see_it(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    let before = world.timeline();
    leave(&mut world, &[3, 1]);
    world.now_ms += 1_000;
    // A stream may repeat what it showed.
    let again = vec![Event::Posted(Box::new(post(2, "text")))];
    assert_eq!(world.stream(again).update_count, 4);
    assert_eq!(names(&world.timeline()), ["3", "1"]);
    let summary = world.poll(posts([3, 2, 1]));
    assert_eq!((summary.restored, summary.revived, summary.new), (1, 0, 0));
    assert_eq!(names(&world.timeline()), ["2", "3", "1"]);
    let new = world.timeline().remove(0);
    assert!(new.id > before[0].id);
    for id in [before[1].id, new.id] {
        let found = world.read(move |tx| timeline::status(tx, id, Viewer::Anonymous));
        assert_eq!(found.expect("a post").post_id, before[1].id);
    }
    assert_eq!(world.export().remove(1).left_at_ms, None);
    assert_eq!(world.usns(), [(1, 1), (2, 5), (3, 3)]);
    let names = names(&world.public()).join(" ");
    assert_eq!(names, "3 2 1", "the public timeline has it as before");
}

fn a_boost_that_the_stream_takes_back_leaves(store: &Store) {
    let mut world = World::readable(store, "home");
    let boost = Post {
        boost_of: Some(Box::new(post(1, "text"))),
        ..post(2, "text")
    };
    let page = || vec![post(3, "text"), boost.clone(), post(1, "text")];
    world.poll(page());
    world.now_ms += 1_000;
    let taken_back = ["2", "3"].map(|id| Event::Deleted(id.into()));
    let summary = world.stream(taken_back.to_vec());
    assert_eq!((summary.left, summary.deleted), (1, 1));
    assert_eq!(names(&world.timeline()), ["1"]);
    assert_eq!(names(&world.public()), ["2", "1"]);
    // A page that was requested before says nothing of it.
    world.now_ms -= 500;
    let summary = world.poll(page());
    assert_eq!((summary.restored, summary.revived), (0, 0));
    assert_eq!(names(&world.timeline()), ["1"]);
    world.now_ms += 1_000;
    assert_eq!(world.poll(page()).restored, 1);
}

fn a_page_out_of_a_cold_cache_ends_nothing(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    for _ in 0..3 {
        world.now_ms += MINUTE_MS;
        assert_eq!(world.poll(posts([3, 1])).left, 0);
        world.now_ms += 1_000;
        world.poll(posts([3, 2, 1]));
    }
    assert_eq!(world.usns(), [(1, 1), (2, 2), (3, 3)]);
    // Where an entry has come and gone, the answer that its post exists ends it no more.
    world.now_ms += 1_000;
    world.poll(posts([3, 1]));
    assert_eq!(world.look_up("2", alive(2)).left, 1);
    world.now_ms += 1_000;
    assert_eq!(world.poll(posts([3, 2, 1])).restored, 1);
    world.now_ms += 1_000;
    world.poll(posts([3, 1]));
    assert_eq!(world.look_up("2", alive(2)).left, 0);
    world.now_ms += MINUTE_MS;
    assert_eq!(world.poll(posts([3, 1])).left, 1);
}

fn only_a_proven_look_up_deletes(store: &Store) {
    let mut world = World::readable(store, "home");
    let private = |id| with(Visibility::Private, post(id, "text"));
    world.poll(vec![
        post(5, "text"),
        private(4),
        post(3, "text"),
        post(2, "text"),
        post(1, "text"),
    ]);
    world.now_ms += 1_000;
    world.poll(posts([5, 1]));
    for (id, look_up, proof, is_left, is_deleted) in [
        ("2", LookUp::Gone, GoneProof::Nothing, false, false),
        ("2", LookUp::Hidden, GoneProof::Nothing, true, false),
        ("3", LookUp::Gone, GoneProof::Hidden, true, false),
        // A follower-only post goes with the follow.
        ("4", LookUp::Gone, GoneProof::Deleted, true, false),
        ("5", LookUp::Gone, GoneProof::Deleted, false, true),
        ("1", LookUp::Gone, GoneProof::DeletedForAll, false, true),
        // Even what has left.
        ("4", LookUp::Gone, GoneProof::DeletedForAll, false, true),
        ("2", LookUp::Gone, GoneProof::Deleted, false, true),
    ] {
        world.proof = proof;
        let deleted = world.machine.counters().deleted;
        world.look_up(id, look_up.clone());
        let rows = world.export();
        let row = rows.iter().find(|row| row.post.upstream_id == id);
        let row = row.expect("an entry");
        let is = (row.left_at_ms.is_some(), row.post.deleted_at_ms.is_some());
        assert_eq!(is, (is_left, is_deleted), "{id}: {look_up:?}, {proof:?}");
        let counted = world.machine.counters().deleted - deleted;
        assert_eq!(counted, u64::from(is_deleted));
        assert_eq!(row.post.raw.is_none(), is_deleted);
    }
    assert_eq!(
        names(&world.timeline_for(Viewer::Operator)),
        Vec::<&str>::new()
    );
}

fn what_another_credential_still_sees_is_not_deleted(store: &Store) {
    let mut mine = with_token(store, "mine");
    let mut theirs = with_token(store, "theirs");
    for world in [&mut mine, &mut theirs] {
        world.poll(posts([2, 1]));
    }
    let hidden = mine.look_up("1", LookUp::Gone);
    assert_eq!((hidden.deleted, hidden.left), (0, 1));
    assert_eq!(names(&mine.timeline()), ["2"]);
    assert_eq!(names(&theirs.timeline()), ["2", "1"]);
    // Now none sees it.
    let gone = theirs.look_up("1", LookUp::Gone);
    assert_eq!((gone.deleted, gone.left), (1, 0));
    assert_eq!(names(&theirs.public()), ["2"]);
    let workers = Workers::of(&mine);
    let instance = workers.instance;
    let rows = mine.export();
    assert!(rows[0].left_at_ms.is_some() && rows[0].post.deleted_at_ms.is_some());
    let id = rows[0].post_id;
    let left = mine.read(move |tx| absence::left(tx, instance, id));
    assert_eq!(left.len(), 1, "until its library is notified");
}

fn what_refreshes_find_of_a_post_that_has_left_restores_nothing(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![liked(2, 0), liked(1, 7)]);
    world.look_up("1", LookUp::Hidden);
    assert_eq!(names(&world.timeline()), ["2"]);
    let workers = Workers::of(&world);
    let (instance, source) = (workers.instance, world.source);
    let notified = |world: &World| {
        let items = world.read(move |tx| outbox(tx, instance, i64::MAX, None, 100));
        world.write(move |tx| notify(tx, source, &items))
    };
    let now_ms = START_MS + 4 * MINUTE_MS;
    let mut edited = liked(1, 9);
    edited.edited_at_ms = Some(now_ms - 5);
    edited.raw = edited.raw.replace("text", "better text");
    let answers = [(1, LookupAnswer::Found(Box::new(edited))), found(2, 0)];
    workers.refresh(&answers, now_ms);
    assert_eq!(notified(&world), 0);
    assert_eq!(names(&world.timeline()), ["2"]);
    let gone_ms = now_ms + 4 * MINUTE_MS;
    workers.refresh(&[(1, LookupAnswer::Gone), found(2, 0)], gone_ms);
    assert_eq!(notified(&world), 1);
    let row = world.export().remove(0);
    assert!(row.left_at_ms.is_none() && row.post.deleted_at_ms.is_some());
    check_schedule(store);
}

/// Whatever happens to the post elsewhere, only a page of the source lists it there again.
fn what_has_left_stays_away_when_its_post_is_deleted_and_returns(store: &Store) {
    let mut home = World::readable(store, "home");
    let mut other = World::readable(store, "other");
    for world in [&mut home, &mut other] {
        world.poll(posts([3, 2, 1]));
    }
    leave(&mut home, &[3, 1]);
    let left_at_ms = home.now_ms;
    let workers = Workers::of(&home);
    let (instance, source) = (workers.instance, home.source);
    let notified = |world: &World| {
        let items = world.read(move |tx| outbox(tx, instance, i64::MAX, None, 100));
        world.write(move |tx| notify(tx, source, &items))
    };
    let counts = |world: &World| {
        let counts = world.read(move |tx| completeness::counts(tx, source));
        (counts.entries, counts.live, counts.left)
    };
    let gone_ms = home.now_ms + 60 * MINUTE_MS;
    let answers = [(2, LookupAnswer::Gone), found(1, 0), found(3, 0)];
    workers.refresh(&answers, gone_ms);
    assert_eq!((notified(&home), notified(&home)), (1, 0));
    assert_eq!(home.export()[1].left_at_ms, None);
    assert_eq!(counts(&home), (3, 2, 0));
    other.now_ms = gone_ms + MINUTE_MS;
    assert_eq!(other.poll(posts([3, 2, 1])).revived, 1);
    assert_eq!(names(&other.timeline()), ["2", "3", "1"]);
    assert_eq!((notified(&home), notified(&home)), (1, 0));
    assert_eq!(names(&home.timeline()), ["3", "1"]);
    assert_eq!(home.export()[1].left_at_ms, Some(left_at_ms));
    assert_eq!(counts(&home), (3, 2, 1));
    home.now_ms = other.now_ms + 1_000;
    let summary = home.poll(posts([3, 2, 1]));
    assert_eq!((summary.restored, summary.revived, summary.new), (1, 0, 0));
    assert_eq!(names(&home.timeline()), ["2", "3", "1"]);
    assert_eq!(counts(&home), (3, 3, 0));
    check_schedule(store);
}

fn what_had_left_does_not_come_back_by_a_look_up_or_a_stream(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    leave(&mut world, &[3, 1]);
    world.now_ms += 1_000;
    world.look_up("2", LookUp::Gone);
    assert_eq!(names(&world.public()), ["3", "1"]);
    world.now_ms += 1_000;
    world.look_up("2", alive(2));
    assert_eq!(names(&world.timeline()), ["3", "1"]);
    assert_eq!(
        names(&world.public()),
        ["2", "3", "1"],
        "the post has returned"
    );
    world.now_ms += 1_000;
    world.stream(vec![Event::Posted(Box::new(post(2, "text")))]);
    assert_eq!(names(&world.timeline()), ["3", "1"]);
    assert!(world.export()[1].left_at_ms.is_some());
    world.now_ms += 1_000;
    assert_eq!(world.poll(posts([3, 2, 1])).restored, 1);
    assert_eq!(names(&world.timeline()), ["2", "3", "1"]);
}
