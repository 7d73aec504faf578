//! History: readable while it is fetched, at its own time, and announced by nothing.

use driftline_core::{
    post::{Post, Visibility},
    timeline::Backfill,
};
use driftline_id::Layout;
use driftline_store::{
    LocalId, Store, change_feed,
    timeline::{self, Range, TimelinePost, Viewer},
};

use crate::{
    references::local_id,
    streams::posted,
    world::{START_MS, World, names, newest_page, page, post, posts},
};

on_both!(
    history_stands_at_its_own_time_and_is_readable_at_once,
    a_post_that_says_it_is_of_the_future_moves_only_itself,
    a_first_page_is_cut_where_the_source_was_added,
    the_servers_clock_says_when_a_source_was_added,
    history_goes_on_below_while_new_posts_come_above,
    history_of_several_sources_is_one_timeline,
    a_post_that_history_brought_first_moves_up_once_a_source_shows_it_live,
    stored_posts_that_another_source_shows_keep_their_public_ids,
    a_late_post_of_a_stream_does_not_lift_the_history_that_follows,
    a_first_page_after_a_stream_is_above_and_below_what_that_has_shown,
    private_history_stands_at_its_time_as_well,
);

const DAY_MS: i64 = 86_400_000;

fn importing(store: &Store, name: &str) -> World {
    let mut world = World::new(store, name);
    world.settings.backfill = Backfill::Count(1_000);
    world
}

fn created(id: u64, ms: impl Into<Option<i64>>) -> Post {
    Post {
        created_at_ms: ms.into(),
        ..post(id, "old")
    }
}

/// Posts of the day before, one an hour, the newest first.
fn of_yesterday(ids: std::ops::RangeInclusive<u64>) -> Vec<Post> {
    let at = |id| created(id, START_MS - 2 * DAY_MS + id as i64 * 3_600_000);
    ids.rev().map(at).collect()
}

fn fill(world: &mut World, posts: Vec<Post>) -> u64 {
    let request = world.fill();
    let answer = page(posts, world.now_ms);
    world.commit(&request, answer).expect("a commit").new
}

fn ids(posts: &[TimelinePost]) -> Vec<u64> {
    posts.iter().map(|post| post.id.raw()).collect()
}

fn middle_of(ms: i64) -> u64 {
    Layout::PULSATE.smallest_at(ms) as u64 | 1 << 21
}

/// What a client that has seen `newest` is shown.
fn since(world: &World, newest: LocalId) -> Vec<TimelinePost> {
    let range = Range {
        since: Some(newest),
        limit: 40,
        ..Range::default()
    };
    let source = world.source;
    world.read(move |tx| {
        let mut all = timeline::source(tx, source, &range, Viewer::Anonymous)?;
        all.extend(timeline::public(tx, &range, Viewer::Anonymous)?);
        Ok(all)
    })
}

fn history_stands_at_its_own_time_and_is_readable_at_once(store: &Store) {
    let mut world = importing(store, "home");
    world.poll(vec![
        created(9, START_MS + DAY_MS),
        created(8, START_MS - DAY_MS),
        created(7, START_MS - DAY_MS),
        created(6, -12),
    ]);
    assert_eq!(names(&world.timeline()), ["9", "8", "7", "6"]);
    let yesterday = middle_of(START_MS - DAY_MS);
    let room = 1 << 40;
    let first = [middle_of(START_MS), yesterday, yesterday - 1, room];
    assert_eq!(ids(&world.timeline()), first);
    assert_eq!(world.public(), world.timeline());
    // Later history goes between, too; a post without a time stands by the one above it.
    let newest = world.timeline()[0].id;
    let older = START_MS - DAY_MS / 2;
    let between = vec![created(5, older), created(4, None), created(3, -12)];
    assert_eq!(fill(&mut world, between), 3);
    let order = ["9", "5", "4", "8", "7", "6", "3"];
    assert_eq!(names(&world.timeline()), order);
    assert_eq!(ids(&world.timeline())[1], middle_of(older));
    assert_eq!(world.public(), world.timeline());
    assert_eq!(since(&world, newest), []);
    // What is live is above every ID, whatever the clock says.
    world.now_ms -= 60_000;
    world.poll(posts([10, 9]));
    assert_eq!(names(&world.timeline())[0], "10");
    assert!(world.timeline()[0].id > newest);
}

fn a_post_that_says_it_is_of_the_future_moves_only_itself(store: &Store) {
    let mut world = importing(store, "home");
    let mut page = of_yesterday(1..=4);
    page[2].created_at_ms = Some(START_MS + DAY_MS);
    world.poll(page);
    assert_eq!(names(&world.timeline()), ["2", "4", "3", "1"]);
    let at = |id: u64| middle_of(START_MS - 2 * DAY_MS + id as i64 * 3_600_000);
    assert_eq!(
        ids(&world.timeline()),
        [middle_of(START_MS), at(4), at(3), at(1)]
    );
}

fn a_first_page_is_cut_where_the_source_was_added(store: &Store) {
    let mut other = World::readable(store, "other");
    other.poll(posts([1]));
    let newest = other.public()[0].id;
    // An outage: the first answer comes ten minutes after the source was added.
    let mut world = importing(store, "home");
    world.now_ms = START_MS + 600_000;
    world.poll(vec![
        created(36, START_MS + 580_000),
        // Federation brings it late.
        created(35, START_MS - DAY_MS),
        created(34, START_MS + 1_000),
        created(33, START_MS - 1_000),
        // It says that it is of the future, which says nothing.
        created(32, START_MS + DAY_MS),
        created(31, START_MS - 5_000),
    ]);
    let live = ["36", "35", "34"];
    assert_eq!(
        names(&world.timeline()),
        ["36", "35", "34", "32", "33", "31"]
    );
    let shown = since(&world, newest);
    assert_eq!(names(&shown)[..3], live);
    let feed = world.source;
    let changes = world
        .read(move |tx| change_feed::after(tx, feed, 0, 10))
        .changes;
    let told = changes.iter().filter(|change| !change.is_history);
    let told: Vec<&str> = told.map(|change| &*change.row.post.upstream_id).collect();
    assert_eq!(told, ["34", "35", "36"]);
}

fn the_servers_clock_says_when_a_source_was_added(store: &Store) {
    // It is an hour behind.
    let hour_ms = 3_600_000;
    let mut world = importing(store, "home");
    world.now_ms = START_MS + 10_000;
    let mut answer = page(
        vec![
            created(2, START_MS - hour_ms + 5_000),
            created(1, START_MS - hour_ms - 5_000),
        ],
        world.now_ms,
    );
    answer.headers.date_ms = Some(world.now_ms - hour_ms);
    world.commit(&newest_page(), answer).expect("a commit");
    let source = world.source;
    let changes = world
        .read(move |tx| change_feed::after(tx, source, 0, 10))
        .changes;
    let history: Vec<bool> = changes.iter().map(|change| change.is_history).collect();
    assert_eq!(history, [true, false]);
}

fn history_goes_on_below_while_new_posts_come_above(store: &Store) {
    let mut world = importing(store, "home");
    world.poll(of_yesterday(37..=40));
    let mut expected: Vec<String> = (37..=40).rev().map(|id| id.to_string()).collect();
    for turn in 0..6 {
        let (newest, lowest) = (world.timeline()[0].id, ids(&world.timeline()));
        let oldest = 37 - 4 * turn;
        assert_eq!(fill(&mut world, of_yesterday(oldest - 4..=oldest - 1)), 4);
        let now = ids(&world.timeline());
        assert_eq!(now[..lowest.len()], lowest);
        assert!(now.is_sorted_by(|a, b| a > b));
        assert_eq!(since(&world, newest), []);
        expected.extend((oldest - 4..oldest).rev().map(|id| id.to_string()));
        world.poll(vec![post(41 + turn, "new"), post(40 + turn, "new")]);
        expected.insert(0, (41 + turn).to_string());
        assert_eq!(names(&world.timeline()), expected);
        assert_eq!(world.public(), world.timeline());
    }
    // IDs are those of creation time, where nothing is in the way.
    let of = |id: &str| {
        let timeline = world.timeline();
        let found = timeline.iter().find(|post| post.upstream_id == id);
        found.expect("a post").id.raw()
    };
    assert_eq!(of("20"), middle_of(START_MS - 2 * DAY_MS + 20 * 3_600_000));
}

fn history_of_several_sources_is_one_timeline(store: &Store) {
    let mut first = importing(store, "first");
    first.poll(of_yesterday(5..=6));
    fill(&mut first, of_yesterday(3..=4));
    let newest = first.public()[0].id;
    let mut second = importing(store, "second");
    let between = |ids: [u64; 2]| {
        let at = |id: u64| START_MS - 2 * DAY_MS + (id - 100) as i64 * 3_600_000 + 1_800_000;
        ids.map(|id| created(id, at(id))).to_vec()
    };
    second.poll(between([104, 103]));
    assert_eq!(names(&second.timeline()), ["104", "103"]);
    let order = ["6", "5", "104", "4", "103", "3"];
    assert_eq!(names(&first.public()), order);
    assert_eq!(since(&second, newest), []);
    fill(&mut first, of_yesterday(1..=2));
    fill(&mut second, between([102, 101]));
    let now = first.public();
    assert!(ids(&now).is_sorted_by(|a, b| a > b));
    let order = ["6", "5", "104", "4", "103", "3", "102", "2", "101", "1"];
    assert_eq!(names(&now), order);
    // Every ID of a post finds it, and references use the public one.
    for post in now.iter().chain(&second.timeline()) {
        let id = post.id;
        let found = first.read(move |tx| timeline::status(tx, id, Viewer::Anonymous));
        assert_eq!(found.expect("a post").upstream_id, post.upstream_id);
    }
    let instance = now[2].instance;
    assert_eq!(local_id(&first, instance, "104"), Some(now[2].id));
    // New posts are above in both.
    second.poll(vec![post(105, "new"), created(104, START_MS - 896)]);
    assert_eq!(names(&second.timeline())[0], "105");
    assert_eq!(names(&second.public())[0], "105");
}

/// A client that asks for what is above the newest ID that it has seen is told of what one source shows, although
/// another had it as history.
fn a_post_that_history_brought_first_moves_up_once_a_source_shows_it_live(store: &Store) {
    let mut live = World::readable(store, "live");
    live.poll(posts([3]));
    let mut second = importing(store, "second");
    second.poll(of_yesterday(4..=6));
    assert_eq!(names(&live.public()), ["3", "6", "5", "4"]);
    let (newest, old) = (live.public()[0].id, live.public()[1].clone());
    live.now_ms += 1_000;
    live.poll(vec![of_yesterday(6..=6).remove(0), post(3, "text")]);
    let news = live.public();
    assert_eq!(names(&news), ["6", "3", "5", "4"]);
    assert!(news[0].id > newest);
    assert_eq!(names(&since(&live, newest)), ["6", "6"]);
    // Where it stood finds it, and the source that had it first lists it where it was.
    let id = old.id;
    let found = live.read(move |tx| timeline::status(tx, id, Viewer::Anonymous));
    assert_eq!(found.expect("a post").upstream_id, "6");
    assert_eq!(second.timeline()[0].id, old.id);
    // It does not move again.
    let mut third = World::readable(store, "third");
    third.poll(vec![of_yesterday(6..=6).remove(0)]);
    assert_eq!(live.public(), news);
}

fn stored_posts_that_another_source_shows_keep_their_public_ids(store: &Store) {
    let mut live = World::readable(store, "live");
    live.poll(posts([3, 2, 1]));
    let public = live.public();
    let mut second = importing(store, "second");
    second.poll(posts([3, 2]));
    fill(&mut second, posts([1]));
    assert_eq!(live.public(), public);
    assert_eq!(names(&second.timeline()), ["3", "2", "1"]);
    assert!(second.timeline()[0].id < public[2].id);
    assert_eq!(live.public(), public);
}

fn a_late_post_of_a_stream_does_not_lift_the_history_that_follows(store: &Store) {
    let mut world = importing(store, "home");
    world.poll(of_yesterday(37..=40));
    let newest = world.timeline()[0].id;
    // Its place is far below, it came just now.
    world.stream(vec![posted(2)]);
    assert_eq!(names(&since(&world, newest)), ["2", "2"]);
    let newest = world.timeline()[0].id;
    assert_eq!(fill(&mut world, of_yesterday(30..=36)), 7);
    assert_eq!(since(&world, newest), []);
    assert_eq!(world.timeline().last().expect("a post").upstream_id, "30");
}

fn a_first_page_after_a_stream_is_above_and_below_what_that_has_shown(store: &Store) {
    let mut world = importing(store, "home");
    world.stream(vec![posted(38), posted(39)]);
    let newest = world.timeline()[0].id;
    world.poll(of_yesterday(35..=41));
    let order = ["41", "40", "39", "38", "37", "36", "35"];
    assert_eq!(names(&world.timeline()), order);
    let news: Vec<_> = since(&world, newest);
    assert_eq!(names(&news), ["41", "40", "41", "40"]);
}

fn private_history_stands_at_its_time_as_well(store: &Store) {
    let mut world = importing(store, "home");
    let mut private = of_yesterday(8..=9);
    private[1].visibility = Visibility::Private;
    world.poll(private);
    fill(&mut world, vec![created(7, START_MS - 60_000)]);
    let trusted = world.timeline_for(Viewer::Operator);
    assert_eq!(names(&trusted), ["7", "9", "8"]);
    assert_eq!(names(&world.public()), ["7", "9"]);
}
