//! Quotas that bind while posts are overdue, at the simulated upstream and in what people are told.

use std::time::Duration;

use driftline_core::{api::Api, quota::SEAM_MS};
use driftline_server::{
    admin::{AddCredential, Command, Token, Track},
    refresh::RefreshOptions,
};
use driftline_sim::{FaultsConfig, ThrottleRule, Traffic, WorldConfig, http::Timeline};
use serde_json::Value;
use tokio::time::sleep;

use crate::world::{World, growing, now, plan, wait};

fn throttled(rule: ThrottleRule) -> WorldConfig {
    WorldConfig {
        faults: FaultsConfig {
            throttles: vec![rule],
            ..FaultsConfig::default()
        },
        ..growing()
    }
}

fn requests(traffic: Traffic) -> u64 {
    traffic.page_requests + traffic.look_ups + traffic.batches
}

/// Lets time pass until a window of the upstream's begins.
async fn next_window(window_ms: i64) {
    let left_ms = window_ms - now().rem_euclid(window_ms);
    sleep(Duration::from_millis(left_ms.unsigned_abs())).await;
}

async fn credential(world: &World) -> Value {
    let status = world.run(Command::RefreshStatus).await;
    status["credentials"][0].clone()
}

async fn is_behind(world: &World) -> bool {
    let status = world.run(Command::RefreshStatus).await;
    status["instances"][0]["overdue"].as_u64() > Some(40)
}

#[tokio::test(flavor = "multi_thread")]
async fn use_by_others_is_noticed_and_leads_to_no_storm_of_refusals() {
    const WINDOW_MS: i64 = 10_000;
    let rule = ThrottleRule::all(60, WINDOW_MS).with_others(30);
    let world = World::start(throttled(rule), Api::Mastodon).await;
    wait("use by others is told", async || {
        let credential = credential(&world).await;
        let limits = credential["limits"].as_array().cloned();
        let mut limits = limits.unwrap_or_default().into_iter();
        limits.any(|limit| limit["used_by_others"].as_u64() >= Some(10))
    })
    .await;
    next_window(WINDOW_MS).await;
    let before = world.sim.traffic();
    next_window(WINDOW_MS).await;
    next_window(WINDOW_MS).await;
    let after = world.sim.traffic();
    assert!(is_behind(&world).await, "the quota binds");
    let refused = after.failures - before.failures;
    assert!(refused <= 4, "{refused} refusals in two windows");
    assert!(after.batches - before.batches > 10, "{before:?} {after:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn little_of_a_window_is_left_unused_while_posts_are_overdue() {
    const WINDOW_MS: i64 = 15_000;
    const LIMIT: u64 = 90;
    let rule = ThrottleRule::all(LIMIT as u32, WINDOW_MS);
    next_window(WINDOW_MS).await;
    let world = World::start(throttled(rule), Api::Mastodon).await;
    sleep(Duration::from_millis((WINDOW_MS / 2).unsigned_abs())).await;
    let left_ms = WINDOW_MS - now().rem_euclid(WINDOW_MS) - SEAM_MS;
    sleep(Duration::from_millis(left_ms.unsigned_abs())).await;
    let at_seam = world.sim.traffic();
    next_window(WINDOW_MS).await;
    let before = world.sim.traffic();
    next_window(WINDOW_MS).await;
    let after = world.sim.traffic();
    assert!(is_behind(&world).await, "the quota binds");
    // What is sent just before a window's end counts against the next one, too.
    let late = requests(before) - requests(at_seam);
    let used = requests(after) - requests(before);
    let unused = LIMIT.saturating_sub(used + late);
    println!("{used} of {LIMIT} requests used, {late} sent late in the window before");
    assert!(unused <= LIMIT / 15, "{unused} are left unused");
    assert!(late <= LIMIT / 5, "{late} are counted twice");
    assert!(after.failures - before.failures <= 2, "{after:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monthly_cap_holds_refreshing_back_and_says_so() {
    const CAP: u32 = 400;
    let options = RefreshOptions {
        credentials: vec!["capped".to_owned()],
        ..RefreshOptions::new("test")
    };
    let world = World::unread(growing(), Api::X, plan(), options).await;
    let add = AddCredential {
        name: Some("capped".into()),
        address: world.sim.url(),
        api: Api::X,
        token: Token::File(world.token_file()),
        monthly_posts: Some(CAP),
    };
    world.run(Command::CredentialAdd(Box::new(add))).await;
    let truth = world.sim.truth(&Timeline::Home).unwrap();
    let ids = truth.posts.iter().take(30).map(|post| post.id.to_string());
    let track = Track {
        instance: world.sim.url(),
        api: Some(Api::X),
        ids: ids.collect(),
        once: false,
    };
    world.run(Command::Track(Box::new(track))).await;
    // Every post is due each second.
    wait("nothing more is asked for", async || {
        let before = world.sim.traffic();
        sleep(Duration::from_secs(3)).await;
        world.sim.traffic() == before
    })
    .await;
    let told = credential(&world).await;
    assert_eq!(told["state"], "held back", "{told}");
    let reason = told["reason"].as_str().unwrap();
    assert!(reason.contains("cap of 400 posts a month"), "{told}");
    assert!(told["until_ms"].as_i64() > Some(now()), "{told}");
    let traffic = world.sim.traffic();
    assert!(traffic.posts_refreshed <= u64::from(CAP), "{traffic:?}");
    world.stop().await;
}
