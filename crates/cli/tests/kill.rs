//! Killed at random moments, the copy still equals the truth.
//!
//! `DRIFTLINE_SEED=n` replays a world and its moments, `DRIFTLINE_KILLS=n`
//! kills that often.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use driftline_sim::{
    Lateness, SpanMs, TruePost, Truth, WorldConfig, content_hash,
    http::{Clock, ServerConfig, SimServer, Timeline},
};
use driftline_store::testing::postgres_database;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use support::{DataDir, soon, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_on_sqlite() {
    kill_often(&DataDir::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_on_postgresql() {
    let url = postgres_database();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", &url);
    kill_often(&data_dir).await;
}

async fn kill_often(data_dir: &DataDir) {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |text| text.parse::<u64>().unwrap())
    };
    let seed = number("DRIFTLINE_SEED", rand::random());
    let kills = number("DRIFTLINE_KILLS", 5);
    eprintln!("DRIFTLINE_SEED={seed} DRIFTLINE_KILLS={kills}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);

    let server = SimServer::start(world(kills), seed, Clock::Real)
        .await
        .unwrap();
    let url = server.url();
    let mut add = vec!["source", "add", &url, "--name", "sim", "--allow-private"];
    add.extend(SETTINGS);
    data_dir.json(&add);
    let mut mirror = vec!["mirror", &url, "--name", "sim", "--allow-private"];
    mirror.extend(SETTINGS);
    let mut killed_at_ms = Vec::new();
    for _ in 0..kills {
        let running = if rng.random_bool(0.5) {
            data_dir.start(&mirror)
        } else {
            data_dir.start(&["serve", "--listen", "127.0.0.1:0", "--allow-private"])
        };
        // The moment is the experiment.
        let moment = Duration::from_millis(rng.random_range(20..2_500));
        tokio::time::sleep(moment).await;
        running.kill();
        killed_at_ms.push(Clock::Real.now_ms());
    }

    let (mut running, _) = data_dir.serve(&["--allow-private"]);
    let end_ms = world(kills).world.publish_for_ms.unwrap();
    let begun = server.world(&Timeline::Public).unwrap();
    let started_ms = begun.lock().unwrap().config().start_ms;
    // Many kills take less time than the timeline lasts.
    let silent_ms = started_ms + end_ms + LATEST_MS;
    let left_ms = (silent_ms - Clock::Real.now_ms()).max(0);
    tokio::time::sleep(Duration::from_millis(left_ms.unsigned_abs())).await;
    wait_for("everything is settled", || {
        let report = data_dir.json(&["source", "verify", "sim"]);
        let asked = server.traffic().page_requests;
        asked > 0 && report["settled"] == true
    });
    // A post that was missing from a page is looked up before it counts as
    // deleted, and look-ups keep nothing from being settled.
    let truth = server.truth(&Timeline::Public).unwrap();
    let mut unconfirmed = Vec::new();
    let confirmed = soon(|| {
        unconfirmed = still_there(&truth, &data_dir.export("sim"));
        unconfirmed.is_empty()
    });
    assert!(
        confirmed,
        "deleted, and still there: {unconfirmed:#?} {:#} killed at {killed_at_ms:?}",
        data_dir.json(&["source", "verify", "sim"])
    );
    running.signal("TERM");
    assert_eq!(running.ended().code(), Some(0));

    assert!(truth.posts.len() > 100);
    compare(&truth, &data_dir.export("sim"));
}

/// Posts that were deleted and are not known to be.
///
/// Not the newest: no page proves that it is gone before a newer post is
/// there.
fn still_there<'t>(truth: &'t Truth, rows: &[Value]) -> Vec<&'t TruePost> {
    let newest = rows.iter().map(number).max();
    let live: HashSet<&str> = rows
        .iter()
        // A boost that was taken back is not deleted: it leaves.
        .filter(|row| row["deleted_at_ms"].is_null() && row["left_at_ms"].is_null())
        .filter(|row| Some(number(row)) != newest)
        .filter_map(|row| row["upstream_id"].as_str())
        .collect();
    truth
        .posts
        .iter()
        .filter(|post| post.deleted_at_ms.is_some() && live.contains(post.id.as_str()))
        .collect()
}

fn number(row: &Value) -> u64 {
    row["upstream_id"].as_str().unwrap().parse().unwrap()
}

/// Everything that happens to a post happens before the second look.
fn world(kills: u64) -> ServerConfig {
    ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(HISTORY_MS + i64::try_from(kills).unwrap() * 2_500),
            lateness: Lateness {
                scale: 0.2,
                tail: 6.0,
            },
            deleted_share: 0.05,
            deleted_after_ms: SpanMs::new(100, 1_000),
            edited_share: 0.05,
            edited_after_ms: SpanMs::new(100, 1_000),
            boost_share: 0.1,
            rate_per_s: 15.0,
            ..WorldConfig::default()
        },
        history_ms: HISTORY_MS,
        ..ServerConfig::default()
    }
}

fn compare(truth: &Truth, rows: &[Value]) {
    let mut stored: HashMap<&str, &Value> = HashMap::new();
    for row in rows {
        let id = row["upstream_id"].as_str().unwrap();
        assert!(stored.insert(id, row).is_none(), "{id} is stored twice");
    }
    let arrivals: Vec<i64> = rows
        .iter()
        .map(|row| row["arrival"].as_i64().unwrap())
        .collect();
    assert!(
        arrivals.is_sorted_by(|a, b| a < b),
        "arrivals are not in order"
    );
    for post in &truth.posts {
        let row = stored.remove(post.id.as_str());
        match (row, post.deleted_at_ms) {
            // Nobody had to see it.
            (None, Some(_)) => {}
            (None, None) => panic!("not stored: {post:?}"),
            // That it is known to be is checked by [`still_there`].
            (Some(_), Some(_)) => {}
            (Some(row), None) => {
                assert!(
                    row["deleted_at_ms"].is_null() && row["left_at_ms"].is_null(),
                    "not deleted: {row} {post:?}"
                );
                let content = row["status"]["content"].as_str().unwrap();
                assert_eq!(content_hash(content), post.content_hash, "{row} {post:?}");
            }
        }
    }
    assert!(stored.is_empty(), "never published: {stored:?}");
}

const SETTINGS: [&str; 10] = [
    "--backfill",
    "all",
    "--every",
    "300ms",
    "--spacing",
    "10ms",
    "--second-look",
    "5s",
    "--rung",
    "7s/1s",
];
const HISTORY_MS: i64 = 10_000;
/// The longest lateness, a deletion or edit after it, and some.
const LATEST_MS: i64 = 5_000;
