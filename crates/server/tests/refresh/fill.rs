//! How full batches are while more than one is due.

use driftline_core::api::Api;
use driftline_db::testing::{Fresh, databases};
use driftline_mirror::refresh::RefreshOptions;
use futures_util::future::join_all;

use crate::world::{World, every, growing_for, now, plan, wait};

/// A world whose posts were all refreshed three times by so many workers, and are again and again.
pub(crate) async fn refreshed(fresh: Fresh, api: Api, workers: usize) -> World {
    let config = growing_for(29_000);
    let mut world = World::without_workers(fresh, config, api, plan()).await;
    world.refresh(plan(), of(workers));
    world.mirror_as(api, "mirrored", "driftline").await;
    world.refreshed(100, 3).await;
    world
}

/// So many workers look all posts up whenever they come due at once: each once, in as few batches
/// of that size as hold them.
pub(crate) async fn check_batches(world: &mut World, size: usize, workers: usize) {
    let setup = format!("{workers} workers on {:?}", world.store.dialect());
    world.host.pollers.as_ref().unwrap().stop().await;
    world.host.refreshers.take().unwrap().stop().await;
    world.all_due(now() + 3_600_000).await;
    world.refresh(every(3_600_000), of(workers));
    let posts = world.posts().await.len() as u64;
    for round in 1..=ROUNDS {
        let due_ms = now() + 300;
        world.all_due(due_ms).await;
        wait("all posts are refreshed", async || {
            let posts = world.posts().await;
            let mut times = posts.iter().map(|(.., s)| s.freshness.refreshed_ms);
            times.all(|at_ms| at_ms >= due_ms)
        })
        .await;
        let refresh_stats = world.refresh_stats().await;
        assert_eq!(refresh_stats.posts, round * posts, "each once: {setup}");
        let requests = round * posts.div_ceil(size as u64);
        assert_eq!(
            refresh_stats.requests, requests,
            "for {posts} posts {round} times: {setup}"
        );
    }
}

fn of(workers: usize) -> RefreshOptions {
    RefreshOptions {
        workers,
        ..RefreshOptions::new("test")
    }
}

/// Runs a check on each database with one, two and four workers, all at once: they mostly wait.
pub(crate) async fn in_each(check: impl AsyncFn(Fresh, usize)) {
    let check = &check;
    let worlds = [1, 2, 4].into_iter().flat_map(|workers| {
        let on = move |fresh| async move { check(fresh, workers).await };
        databases().into_iter().map(on)
    });
    join_all(worlds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_of_x_are_full_while_more_than_one_is_due() {
    in_each(async |fresh, workers| {
        let mut world = refreshed(fresh, Api::X, workers).await;
        check_batches(&mut world, 100, workers).await;
        world.stop().await;
    })
    .await;
}

const ROUNDS: u64 = 4;
