//! A simulated upstream, and a Driftline that mirrors it: real sockets, one process.
#![allow(clippy::unwrap_used)]

mod running;
mod streams;

use std::collections::BTreeSet;

use driftline_sim::{Lateness, WorldConfig, http::Timeline as SimTimeline};
use running::{Driftline, settings, upstream};

/// Late posts, bursts above the page limit, no deletions: everything stays, so
/// that copies can be compared whole.
fn world(publish_for_ms: i64) -> WorldConfig {
    WorldConfig {
        publish_for_ms: Some(publish_for_ms),
        lateness: Lateness {
            scale: 0.5,
            tail: 20.0,
        },
        faults: driftline_sim::FaultsConfig::default(),
        deleted_share: 0.0,
        edited_share: 0.0,
        non_public_share: 0.0,
        filtered_share: 0.0,
        ..WorldConfig::demo()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_driftline_mirrors_the_first_ones_public_timeline() {
    let sim = upstream(world(6_000)).await;
    let first = Driftline::start().await;
    first.mirror(&sim.url(), "home", settings()).await;
    let second = Driftline::start().await;
    second.mirror(&first.url(), "public", settings()).await;
    second
        .until(async || {
            let published = sim.truth(&SimTimeline::Home).unwrap().posts.len();
            first.is_settled().await
                && first.stored().await >= published
                && second.is_settled().await
                && second.stored().await >= published
        })
        .await;
    let published = sim.truth(&SimTimeline::Home).unwrap().posts.len();
    let (ours, theirs) = (uris(&second).await, uris(&first).await);
    assert_eq!(theirs.len(), published);
    assert_eq!(ours, theirs);
    second.stop().await;
    first.stop().await;
    sim.shutdown().await;
}

/// The names across servers of all posts that a Driftline mirrors.
async fn uris(driftline: &Driftline) -> BTreeSet<String> {
    let rows = driftline.rows().await.into_iter();
    rows.map(|row| row.post.uri.unwrap()).collect()
}
