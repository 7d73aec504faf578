//! A Mastodon server with look-ups of several posts, and one without.

use driftline_core::{
    api::Api,
    refresh::{LookupOutcome, RefreshPlan, ValueSettings},
};
use driftline_server::admin::{
    CountTracked, ExplainPost, ListCredentials, PostState, ShowHistory, ShowRefreshStatus,
    TrackPosts,
};
use driftline_sim::{BatchAbility, ThrottleRule, WorldConfig};

use crate::{
    fill::{check_batches, in_each, refreshed},
    world::{World, agrees, growing, growing_for, now, plan, wait},
};

#[tokio::test(flavor = "multi_thread")]
async fn counts_follow_the_upstream_in_full_batches() {
    in_each(async |fresh, workers| {
        let mut world = refreshed(fresh, Api::Mastodon, workers).await;
        check_counts(&world).await;
        check_batches(&mut world, 20, workers).await;
        world.stop().await;
    })
    .await;
}

async fn check_counts(world: &World) {
    let mut compared = 0;
    for (id, _, state) in world.posts().await {
        let freshness = state.freshness;
        assert!(state.due_at_ms.is_some(), "{id} is due some time");
        // The upstream's counts between sending and a second later: it answered in between.
        let first = world.sim.counts_at(freshness.refreshed_ms, &id);
        let last = world.sim.counts_at(freshness.refreshed_ms + 1_000, &id);
        if let (Some(first), Some(last)) = (first, last)
            && first == last
        {
            assert!(
                agrees(freshness.counts, first),
                "{id}: {freshness:?} against {first:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
    // On a busy machine the workers may be behind for a while.
    wait("not every post is overdue", async || {
        let overdue = world.run(ShowRefreshStatus).await.instances[0].overdue;
        overdue < world.posts().await.len() as u64
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_batch_look_up_is_asked_one_by_one() {
    let mut config = WorldConfig {
        rate_per_s: 0.5,
        ..growing()
    };
    config.batches.ability = BatchAbility::MethodNotAllowed;
    let world = World::start(config, Api::Mastodon).await;
    wait("posts are refreshed", async || {
        let posts = world.posts().await;
        posts.len() >= 5
            && posts
                .iter()
                .filter(|(.., s)| s.freshness.refreshes >= 2)
                .count()
                >= 5
    })
    .await;
    assert_eq!(world.refresh_stats().await.mean_posts(), Some(1.0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_and_deletions_are_noticed_by_look_up_alone() {
    let config = WorldConfig {
        deleted_share: 0.2,
        deleted_after_ms: driftline_sim::SpanMs::new(31_000, 33_000),
        edited_share: 0.3,
        edited_after_ms: driftline_sim::SpanMs::new(31_000, 33_000),
        publish_for_ms: Some(25_000),
        ..growing()
    };
    let world = World::start(config, Api::Mastodon).await;
    world.stored(50).await;
    // From here on only look-ups can notice anything.
    world.host.pollers.as_ref().unwrap().stop().await;
    wait("an edit and a missing post are noticed", async || {
        let edited = world
            .store
            .read(|tx| {
                let count = tx.query_one(
                    "select count(*) from post_history where kind = 'edit'",
                    &[],
                    |row| row.i64(0),
                )?;
                Ok::<_, driftline_store::StoreError>(count)
            })
            .await
            .unwrap();
        edited > 3 && world.count(LookupOutcome::Missing).await > 3
    })
    .await;
    let (id, ..) = &world.posts().await[0];
    let host = world.sim.url().replace("http://", "");
    let post = world
        .find(format!("{host}/{id}"))
        .await
        .expect("found by INSTANCE/ID");
    let name = post.to_string();
    let state = world.run(ExplainPost { post: name.clone() }).await;
    assert!(
        matches!(&state, PostState::Stored(state) if state.id == post && !state.why.is_empty()),
        "{state:?}"
    );
    let history = world.run(ShowHistory { post: name }).await;
    assert!(!history.counts.is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poisonous_post_does_not_hold_the_others_up() {
    let config = growing_for(20_000);
    let world = World::start(config, Api::Mastodon).await;
    world.stored(60).await;
    let (poison, local, _) = world.posts().await[7].clone();
    world.faults(|faults| faults.poison_ids = vec![poison.clone()]);
    world.all_but_one_refreshed().await;
    let state = world.posts().await;
    let (.., poisoned) = state.iter().find(|(_, id, _)| *id == local).unwrap();
    assert_eq!(poisoned.outcome, Some(LookupOutcome::Failed));
    assert!(poisoned.due_at_ms.is_some(), "it is due again");
    world.stop().await;
}

/// All that is due first fails, one by one: that looks like a server that is down.
#[tokio::test(flavor = "multi_thread")]
async fn poisonous_posts_in_a_row_do_not_hold_the_others_up() {
    const POISONOUS: usize = 12;
    let mut config = growing_for(5_000);
    config.batches.ability = BatchAbility::MethodNotAllowed;
    let world = World::start(config, Api::Mastodon).await;
    world.stored(POISONOUS + 1).await;
    let mut posts = world.posts().await;
    posts.sort_by_key(|(.., refresh_state)| refresh_state.due_at_ms);
    let poison: Vec<_> = posts.iter().take(POISONOUS).map(|p| p.0.clone()).collect();
    world.faults(|faults| faults.poison_ids = poison.clone());
    let since_ms = now();
    wait("all others are refreshed again", async || {
        let posts = world.posts().await;
        let others = posts.iter().filter(|(id, ..)| !poison.contains(id));
        others
            .clone()
            .all(|(.., s)| s.freshness.refreshed_ms > since_ms + 1_000)
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn look_ups_are_not_charged_to_the_limit_of_pages() {
    let mut config = growing();
    config.faults.throttles = vec![
        ThrottleRule::all(3_000, 600_000),
        ThrottleRule::paged(24, 3_600_000_000),
    ];
    let world = World::start(config, Api::Mastodon).await;
    wait("the limit of pages is reported", async || {
        let all = world.run(ListCredentials).await;
        let mut limits = all.iter().take(1).flat_map(|row| &row.limits);
        limits.any(|limit| limit.limit == 24)
    })
    .await;
    wait("more look-ups are sent than that", async || {
        world.refresh_stats().await.requests > 30
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn named_posts_are_looked_up_and_kept() {
    let world = World::start(growing(), Api::Mastodon).await;
    wait("posts are stored", async || world.posts().await.len() >= 30).await;
    let known: Vec<String> = world
        .posts()
        .await
        .iter()
        .map(|(id, ..)| id.to_string())
        .take(3)
        .collect();
    let mut ids = known.clone();
    // Of the public timeline, which is not polled here.
    let truth = world
        .sim
        .truth(&driftline_sim::http::Timeline::Public)
        .unwrap();
    ids.extend(truth.posts.iter().take(45).map(|post| post.id.to_string()));
    ids.extend(["1".to_owned(), "not an id".to_owned(), known[0].clone()]);
    let track = driftline_core::tracking::Track {
        instance: world.sim.url(),
        api: None,
        ids,
        once: false,
    };
    let tracked = world
        .run(TrackPosts {
            posts: track,
            allow_private: false,
            check: false,
        })
        .await;
    // Posts that only the private source was shown are looked up for the readers of the tracked posts.
    assert_eq!(tracked.new, 49, "{tracked:?}");
    assert_eq!(tracked.stored, 0, "{tracked:?}");
    assert_eq!(tracked.repeated, 1, "{tracked:?}");
    assert_eq!(tracked.bad.len(), 1, "{tracked:?}");
    wait("the named posts are found", async || {
        let instance = world.sim.url();
        world.run(CountTracked { instance }).await.found >= 40
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
    wait("posts are refreshed", async || {
        let posts = world.posts().await;
        let refreshed = posts.iter().filter(|(.., s)| s.freshness.refreshes >= 2);
        posts.len() >= 100 && refreshed.count() >= 100
    })
    .await;
    assert!(
        world.refresh_stats().await.mean_posts() > Some(15.0),
        "batches are topped up"
    );
    world.stop().await;
}
