//! Several credentials of one upstream, and what one of them is refused.

use std::time::Duration;

use driftline_core::{api::Api, refresh::LookupOutcome};
use driftline_mirror::refresh::RefreshOptions;
use driftline_server::admin::{ListCredentials, RemoveCredential, RemoveSource, Request as _};
use driftline_sim::{FaultKind, Hiding, PoisonAnswer, WorldConfig};
use driftline_store::LocalId;

use crate::world::{World, growing, growing_for, plan, wait};

/// Posts are refreshed with the first source's token alone; another source is read with another.
async fn two_readers(api: Api) -> World {
    let config = growing_for(25_000);
    let options = RefreshOptions {
        credentials: vec!["mirrored".into()],
        ..RefreshOptions::new("test")
    };
    let world = World::start_options(config, api, plan(), options).await;
    world.mirror_as(api, "second", "other").await;
    world.refreshed(40, 1).await;
    world.host.pollers.as_ref().unwrap().stop().await;
    world
}

async fn hide(world: &World, at: usize, token: Option<&str>) -> (LocalId, u32) {
    let (id, local, state) = world.posts().await[at].clone();
    world.faults(|faults| {
        faults.hidings.push(Hiding {
            id,
            token: token.map(str::to_owned),
            after_ms: 0,
        });
    });
    (local, state.freshness.refreshes)
}

fn is_seen(outcome: Option<LookupOutcome>) -> bool {
    matches!(
        outcome,
        Some(LookupOutcome::Updated | LookupOutcome::Unchanged)
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_another_credential_sees_is_not_hidden() {
    let world = two_readers(Api::X).await;
    let (post, before) = hide(&world, 5, Some("driftline")).await;
    wait("it is refreshed all the same", async || {
        world.refresh_state(post).await.freshness.refreshes >= before + 4
    })
    .await;
    assert!(is_seen(world.refresh_state(post).await.outcome));
    assert_eq!(world.count(LookupOutcome::Hidden).await, 0);
    let (secret, _) = hide(&world, 6, None).await;
    wait("a post that no credential sees is hidden", async || {
        world.refresh_state(secret).await.outcome == Some(LookupOutcome::Hidden)
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_counts_as_deleted_when_no_credential_sees_it() {
    let world = two_readers(Api::Mastodon).await;
    let (seen, before) = hide(&world, 5, Some("driftline")).await;
    let (gone, _) = hide(&world, 6, None).await;
    for post in [seen, gone] {
        wait("it is left out", async || {
            world.refresh_state(post).await.outcome == Some(LookupOutcome::Missing)
        })
        .await;
        world.hasten(post).await;
    }
    wait("the one is seen, the other gone", async || {
        let (seen, gone) = (
            world.refresh_state(seen).await,
            world.refresh_state(gone).await,
        );
        seen.freshness.refreshes > before
            && is_seen(seen.outcome)
            && gone.outcome == Some(LookupOutcome::Deleted)
    })
    .await;
    // It is counted after it is stored.
    wait("one is counted as deleted", async || {
        world.count(LookupOutcome::Deleted).await == 1
    })
    .await;
    world.stop().await;
}

async fn state(world: &World, name: &str) -> String {
    let mut all = world.run(ListCredentials).await.into_iter();
    all.find(|row| row.name == name).unwrap().state
}

#[tokio::test(flavor = "multi_thread")]
async fn a_403_to_a_batch_is_about_a_post_of_it() {
    let config = WorldConfig {
        rate_per_s: 1.0,
        ..growing_for(25_000)
    };
    let world = World::start(config, Api::Mastodon).await;
    world.refreshed(10, 1).await;
    let (poison, local, _) = world.posts().await[3].clone();
    world.faults(|faults| {
        faults.poison_ids = vec![poison];
        faults.poison_answer = PoisonAnswer::Forbidden;
    });
    wait("it is hidden", async || {
        world.refresh_state(local).await.outcome == Some(LookupOutcome::Hidden)
    })
    .await;
    world.all_but_one_refreshed().await;
    assert_eq!(state(&world, "mirrored").await, "in use");
    // What is refused for every post is the credential's own.
    world.faults(|faults| faults.poison_share = 1.0);
    wait("the credential rests", async || {
        state(&world, "mirrored").await == "resting"
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_of_a_sources_token_is_not_removed() {
    let world = World::start(growing(), Api::Mastodon).await;
    world.stored(20).await;
    let remove = |name: &str| {
        let name = name.to_owned();
        RemoveCredential { name }.execute(&world.host)
    };
    let refused = remove("mirrored").await.expect_err("in use");
    assert!(refused.to_string().contains("\"mirrored\""), "{refused}");
    assert_eq!(state(&world, "mirrored").await, "in use");
    let name = "mirrored".to_owned();
    world
        .run(RemoveSource {
            name,
            keep_posts: false,
        })
        .await;
    remove("mirrored").await.expect("no source uses it");
    world.stop().await;
}

/// A server that is down is not asked again and again: the pauses double.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_asked_more_and_more_rarely() {
    let world = World::start(growing_for(25_000), Api::Mastodon).await;
    world.refreshed(40, 1).await;
    world.faults(|faults| faults.shares = [(FaultKind::InternalError, 1.0)].into());
    // How many it takes to see that it is down depends on who asks first. Without growing pauses two
    // workers ask at least twice a second for ever.
    let mut windows = Vec::new();
    for _ in 0..15 {
        let before = world.refresh_stats().await.requests;
        tokio::time::sleep(Duration::from_secs(4)).await;
        windows.push(world.refresh_stats().await.requests - before);
        if windows.last() <= Some(&4) {
            break;
        }
    }
    assert!(
        windows.last() <= Some(&4),
        "requests in each 4 s: {windows:?}"
    );
    world.faults(|faults| faults.shares.clear());
    world.all_but_one_refreshed().await;
    world.stop().await;
}
