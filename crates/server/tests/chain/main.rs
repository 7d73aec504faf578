//! A simulated upstream, a Driftline that mirrors it, and clients of both:
//! real sockets, one process.
#![allow(clippy::unwrap_used)]

mod clients;
mod real_client;
mod running;
mod streams;
mod takeover;

use std::collections::HashSet;

use driftline_sim::{Lateness, WorldConfig, baseline::Poller, http::Timeline as SimTimeline};
use driftline_upstream::Timeline;
use running::{Driftline, settings, upstream};

use crate::clients::{Client, uris};

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
async fn a_naive_client_of_driftline_misses_nothing_though_the_upstreams_does() {
    let sim = upstream(world(10_000)).await;
    let driftline = Driftline::start().await;
    driftline.mirror(&sim.url(), "home", settings()).await;

    let of_sim = Client::new(&sim.url(), Timeline::Home, "naive");
    let of_driftline = Client::new(&driftline.url(), Timeline::Public, "naive");
    let mut at_sim = Poller::naive();
    let mut at_driftline = Poller::naive();
    driftline
        .until(60, async || {
            of_sim.poll(&mut at_sim).await;
            of_driftline.poll(&mut at_driftline).await;
            let published = sim.truth(&SimTimeline::Home).unwrap().posts.len();
            driftline.is_settled().await && driftline.stored().await >= published
        })
        .await;
    of_driftline.poll(&mut at_driftline).await;

    let truth = sim.truth(&SimTimeline::Home).unwrap();
    assert!(truth.posts.len() > 100, "the world is busy");
    let missed = truth.missing_from(at_sim.stored(), 0).len();
    assert!(missed > 0, "the same client of the upstream misses some");
    let shown = driftline.public_ids().await;
    assert_eq!(shown.len(), truth.posts.len());
    let seen: HashSet<String> = at_driftline
        .stored()
        .iter()
        .map(ToString::to_string)
        .collect();
    // What was stored before its first page, and did not fit in it, such a client never asks for.
    let number = |id: &String| id.parse::<u64>().unwrap();
    let first = seen.iter().map(number).min().unwrap();
    let since_first = shown.iter().filter(|id| number(id) >= first);
    assert!(since_first.clone().count() > 100, "it saw most");
    let unseen: Vec<_> = since_first.filter(|id| !seen.contains(*id)).collect();
    assert!(
        unseen.is_empty(),
        "{} of {} unseen: {unseen:?}",
        unseen.len(),
        shown.len()
    );
    driftline.stop().await;
    sim.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_driftline_mirrors_the_first_ones_public_timeline() {
    let sim = upstream(world(6_000)).await;
    let first = Driftline::start().await;
    first.mirror(&sim.url(), "home", settings()).await;
    let second = Driftline::start().await;
    second.mirror(&first.url(), "public", settings()).await;
    second
        .until(60, async || {
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
