//! X and Twitter, polled and refreshed.

use driftline_core::api::Api;

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
