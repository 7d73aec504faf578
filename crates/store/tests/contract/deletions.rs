//! Deletions: confirmed by look-up, kept as tombstones, undone when the post is seen again.

use driftline_core::answer::LookUp;
use driftline_store::{
    completeness,
    history::{self, EndedBy},
    timeline::{self, Viewer},
};

use crate::world::{Store, World, names, page, post, posts};

on_both!(
    a_post_missing_from_a_page_is_looked_up_and_becomes_a_tombstone,
    a_tombstone_is_no_anchor_and_is_not_missed_again,
    each_source_reports_a_deletion_when_it_notices_it,
    a_page_of_tombstones_does_not_end_a_timeline,
);

fn a_post_missing_from_a_page_is_looked_up_and_becomes_a_tombstone(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([4, 3, 2, 1]));
    let look = world.second_look();
    let now_ms = world.now_ms;
    let summary = world
        .commit(&look, page(posts([3, 1]), now_ms))
        .expect("a commit");
    assert_eq!((summary.new, summary.absent), (0, 1));
    let gone = world.look_up("2", LookUp::Gone);
    assert_eq!((gone.deleted, gone.update_count), (1, 5));
    assert_eq!(names(&world.timeline()), ["4", "3", "1"]);
    assert_eq!(
        names(&world.timeline_for(Viewer::Operator)),
        ["4", "3", "1"]
    );
    assert_eq!(names(&world.public()), ["4", "3", "1"]);

    let rows = world.export();
    let dead = &rows[1];
    assert_eq!((dead.first_usn, dead.usn), (2, 5));
    assert!(dead.post.deleted_at_ms.is_some());
    assert_eq!(dead.post.raw, None);
    let id = dead.post_id;
    assert_eq!(
        world.read(move |tx| timeline::status(tx, id, Viewer::Operator)),
        None
    );
    let versions = world.read(move |tx| history::versions(tx, id, Viewer::Operator));
    assert_eq!(versions.len(), 1);
    assert_eq!(versions[0].ended_by, EndedBy::Deletion);
    assert_eq!(versions[0].raw, post(2, "text").raw);

    let source = world.source;
    let counts = world.read(move |tx| completeness::counts(tx, source));
    assert_eq!((counts.entries, counts.live, counts.changed), (4, 3, 0));
    assert_eq!(counts.first.expect("a position").as_str(), "0011");
    assert_eq!(counts.last.expect("a position").as_str(), "0014");

    // Looked up again, it is no news.
    let again = world.look_up("2", LookUp::Gone);
    assert_eq!((again.deleted, again.update_count), (0, 5));
}

fn a_tombstone_is_no_anchor_and_is_not_missed_again(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([3, 2, 1]));
    world.look_up("2", LookUp::Gone);
    let look = world.second_look();
    let now_ms = world.now_ms;
    let summary = world
        .commit(&look, page(posts([1]), now_ms))
        .expect("a commit");
    assert_eq!(summary.absent, 0);
}

fn each_source_reports_a_deletion_when_it_notices_it(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(posts([2, 1]));
    second.poll(posts([2, 1]));
    first.now_ms += 1;
    assert_eq!(first.look_up("1", LookUp::Gone).deleted, 1);
    // Hidden everywhere at once, although the second source does not know yet.
    assert_eq!(names(&second.timeline()), ["2"]);
    assert_eq!(second.usns(), [(1, 1), (2, 2)]);
    assert_eq!(second.look_up("1", LookUp::Gone).deleted, 1);
    assert_eq!(second.usns(), [(1, 3), (2, 2)]);
    let id = second.export()[0].post_id;
    let versions = second.read(move |tx| history::versions(tx, id, Viewer::Operator));
    assert_eq!(versions.len(), 1);
}

fn a_page_of_tombstones_does_not_end_a_timeline(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(posts((1..=9).rev()));
    second.poll(posts((1..=9).rev()));
    for id in 3..=9 {
        first.look_up(&id.to_string(), LookUp::Gone);
    }
    let source = second.source;
    let range = timeline::Range {
        limit: 2,
        ..timeline::Range::default()
    };
    let found = second.read(move |tx| timeline::source(tx, source, &range, Viewer::Anonymous));
    assert_eq!(names(&found), ["2", "1"]);
}
