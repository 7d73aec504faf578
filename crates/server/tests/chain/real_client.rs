//! Mastodon.py, the most used client library, against Driftline.

use std::process::Command;

use driftline_server::testing::OPERATOR_TOKEN;
use driftline_sim::http::Timeline as SimTimeline;

use crate::{
    running::{Driftline, settings, upstream},
    world,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mastodon_py_pages_through_timelines_both_ways() {
    let sim = upstream(world(3_000)).await;
    let driftline = Driftline::start().await;
    driftline.mirror(&sim.url(), "home", settings()).await;
    driftline
        .until(60, async || {
            let published = sim.truth(&SimTimeline::Home).unwrap().posts.len();
            driftline.is_settled().await && driftline.stored().await >= published
        })
        .await;
    let oldest_first = driftline.public_ids().await;
    assert!(
        oldest_first.len() > 80,
        "three pages at least: {}",
        oldest_first.len()
    );

    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/chain/read_timelines.py");
    let list = driftline.source().await.id.to_string();
    let url = driftline.url();
    let output = tokio::task::spawn_blocking(move || {
        Command::new(python)
            .args([script, &url, &list, OPERATOR_TOKEN])
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the script failed (is Mastodon.py there? `cargo xtask setup` installs it):\n{said}"
    );
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids = |name: &str| -> Vec<String> { serde_json::from_value(read[name].clone()).unwrap() };
    let newest_first: Vec<String> = oldest_first.iter().rev().cloned().collect();
    assert_eq!(ids("public_backward"), newest_first);
    assert_eq!(ids("public_forward"), oldest_first);
    // Whose source it is sees the posts, too, that are not for everyone.
    assert_eq!(ids("list_backward").len(), driftline.stored().await);
    assert_eq!(read["server"], "Driftline");
    assert_eq!(read["lists"], serde_json::json!(["mirrored"]));
    assert_eq!(read["one"], serde_json::json!(oldest_first[0]));
    driftline.stop().await;
    sim.shutdown().await;
}
