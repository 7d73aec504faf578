//! Quotas that bind while posts are overdue, at the simulated upstream and in reports.

use std::time::Duration;

use driftline_core::tracking::Track;
use driftline_core::{
    answer::Throttle,
    api::Api,
    quota::{QuotaLedger, QuotaPurpose, Unit, WINDOW_EDGE_MS},
};
use driftline_mirror::refresh::RefreshOptions;
use driftline_server::admin::{AddCredential, CredentialRow, ShowRefreshStatus, TrackPosts};
use driftline_sim::{FaultKind, FaultsConfig, ThrottleRule, Traffic, WorldConfig, http::Timeline};
use driftline_store::{StoreError, credential, quota, source::TokenLocation};
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

async fn credential(world: &World) -> Option<CredentialRow> {
    let status = world.run(ShowRefreshStatus).await;
    status.credentials.into_iter().next()
}

async fn is_behind(world: &World) -> bool {
    world.run(ShowRefreshStatus).await.instances[0].overdue > 40
}

#[tokio::test(flavor = "multi_thread")]
async fn use_by_others_is_noticed_and_leads_to_no_storm_of_refusals() {
    const WINDOW_MS: i64 = 10_000;
    let rule = ThrottleRule {
        others: 30,
        ..ThrottleRule::all(60, WINDOW_MS)
    };
    let world = World::start(throttled(rule), Api::Mastodon).await;
    wait("use by others is told", async || {
        let credential = credential(&world).await;
        let mut limits = credential.iter().flat_map(|row| &row.limits);
        limits.any(|limit| limit.used_by_others >= 10)
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
    let left_ms = WINDOW_MS - now().rem_euclid(WINDOW_MS) - WINDOW_EDGE_MS;
    sleep(Duration::from_millis(left_ms.unsigned_abs())).await;
    let at_window_edge = world.sim.traffic();
    next_window(WINDOW_MS).await;
    let before = world.sim.traffic();
    next_window(WINDOW_MS).await;
    let after = world.sim.traffic();
    assert!(is_behind(&world).await, "the quota binds");
    // What is sent just before a window's end counts against the next one, too.
    let late = requests(before) - requests(at_window_edge);
    let used = requests(after) - requests(before);
    let unused = LIMIT.saturating_sub(used + late);
    println!("{used} of {LIMIT} requests used, {late} sent late in the window before");
    assert!(unused <= LIMIT / 15, "{unused} are left unused");
    assert!(late <= LIMIT / 5, "{late} are counted twice");
    assert!(after.failures - before.failures <= 2, "{after:?}");
    world.stop().await;
}

async fn add_credential(world: &World, api: Api, name: &str, monthly_posts: Option<u32>) {
    let add = AddCredential {
        name: Some(name.into()),
        address: world.sim.url(),
        api,
        token: Some(TokenLocation::File(world.token_file())),
        monthly_posts,
    };
    world.run(add).await;
}

async fn track(world: &World, api: Api, posts: usize) {
    let truth = world.sim.truth(&Timeline::Home).unwrap();
    let ids = truth
        .posts
        .iter()
        .take(posts)
        .map(|post| post.id.to_string());
    let track = Track {
        instance: world.sim.url(),
        api: Some(api),
        ids: ids.collect(),
        once: false,
    };
    world
        .run(TrackPosts {
            posts: track,
            allow_private: false,
            check: false,
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_fail_leave_a_monthly_cap_as_it_was() {
    const CAP: u64 = 100_000;
    let config = WorldConfig {
        faults: FaultsConfig {
            shares: [(FaultKind::InternalError, 1.0)].into(),
            ..FaultsConfig::default()
        },
        ..growing()
    };
    let options = RefreshOptions::new("test");
    let world = World::unread(config, Api::X, plan(), options).await;
    // Polls and look-ups use the same token, and so the same cap.
    add_credential(&world, Api::X, "capped", Some(CAP as u32)).await;
    world.mirror_as(Api::X, "mirrored", "driftline").await;
    track(&world, Api::X, 30).await;
    wait("polls and look-ups fail", async || {
        let traffic = world.sim.traffic();
        let look_ups = world.refresh_stats().await.requests;
        look_ups >= 3 && traffic.failures >= look_ups + 3
    })
    .await;
    wait("nothing is charged for it", async || {
        let shown = credential(&world).await.unwrap();
        let mut limits = shown.limits.iter();
        let month = limits.find(|limit| limit.unit == Unit::Posts);
        u64::from(month.unwrap().remaining) == CAP
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_one_request_a_window_is_enough_to_begin_with() {
    const WINDOW_MS: i64 = 5_000;
    let options = RefreshOptions {
        credentials: vec!["one".to_owned()],
        workers: 1,
        ..RefreshOptions::new("test")
    };
    let rule = ThrottleRule::all(1, WINDOW_MS);
    let world = World::unread(throttled(rule), Api::Mastodon, plan(), options).await;
    add_credential(&world, Api::Mastodon, "one", None).await;
    // The limit is known from before: nothing is tried blindly.
    let now_ms = now();
    let throttle = Throttle {
        limit: 1,
        remaining: 0,
        reset_at_ms: now_ms + WINDOW_MS - now_ms.rem_euclid(WINDOW_MS),
        error_ms: 0,
    };
    let store = world.store.write(driftline_store::Root::none(), move |tx| {
        let found = credential::by_name(tx, "one")?.expect("it was added");
        let mut ledger = QuotaLedger::default();
        ledger.answered(QuotaPurpose::Refresh, Some(&throttle), now_ms);
        quota::store(tx, found.key(), "requests", &ledger)?;
        Ok::<_, StoreError>(())
    });
    store.await.unwrap();
    track(&world, Api::Mastodon, 1).await;
    wait("the post is looked up", async || {
        !world.posts().await.is_empty()
    })
    .await;
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
    add_credential(&world, Api::X, "capped", Some(CAP)).await;
    track(&world, Api::X, 30).await;
    // Every post is due each second.
    wait("nothing more is asked for", async || {
        let before = world.sim.traffic();
        sleep(Duration::from_secs(3)).await;
        world.sim.traffic() == before
    })
    .await;
    let shown = credential(&world).await.unwrap();
    assert_eq!(shown.state, "held back", "{shown:?}");
    let reason = shown.reason.as_deref().unwrap();
    assert!(reason.contains("cap of 400 posts a month"), "{shown:?}");
    assert!(shown.until_ms > Some(now()), "{shown:?}");
    let traffic = world.sim.traffic();
    assert!(traffic.posts_refreshed <= u64::from(CAP), "{traffic:?}");
    world.stop().await;
}
