//! History: readable while it is fetched, and always below what readers have seen.

use driftline_core::{
    answer::LookUp,
    post::{Post, Visibility},
    timeline::Backfill,
};
use driftline_id::Layout;
use driftline_store::{
    LocalId, Store,
    local_ids::MIN_LOCAL_ID,
    timeline::{self, Range, TimelinePost, Viewer},
};

use crate::{
    references::local_id,
    streams::posted,
    world::{START_MS, World, names, on_both, page, post, posts},
};

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

#[test]
fn a_first_page_takes_ids_from_creation_time_and_is_readable_at_once() {
    on_both(|store| {
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
        let first = [middle_of(START_MS), yesterday + 1, yesterday, room];
        assert_eq!(ids(&world.timeline()), first);
        assert_eq!(world.public(), world.timeline());
        // What comes later is below even a post that says it is of 1970; and what has no time of
        // its own as well.
        let newest = world.timeline()[0].id;
        assert_eq!(
            fill(&mut world, vec![created(5, START_MS), created(4, None)]),
            2
        );
        assert_eq!(names(&world.timeline()), ["9", "8", "7", "6", "5", "4"]);
        assert_eq!(ids(&world.timeline())[4..], [room - 1, room - 2]);
        assert_eq!(world.public(), world.timeline());
        assert_eq!(since(&world, newest), []);
        // What is live is above every ID, whatever the clock says.
        world.now_ms -= 60_000;
        world.poll(posts([10, 9]));
        assert_eq!(names(&world.timeline())[0], "10");
        assert!(world.timeline()[0].id > newest);
    });
}

#[test]
fn history_goes_on_below_while_new_posts_come_above() {
    on_both(|store| {
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
    });
}

#[test]
fn history_of_a_later_source_is_below_all_that_the_public_timeline_has_shown() {
    on_both(|store| {
        let mut first = importing(store, "first");
        first.poll(of_yesterday(5..=6));
        fill(&mut first, of_yesterday(3..=4));
        let (public, newest) = (first.public(), first.public()[0].id);
        let mut second = importing(store, "second");
        let of_today = |ids: [u64; 2]| {
            ids.map(|id| created(id, START_MS - 1_000 + id as i64))
                .to_vec()
        };
        second.poll(of_today([104, 103]));
        let shown = second.timeline();
        assert_eq!(
            ids(&shown),
            [104, 103].map(|id| middle_of(START_MS - 1_000 + id))
        );
        assert_eq!(
            since(&second, newest),
            shown,
            "in its list they are at their time"
        );
        let now = second.public();
        assert_eq!(now[..4], public);
        assert_eq!(names(&now)[4..], ["104", "103"]);
        // Each goes on below whatever the other has shown.
        fill(&mut first, of_yesterday(1..=2));
        fill(&mut second, of_today([102, 101]));
        let now = first.public();
        assert!(ids(&now).is_sorted_by(|a, b| a > b));
        let order = ["6", "5", "4", "3", "104", "103", "2", "1", "102", "101"];
        assert_eq!(names(&now), order);
        assert_eq!(names(&second.timeline()), ["104", "103", "102", "101"]);
        // Every ID of a post finds it, and references use the public one.
        for post in now.iter().chain(&second.timeline()) {
            let id = post.id;
            let found = first.read(move |tx| timeline::status(tx, id, Viewer::Anonymous));
            assert_eq!(found.expect("a post").upstream_id, post.upstream_id);
        }
        let instance = now[4].instance;
        assert_eq!(local_id(&first, instance, "104"), Some(now[4].id));
        // New posts are above in both.
        second.poll(vec![post(105, "new"), created(104, START_MS - 896)]);
        assert_eq!(names(&second.timeline())[0], "105");
        assert_eq!(names(&second.public())[0], "105");
    });
}

#[test]
fn stored_posts_that_another_source_shows_keep_their_public_ids() {
    on_both(|store| {
        let mut live = World::readable(store, "live");
        live.poll(posts([3, 2, 1]));
        let public = live.public();
        let mut second = importing(store, "second");
        second.poll(posts([3, 2]));
        fill(&mut second, posts([1]));
        assert_eq!(live.public(), public);
        assert_eq!(names(&second.timeline()), ["3", "2", "1"]);
        assert!(second.timeline()[0].id < public[2].id);
    });
}

#[test]
fn a_late_post_of_a_stream_does_not_lift_the_history_that_follows() {
    on_both(|store| {
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
    });
}

#[test]
fn a_first_page_after_a_stream_is_above_and_below_what_that_has_shown() {
    on_both(|store| {
        let mut world = importing(store, "home");
        world.stream(vec![posted(38), posted(39)]);
        let newest = world.timeline()[0].id;
        world.poll(of_yesterday(35..=41));
        let order = ["41", "40", "39", "38", "37", "36", "35"];
        assert_eq!(names(&world.timeline()), order);
        let news: Vec<_> = since(&world, newest);
        assert_eq!(names(&news), ["41", "40", "41", "40"]);
    });
}

#[test]
fn the_lowest_id_is_remembered_when_its_post_is_gone_or_has_returned() {
    on_both(|store| {
        let mut world = importing(store, "home");
        world.poll(of_yesterday(8..=9));
        let lowest = world.timeline()[1].id;
        world.look_up("8", LookUp::Gone);
        world.now_ms += 1_000;
        world.poll(of_yesterday(8..=9));
        assert_eq!(names(&world.timeline()), ["8", "9"]);
        // They say that they are newer than what was lowest.
        let newer = [7, 6].map(|id| created(id, START_MS - 3_600_000)).to_vec();
        fill(&mut world, newer);
        assert_eq!(names(&world.timeline()), ["8", "9", "7", "6"]);
        assert!(world.timeline()[2].id < lowest);
        assert_eq!(world.public(), world.timeline());
    });
}

#[test]
fn private_history_is_below_as_well() {
    on_both(|store| {
        let mut world = importing(store, "home");
        let mut private = of_yesterday(8..=9);
        private[1].visibility = Visibility::Private;
        world.poll(private);
        fill(&mut world, vec![created(7, START_MS)]);
        let trusted = world.timeline_for(Viewer::Operator);
        assert_eq!(names(&trusted), ["9", "8", "7"]);
        assert_eq!(names(&world.public()), ["9", "7"]);
    });
}

#[test]
fn where_there_is_no_room_below_history_is_above_and_still_in_order() {
    on_both(|store| {
        let mut world = importing(store, "home");
        world.poll(of_yesterday(8..=9));
        let source = world.source.id.raw() as i64;
        world.write(move |tx| {
            let set = "update source set lowest_id = $2 where id = $1";
            tx.execute(set, &[&source, &(MIN_LOCAL_ID + 1)])?;
            Ok(())
        });
        let newest = world.timeline()[0].id;
        assert_eq!(fill(&mut world, of_yesterday(5..=7)), 3);
        let timeline = world.timeline();
        assert_eq!(names(&timeline), ["6", "5", "9", "8", "7"]);
        // Below are the IDs of sources.
        assert_eq!(timeline[4].id.raw(), MIN_LOCAL_ID as u64);
        assert!(timeline[1].id > newest);
    });
}
