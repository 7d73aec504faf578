//! X and Twitter, polled and refreshed.

use driftline_core::api::Api;
use driftline_server::admin::Command;
use driftline_sim::{PostsCap, ThrottleRule};
use serde_json::Value;

use crate::world::{World, growing, wait};

async fn is_read_and_kept_fresh(api: Api) {
    let world = World::start(growing(), api).await;
    wait("posts are refreshed", async || {
        let posts = world.posts().await;
        posts.len() >= 100
            && posts
                .iter()
                .filter(|(.., s)| s.freshness.refreshes >= 2)
                .count()
                >= 100
    })
    .await;
    let tally = world.tally().await;
    let mean = tally.mean_posts().unwrap();
    assert!(mean > 40.0, "{mean} posts a request");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn x_is_read_and_kept_fresh() {
    is_read_and_kept_fresh(Api::X).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twitter_is_read_and_kept_fresh() {
    is_read_and_kept_fresh(Api::Twitter).await;
}

/// X refuses what is above its own cap on posts a month with 429, beside a window with requests
/// left, or with 403.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_used_up_is_waited_for_and_told() {
    for forbidden in [false, true] {
        let mut config = growing();
        config.faults.throttles = vec![ThrottleRule::all(1_000, 10_000)];
        config.faults.posts_cap = Some(PostsCap {
            posts: 400,
            period_ms: 30 * 86_400_000,
            forbidden,
        });
        let world = World::start(config, Api::X).await;
        wait("the credential rests", async || {
            credential(&world).await["state"] == "resting"
        })
        .await;
        let told = credential(&world).await;
        let reason = told["reason"].as_str().unwrap();
        assert!(
            reason.contains("are used up") && reason.contains("Monthly"),
            "{reason}"
        );
        let limits = told["limits"].as_array().unwrap();
        assert!(!limits.is_empty());
        assert!(
            limits
                .iter()
                .all(|limit| limit["used_by_others"].as_u64() < Some(20)),
            "{told}"
        );
        // One look-up or two that were on their way, and a poll.
        let failures = world.sim.traffic().failures;
        assert!(failures <= 4, "{failures} refusals");

        world.faults(|faults| faults.posts_cap = None);
        let before = world.tally().await.posts;
        let name = told["name"].as_str().unwrap().to_owned();
        world.run(Command::CredentialTest { name }).await;
        wait("posts are refreshed again", async || {
            world.tally().await.posts > before + 100
        })
        .await;
        world.stop().await;
    }
}

async fn credential(world: &World) -> Value {
    let list = world.run(Command::CredentialList).await;
    list[0].clone()
}
