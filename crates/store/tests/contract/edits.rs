//! Edits: the newest answer wins, and every source reports it in its own library.

use driftline_core::{answer::LookUp, post::Visibility};
use driftline_store::history::{self, EndedBy};

use crate::world::{Store, World, edited, names, post, posts, with};

on_both!(
    an_edit_replaces_the_post_and_keeps_the_version_before,
    an_older_version_never_overwrites_a_newer_one,
    an_edit_without_a_time_is_recognized_by_its_content,
    each_source_reports_an_edit_when_it_reads_it,
    a_look_up_may_find_an_edit,
    an_edit_may_hide_a_post_but_not_show_one_where_readers_have_passed,
);

fn an_edit_replaces_the_post_and_keeps_the_version_before(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([2, 1]));
    world.now_ms += 1;
    let summary = world.poll(vec![post(2, "text"), edited(1, "better", 50)]);
    assert_eq!(
        (summary.new, summary.edited, summary.update_count),
        (0, 1, 3)
    );
    assert_eq!(world.usns(), [(1, 3), (2, 2)]);
    let timeline = world.timeline();
    assert_eq!(names(&timeline), ["2", "1"]);
    assert_eq!(timeline[1].raw, post(1, "better").raw);
    assert_eq!(timeline[1].edited_at_ms, Some(50));
    let id = timeline[1].post_id;
    let versions =
        world.read(move |tx| history::versions(tx, id, driftline_store::Viewer::Operator));
    assert_eq!(versions.len(), 1);
    assert_eq!((versions[0].seq, versions[0].ended_by), (1, EndedBy::Edit));
    assert_eq!(versions[0].raw, post(1, "text").raw);
    // Seen again, it is no news.
    assert_eq!(world.poll(vec![edited(1, "better", 50)]).update_count, 3);
}

fn an_older_version_never_overwrites_a_newer_one(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(vec![edited(1, "newer", 50)]);
    for stale in [post(1, "text"), edited(1, "older", 49)] {
        assert_eq!(world.poll(vec![stale]).edited, 0);
    }
    // An answer that was asked for before the stored one, about the same version.
    world.now_ms -= 1;
    assert_eq!(world.poll(vec![edited(1, "other", 50)]).edited, 0);
    assert_eq!(world.timeline()[0].raw, post(1, "newer").raw);
    assert_eq!(world.usns(), [(1, 1)]);
}

fn an_edit_without_a_time_is_recognized_by_its_content(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    world.now_ms += 1;
    assert_eq!(world.poll(vec![post(1, "other")]).edited, 1);
    assert_eq!(world.timeline()[0].raw, post(1, "other").raw);
}

fn each_source_reports_an_edit_when_it_reads_it(store: &Store) {
    let mut first = World::readable(store, "first");
    let mut second = World::readable(store, "second");
    first.poll(posts([1]));
    second.poll(posts([1]));
    first.now_ms += 1;
    assert_eq!(first.poll(vec![edited(1, "better", 50)]).edited, 1);
    assert_eq!(second.usns(), [(1, 1)]);
    assert_eq!(second.timeline()[0].raw, post(1, "better").raw);
    assert_eq!(second.poll(vec![edited(1, "better", 50)]).edited, 1);
    assert_eq!(second.usns(), [(1, 2)]);
    let id = first.timeline()[0].post_id;
    let versions =
        first.read(move |tx| history::versions(tx, id, driftline_store::Viewer::Operator));
    assert_eq!(versions.len(), 1, "one edit is one version");
}

fn a_look_up_may_find_an_edit(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    let same = world.look_up("1", LookUp::Found(Box::new(post(1, "text"))));
    assert_eq!((same.edited, same.update_count), (0, 1));
    let other = world.look_up("1", LookUp::Found(Box::new(edited(1, "better", 50))));
    assert_eq!((other.edited, other.update_count), (1, 2));
    assert_eq!(world.machine.counters().hidden, 2);
    let unknown = world.look_up("77", LookUp::Found(Box::new(post(77, "text"))));
    assert_eq!(unknown.update_count, 2);
}

fn an_edit_may_hide_a_post_but_not_show_one_where_readers_have_passed(store: &Store) {
    let mut world = World::readable(store, "home");
    world.poll(posts([1]));
    let private = with(Visibility::Private, edited(1, "text", 50));
    world.poll(vec![private]);
    assert_eq!(world.timeline(), []);
    assert_eq!(world.public(), []);
    world.poll(vec![edited(1, "text", 60)]);
    assert_eq!(world.public(), []);
}
