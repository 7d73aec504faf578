//! One process, killed and started again.

use std::time::Duration;

use driftline_sim::http::{Clock, SimServer, Timeline};
use driftline_store::testing::postgres_database;
use rand::RngExt as _;

use crate::{
    seeded,
    support::{DataDir, soon, wait_for},
    truth::{compare, still_there},
    world::{HISTORY_MS, LATEST_MS, SETTINGS, world},
};

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
    let (seed, kills, mut rng) = seeded(5);
    let publish_for_ms = HISTORY_MS + i64::try_from(kills).unwrap() * 2_500;
    let config = world(15.0, publish_for_ms);
    let server = SimServer::start(config, seed, Clock::Real).await.unwrap();
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
    let begun = server.world(&Timeline::Public).unwrap();
    let started_ms = begun.lock().unwrap().config().start_ms;
    // Many kills take less time than the timeline lasts.
    let silent_ms = started_ms + publish_for_ms + LATEST_MS;
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
    running.stop();

    assert!(truth.posts.len() > 100);
    compare(&truth, &data_dir.export("sim"));
}
