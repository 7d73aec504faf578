//! The wall clocks of a running server and of devices step, under libfaketime, as an operator or a time server may set them.
#![allow(clippy::unwrap_used)]

mod support;

use std::{collections::HashSet, path::Path};

use driftline_sim::{
    Growth, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::{Value, json};
use support::{DataDir, Running, lines, quiet::quiet, replica_scene::Scene, wait_for};

const CONFIG: &str = "[refresh]\nbuffer_ttl = \"200ms\"\n[refresh.ages]\n\"25h\" = \"2s\"\n";

/// Where Debian puts the library; `DRIFTLINE_TEST_FAKETIME` names another place.
fn library() -> String {
    if let Ok(path) = std::env::var("DRIFTLINE_TEST_FAKETIME") {
        return path;
    }
    let folders = std::fs::read_dir("/usr/lib").unwrap();
    let folders = folders.map(|entry| entry.unwrap().path().join("faketime"));
    let found = folders.map(|folder| folder.join("libfaketimeMT.so.1"));
    let found = found.into_iter().find(|path| Path::new(path).is_file());
    found
        .expect("libfaketime; `cargo xtask setup` installs it")
        .to_str()
        .unwrap()
        .to_owned()
}

async fn sim() -> SimServer {
    let config = ServerConfig {
        world: WorldConfig {
            rate_per_s: 2.0,
            growth: Some(Growth {
                half_life_ms: 600_000,
                ..Growth::default()
            }),
            ..WorldConfig::default()
        },
        history_ms: 30_000,
        ..ServerConfig::default()
    };
    SimServer::start(config, 3, Clock::Real).await.unwrap()
}

/// A data folder whose programs see the clock that [`set`] sets.
fn data_dir() -> DataDir {
    let data_dir = DataDir::new();
    let file = data_dir.file("faketime", "+0\n");
    data_dir
        .with("LD_PRELOAD", &library())
        .with("FAKETIME_TIMESTAMP_FILE", &file)
        .with("FAKETIME_NO_CACHE", "1")
        .with("FAKETIME_DONT_FAKE_MONOTONIC", "1")
}

fn set(data_dir: &DataDir, ahead: &str) {
    data_dir.file("faketime", &format!("{ahead}\n"));
}

/// The posts that are stored.
fn stored(data_dir: &DataDir) -> HashSet<String> {
    let rows = data_dir.export("sim").into_iter();
    let ids: Vec<String> = rows
        .map(|row| row["upstream_id"].as_str().unwrap().to_owned())
        .collect();
    let distinct: HashSet<String> = ids.iter().cloned().collect();
    assert_eq!(ids.len(), distinct.len(), "a post is stored twice");
    distinct
}

fn refreshes(data_dir: &DataDir) -> u64 {
    let status = data_dir.json(&["refresh", "status"]);
    let outcomes = &status["instances"][0]["since_start"]["outcomes"];
    let of = |name: &str| outcomes[name].as_u64().unwrap_or(0);
    of("updated") + of("unchanged")
}

fn is_read_on(data_dir: &DataDir, when: &str) {
    let before = stored(data_dir);
    wait_for(&format!("new posts are stored, {when}"), || {
        stored(data_dir).len() > before.len()
    });
    // Its history comes first.
    wait_for(&format!("the source is read, {when}"), || {
        data_dir.json(&["source", "list"])[0]["state"] == "reading"
    });
}

fn is_refreshed_on(data_dir: &DataDir, when: &str) {
    let before = refreshes(data_dir);
    wait_for(&format!("posts are refreshed, {when}"), || {
        refreshes(data_dir) > before + 20
    });
}

/// A server that reads a source with history, and refreshes it.
fn serve(data_dir: &DataDir, sim: &SimServer) -> Running {
    data_dir.file("driftline.toml", CONFIG);
    let (server, _) = data_dir.serve(&["--allow-private"]);
    let url = sim.url();
    let mut line = vec!["source", "add", &url, "--name", "sim"];
    line.extend(["--backfill", "all", "--every", "300ms"]);
    data_dir.json(&line);
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_of_the_clock_stop_neither_polls_nor_refreshes() {
    let (sim, data_dir) = (sim().await, data_dir());
    let mut server = serve(&data_dir, &sim);
    is_read_on(&data_dir, "before any step");
    for ahead in ["+2d", "-2h"] {
        set(&data_dir, ahead);
        is_refreshed_on(&data_dir, &format!("at {ahead}"));
        let polls = sim.traffic().page_requests;
        wait_for(&format!("polls at {ahead}"), || {
            sim.traffic().page_requests > polls + 2
        });
        set(&data_dir, "+0");
        is_read_on(&data_dir, &format!("after {ahead} and back"));
        is_refreshed_on(&data_dir, &format!("after {ahead} and back"));
    }
    server.stop();
}

/// Runs a command on the replica in a device's folder. Returns its lines of JSON.
fn replica(device: &DataDir, arguments: &[&str]) -> Vec<Value> {
    let ended = device.run(&[&REPLICA[..], arguments].concat());
    assert_eq!(ended.status, 0, "{arguments:?}: {ended:?}");
    lines(&ended.stdout)
}

fn has(device: &DataDir, member: &str, expected: &str) -> bool {
    let objects = replica(device, &["show"]);
    objects.iter().any(|of| of["value"][member] == expected)
}

/// The streams of events, the waits, the records of pushes and the times of syncs outlive each step.
#[tokio::test(flavor = "multi_thread")]
async fn steps_of_the_clocks_of_a_server_and_its_devices_stop_no_sync() {
    let scene = Scene::in_data_dir(data_dir(), &quiet(1.0, 1).await, "").await;
    let [syncing, watching] = [data_dir(), data_dir()];
    for device in [&syncing, &watching] {
        device.file("token", &scene.token);
        replica(device, &["init", &scene.base(), "--token-file", "token"]);
    }
    let mut watch = watching.start(&[&REPLICA[..], &["watch", "--every", "1s"]].concat());
    for (number, [of_server, of_syncing, of_watching]) in STEPS.into_iter().enumerate() {
        set(&scene.data_dir, of_server);
        set(&syncing, of_syncing);
        set(&watching, of_watching);
        let [sent, came, title] = ["sent", "came", "list"].map(|what| format!("{what} {number}"));
        let [one, two] = [0, 1].map(|post| scene.uri(post));
        replica(&watching, &["note", one, &sent]);
        wait_for(&format!("{sent} is there"), || {
            replica(&syncing, &["sync"]);
            has(&syncing, "text", &sent)
        });
        replica(&syncing, &["note", two, &came]);
        replica(&syncing, &["sync"]);
        scene
            .post("/api/v1/lists", &json!({ "title": title }))
            .await;
        wait_for(&format!("{came} and {title} are there"), || {
            has(&watching, "text", &came) && has(&watching, "title", &title)
        });
    }
    watch.stop();
    let shown = [&syncing, &watching].map(|device| {
        let verified = replica(device, &["verify"]);
        assert_eq!(verified[0]["is_equal"], true, "{verified:?}");
        assert_eq!(replica(device, &["conflicts", "--all"]).len(), 0);
        replica(device, &["show"])
    });
    assert_eq!(shown[0], shown[1]);
    assert!(!watching.log().contains("panicked"), "{}", watching.log());
}

const REPLICA: [&str; 3] = ["--json", "replica", "--replica=replica"];
/// The clocks of the server and of two devices.
const STEPS: [[&str; 3]; 5] = [
    ["+0", "+0", "+0"],
    ["+2d", "+0", "-2h"],
    ["-2h", "+2d", "+0"],
    ["+0", "-2h", "+2d"],
    ["+0", "+0", "+0"],
];
