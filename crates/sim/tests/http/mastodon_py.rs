//! Mastodon.py, the most used client library of Mastodon's API, listens.

use std::{
    collections::{HashMap, HashSet},
    process::Command,
};

use driftline_sim::{
    SpanMs, WorldConfig,
    http::{Clock, READER_ID, SimServer, Timeline},
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mastodon_py_hears_a_stream_and_looks_posts_up() {
    let mut world = WorldConfig::punctual(40.0);
    world.edited_share = 0.5;
    world.edited_after_ms = SpanMs::new(50, 200);
    world.deleted_share = 0.2;
    world.deleted_after_ms = SpanMs::new(250, 400);
    let server = SimServer::start(world, 1, Clock::Real)
        .await
        .expect("starts");
    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/read_stream.py");
    let url = server.url();
    let output = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(python);
        command.args([script, &url, "60"]).output().expect("runs")
    })
    .await
    .expect("ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the script failed (is Mastodon.py there? `cargo xtask setup` installs it):\n{said}"
    );
    let heard: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let ids =
        |name: &str| -> Vec<String> { serde_json::from_value(heard[name].clone()).expect("texts") };
    let posts = server.truth(&Timeline::Home).expect("home").posts;
    let published: HashMap<String, i64> = posts
        .iter()
        .map(|post| (post.id.to_string(), post.visible_at_ms))
        .collect();
    let updates = ids("update");
    assert_eq!(updates.len(), 60);
    let times: Vec<i64> = updates.iter().map(|id| published[id]).collect();
    assert!(
        times.is_sorted(),
        "they come in the order in which they appear"
    );
    // Of posts that appear at once, the first and the last may be heard alone.
    let between = times[0] + 1..times[59];
    let mut missed = published
        .iter()
        .filter(|(id, at_ms)| between.contains(at_ms) && !updates.contains(id));
    assert_eq!(missed.next(), None, "none is left out");
    assert_eq!(updates.iter().collect::<HashSet<_>>().len(), 60);
    assert!(ids("status_update").len() > 10 && ids("delete").len() > 2);
    assert_eq!(heard["server"], "A simulated server");
    assert_eq!(heard["healthy"], true);
    assert_eq!(heard["me"], READER_ID.to_string());
    let kept: Vec<&String> = updates[..20]
        .iter()
        .filter(|&id| !ids("delete").contains(id))
        .collect();
    assert_eq!(heard["looked_up"], json!(kept));
}
