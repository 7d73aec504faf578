//! What an overview of a whole store reads: a bounded number of rows, whatever is stored.

use driftline_core::{post::Post, refresh::Policy, timeline::Backfill};
use driftline_store::{
    post_delay::{self, PostTimes},
    refresh::{Waiting, waiting},
    source,
    tracked::add_lookups,
};

use crate::{
    refresh::{MINUTE_MS, liked},
    world::{START_MS, Store, World, post},
};

on_both!(
    overviews_have_the_last_arrivals_of_each_source_but_no_history,
    overviews_count_what_is_due_up_to_a_limit,
);

const DAY_MS: i64 = 86_400_000;

fn overviews_have_the_last_arrivals_of_each_source_but_no_history(store: &Store) {
    let created = |id, ms: Option<i64>| Post {
        created_at_ms: ms,
        ..post(id, "text")
    };
    let mut home = World::new(store, "home");
    home.settings.backfill = Backfill::Count(1_000);
    // The first page begins history: of a day before, it says nothing of the delay.
    home.poll(vec![
        created(2, Some(START_MS - 5)),
        created(1, Some(START_MS - DAY_MS)),
    ]);
    let other = World::readable(store, "other");
    home.now_ms += 1_000;
    home.poll(vec![created(4, None), created(3, Some(START_MS + 100))]);
    let sources = [other.source, home.source];
    let last = |limit| home.read(move |tx| post_delay::recent(tx, &sources, limit));
    let arrival = |created_at_ms, arrived_at_ms| PostTimes {
        created_at_ms,
        arrived_at_ms,
    };
    let third = arrival(START_MS + 100, START_MS + 1_000);
    assert_eq!(last(40), [vec![], vec![third]]);
    // The newest entry has no time.
    assert_eq!(last(1), [vec![], vec![]]);
    home.now_ms += 1_000;
    home.poll(vec![created(5, Some(START_MS + 1_900))]);
    let fifth = arrival(START_MS + 1_900, START_MS + 2_000);
    let last = home.read(move |tx| post_delay::recent(tx, &sources, 1));
    assert_eq!(last, [vec![], vec![fifth]]);
}

fn overviews_count_what_is_due_up_to_a_limit(store: &Store) {
    let mut world = World::readable(store, "tracked");
    world.poll(vec![liked(9, 0)]);
    let (source, now_ms) = (world.source, START_MS + MINUTE_MS);
    let ids: Vec<String> = (101..=140).map(|id: u64| id.to_string()).collect();
    world.write(move |tx| add_lookups(tx, source, &ids, false, &Policy::default(), START_MS));
    let instance = world.read(|tx| Ok(source::instances(tx)?[0].id));
    let waits = |at_ms, limit| world.read(move |tx| waiting(tx, &[instance], at_ms, limit))[0];
    assert_eq!(waits(START_MS - 1, 100), Waiting::default());
    let all = Waiting {
        due: 40,
        has_more: false,
        first_due_ms: Some(START_MS),
    };
    assert_eq!(waits(now_ms, 100), all);
    // Each of the eight buckets has some, so one row of each is looked at.
    let first = waits(now_ms, 1);
    assert!(first.has_more && first.due <= 8, "{first:?}");
    assert_eq!(first.first_due_ms, Some(START_MS));
}
