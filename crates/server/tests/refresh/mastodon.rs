//! A Mastodon server with look-ups of several posts, by age and by value.

use driftline_core::{
    api::Api,
    post::Counts,
    refresh::{RefreshPlan, ValueSettings},
};
use driftline_server::admin::ShowRefreshStatus;

use crate::world::{World, growing, growing_for, now, plan, wait};

#[tokio::test(flavor = "multi_thread")]
async fn counts_follow_the_upstream() {
    let world = World::start(growing_for(29_000), Api::Mastodon).await;
    world.refreshed(100, 3).await;
    for (id, _, state) in world.posts().await {
        let freshness = state.freshness;
        assert!(state.due_at_ms.is_some(), "{id} is due some time");
        // Counts never shrink, so what the upstream showed lies between what it had then and what it has now.
        let then = world.sim.counts_at(freshness.refreshed_ms, &id);
        let bounds = then.zip(world.sim.counts_at(now(), &id));
        let stored = numbers(freshness.counts);
        let is_between = bounds.is_none_or(|(then, now)| {
            let both = numbers(then).into_iter().zip(numbers(now));
            let mut all = both.zip(stored);
            all.all(|((then, now), stored)| then <= stored && stored <= now)
        });
        assert!(is_between, "{id}: {freshness:?} against {bounds:?}");
    }
    // On a busy machine the workers may be behind for a while.
    wait("not every post is overdue", async || {
        let overdue = world.run(ShowRefreshStatus).await.instances[0].overdue;
        overdue < world.posts().await.len() as u64
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn posts_are_refreshed_by_worth_too() {
    let plan = RefreshPlan {
        by_value: Some(ValueSettings {
            floor_ms: 500,
            probes_ms: vec![500, 1_000],
            ..ValueSettings::default()
        }),
        ..plan()
    };
    let world = World::start_with(growing(), Api::Mastodon, plan).await;
    world.refreshed(100, 2).await;
    assert!(
        world.refresh_stats().await.mean_posts() > Some(15.0),
        "batches are topped up"
    );
    world.stop().await;
}

fn numbers(counts: Counts) -> [Option<i64>; 3] {
    [counts.replies, counts.boosts, counts.favourites]
}
