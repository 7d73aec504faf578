//! Streams next to polls, over real sockets.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    time::Duration,
};

use axum::{
    Json, Router, body::Body, http::header::CONTENT_TYPE, response::Response, routing::get,
};
use driftline_core::timeline::{Backfill, Overlap, Settings, Streaming};
use driftline_server::testing::wait as until;
use driftline_sim::{
    Revocation, SpanMs, WorldConfig,
    http::{SimServer, Timeline as SimTimeline},
};
use driftline_store::{export, machine};
use tokio::time::{Instant, sleep};

use crate::{
    running::{Driftline, settings, upstream},
    world,
};

const HOUR_MS: i64 = 3_600_000;

/// Polls so rare that nothing comes from them after the first.
fn hardly_polled(stream: Streaming) -> Settings {
    Settings {
        every_ms: HOUR_MS,
        stream,
        ..settings()
    }
}

/// A world that goes on for so long, without bursts.
fn steady(publish_for_ms: i64) -> WorldConfig {
    WorldConfig {
        bursts: None,
        ..world(publish_for_ms)
    }
}

async fn rows(driftline: &Driftline) -> Vec<export::ExportRow> {
    let source = driftline.source().await.key();
    driftline
        .store()
        .read(move |tx| export::rows(tx, source, 0, u32::MAX))
        .await
        .unwrap()
}

/// Mirrors home, and waits until the stream is open and the poll that this
/// asks for is over.
async fn follow(sim: &SimServer, settings: Settings) -> Driftline {
    let driftline = Driftline::start().await;
    driftline.mirror(&sim.url(), "home", settings).await;
    until("a stream", async || sim.open_streams() == 1).await;
    sleep(Duration::from_millis(300)).await;
    driftline
}

/// The delays from visible to stored, ms, sorted, of what became visible
/// after a time and up to now.
async fn delays_ms(sim: &SimServer, driftline: &Driftline, after_ms: i64) -> Vec<i64> {
    let span_ms = after_ms + 1..driftline_runtime::now_ms();
    sleep(Duration::from_secs(1)).await;
    let rows = rows(driftline).await;
    let stored: HashMap<&str, i64> = rows
        .iter()
        .map(|row| (row.post.upstream_id.as_str(), row.arrived_at_ms))
        .collect();
    let posts = sim.truth(&SimTimeline::Home).unwrap().posts;
    let mut delays: Vec<i64> = posts
        .iter()
        .filter(|post| span_ms.contains(&post.visible_at_ms))
        .map(|post| match stored.get(post.id.as_str()) {
            Some(stored_ms) => stored_ms - post.visible_at_ms,
            None => i64::MAX,
        })
        .collect();
    delays.sort_unstable();
    delays
}

/// The IDs of posts that are visible and not stored.
async fn missing(sim: &SimServer, driftline: &Driftline) -> Vec<String> {
    let posts = sim.truth(&SimTimeline::Home).unwrap().posts;
    let rows = rows(driftline).await;
    let stored: HashSet<&str> = rows
        .iter()
        .map(|row| row.post.upstream_id.as_str())
        .collect();
    let ids = posts.iter().map(|post| post.id.to_string());
    ids.filter(|id| !stored.contains(id.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_brings_posts_in_less_than_200_ms_without_a_poll() {
    for way in [Streaming::Sse, Streaming::WebSocket] {
        let sim = upstream(steady(6_000)).await;
        let driftline = follow(&sim, hardly_polled(way)).await;
        let (after_ms, polls) = (driftline_runtime::now_ms(), sim.traffic().page_requests);
        sleep(Duration::from_millis(4_000)).await;
        let delays = delays_ms(&sim, &driftline, after_ms).await;
        assert!(delays.len() > 50, "{}", delays.len());
        let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
        println!(
            "{way:?}: {} posts, p50 {} ms, p90 {} ms, p99 {} ms, longest {} ms",
            delays.len(),
            at(0.5),
            at(0.9),
            at(0.99),
            at(1.0)
        );
        assert!(at(0.5) < 200, "the median is {} ms", at(0.5));
        assert!(at(1.0) < 5_000, "all came: {delays:?}");
        // Fills and looks of the history go on; a poll an hour was made before.
        assert!(sim.traffic().page_requests - polls < 60);
        driftline.stop().await;
        assert_eq!(sim.open_streams(), 0, "the lease's end ends the stream");
        sim.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_stream_loses_repeats_and_delays_polls_prove_the_copy_complete() {
    let sim = upstream(world(9_000)).await;
    sim.change_faults(|faults| {
        faults.streams.lost_share = 0.3;
        faults.streams.repeated_share = 0.3;
        faults.streams.delay_ms = SpanMs::new(0, 400);
        faults.streams.drop_after_events = Some(40);
    });
    let driftline = follow(&sim, settings()).await;
    for _ in 0..4 {
        sleep(Duration::from_millis(700)).await;
        sim.drop_streams();
    }
    driftline
        .until(60, async || {
            let published = sim.truth(&SimTimeline::Home).unwrap().posts.len();
            driftline.is_settled().await && driftline.stored().await >= published
        })
        .await;
    let posts = sim.truth(&SimTimeline::Home).unwrap().posts;
    let rows = rows(&driftline).await;
    assert_eq!(rows.len(), posts.len(), "each once");
    let (traffic, source) = (sim.traffic(), driftline.source().await);
    assert!(traffic.events > 50, "{traffic:?}");
    let machine = driftline
        .store()
        .read(move |tx| machine::load(tx, source.key()))
        .await
        .unwrap();
    assert_eq!(machine.ledger().gaps(), [], "complete");
    assert_eq!(
        machine.counters().stored,
        posts.len() as u64,
        "pages showed them all"
    );
    driftline.stop().await;
    sim.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_and_deletions_are_applied_within_a_second_without_a_poll() {
    let sim = upstream(WorldConfig {
        edited_share: 0.3,
        edited_after_ms: SpanMs::new(300, 1_200),
        deleted_share: 0.3,
        deleted_after_ms: SpanMs::new(300, 1_200),
        ..steady(5_000)
    })
    .await;
    let driftline = follow(&sim, hardly_polled(Streaming::Auto)).await;
    let after_ms = driftline_runtime::now_ms();
    sleep(Duration::from_millis(3_500)).await;
    let now_ms = driftline_runtime::now_ms();
    sleep(Duration::from_millis(1_000)).await;
    let rows = rows(&driftline).await;
    let posts = sim.truth(&SimTimeline::Home).unwrap().posts;
    let (mut edits, mut deletions) = (0, 0);
    for post in posts.iter().filter(|post| post.visible_at_ms > after_ms) {
        let row = rows
            .iter()
            .find(|row| row.post.upstream_id == post.id.as_str());
        if post.deleted_at_ms.is_some_and(|at_ms| at_ms < now_ms) {
            let row = row.unwrap();
            // A boost that is taken back leaves.
            let is_out = row.post.deleted_at_ms.or(row.left_at_ms).is_some();
            assert!(is_out, "{post:?}");
            deletions += 1;
        } else if let Some(edited_at_ms) = post.edited_at_ms
            && edited_at_ms < now_ms
            && post.deleted_at_ms.is_none()
        {
            assert_eq!(row.unwrap().post.edited_at_ms, Some(edited_at_ms));
            edits += 1;
        }
    }
    assert!(edits > 5 && deletions > 5, "{edits}, {deletions}");
    driftline.stop().await;
    sim.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_or_is_refused_comes_back_and_polls_fill_in() {
    let sim = upstream(steady(20_000)).await;
    let driftline = follow(&sim, hardly_polled(Streaming::Auto)).await;
    sim.change_faults(|faults| faults.streams.refused = true);
    sim.drop_streams();
    until("no stream", async || sim.open_streams() == 0).await;
    sleep(Duration::from_millis(700)).await;
    let unseen: Vec<String> = missing(&sim, &driftline).await;
    assert!(unseen.len() > 5, "nothing is polled: {unseen:?}");
    sim.change_faults(|faults| faults.streams.refused = false);
    until("a stream", async || sim.open_streams() == 1).await;
    // The opened stream asks for a poll, which brings what it had not shown.
    until("what was missed", async || {
        let missing = missing(&sim, &driftline).await;
        unseen.iter().all(|id| !missing.contains(id))
    })
    .await;
    driftline.stop().await;
    sim.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polls_are_rarer_while_the_stream_shows_all_and_as_before_once_it_is_lost() {
    // Soon silent: no poll finds what the stream has not shown, even when there is none.
    let sim = upstream(steady(1_000)).await;
    let only_polls = Settings {
        every_ms: 200,
        streamed_every_ms: HOUR_MS,
        backfill: Backfill::None,
        overlap: Overlap::Fixed(200),
        second_look_ms: HOUR_MS,
        rungs: Vec::new(),
        ..settings()
    };
    let driftline = follow(&sim, only_polls).await;
    let polls = async |ms: u64| {
        let before = sim.traffic().page_requests;
        sleep(Duration::from_millis(ms)).await;
        sim.traffic().page_requests - before
    };
    until("rare polls", async || polls(2_000).await == 0).await;
    sim.change_faults(|faults| faults.streams.refused = true);
    sim.drop_streams();
    let lost = Instant::now();
    until("frequent polls", async || polls(1_000).await >= 4).await;
    let took = lost.elapsed();
    assert!(
        took < Duration::from_millis(2_500),
        "at once, not after {took:?}"
    );
    driftline.stop().await;
    sim.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_ends_the_stream_and_is_not_tried_in_a_loop() {
    let sim = upstream(steady(20_000)).await;
    let driftline = follow(&sim, hardly_polled(Streaming::Auto)).await;
    sim.change_faults(|faults| {
        faults.revocations.push(Revocation {
            token: "driftline".into(),
            after_ms: 0,
        });
    });
    until("no stream", async || sim.open_streams() == 0).await;
    sleep(Duration::from_millis(2_500)).await;
    assert_eq!(sim.open_streams(), 0);
    driftline.stop().await;
    sim.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_may_do_without_its_stream() {
    let sim = upstream(steady(2_000)).await;
    let driftline = Driftline::start().await;
    let settings = Settings {
        stream: Streaming::Off,
        ..settings()
    };
    driftline.mirror(&sim.url(), "home", settings).await;
    driftline
        .until(20, async || driftline.is_settled().await)
        .await;
    assert_eq!((sim.open_streams(), sim.traffic().events), (0, 0));
    driftline.stop().await;
    sim.shutdown().await;
}

/// A stream that says a post is deleted, while every page shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_that_only_the_stream_calls_deleted_comes_back_with_a_page() {
    // Mastodon's IDs, so that each poll's overlap reaches down to both.
    let now_ms = driftline_runtime::now_ms();
    let id = move |age_ms: i64| ((now_ms - age_ms) << 16).to_string();
    let page = async move || {
        let status = |age_ms| {
            let at = jiff::Timestamp::from_millisecond(now_ms - age_ms).unwrap();
            serde_json::json!({
                "id": id(age_ms),
                "created_at": at.to_string(),
                "visibility": "public",
                "account": { "id": "7" },
            })
        };
        Json(serde_json::json!([status(1_000), status(2_000)]))
    };
    let stream = async move || {
        // Once, when both posts are stored and polls bring no news any more.
        let events = futures_util::stream::unfold(1_500, move |wait_ms| async move {
            sleep(Duration::from_millis(wait_ms)).await;
            let event = format!("event: delete\ndata: {}\n\n", id(2_000));
            Some((Ok::<_, Infallible>(event), 60_000))
        });
        Response::builder()
            .header(CONTENT_TYPE, "text/event-stream")
            .body(Body::from_stream(events))
            .unwrap()
    };
    let app = Router::new()
        .route("/api/v1/timelines/home", get(page))
        .route("/api/v1/streaming/user", get(stream));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(axum::serve(listener, app).into_future());

    let driftline = Driftline::start().await;
    let polled_alone = Settings {
        overlap: Overlap::Fixed(60_000),
        backfill: Backfill::None,
        second_look_ms: HOUR_MS,
        rungs: Vec::new(),
        ..settings()
    };
    driftline.mirror(&address, "home", polled_alone).await;
    // The deletion takes a USN, and the return another.
    until("the deletion and the return", async || {
        let rows = rows(&driftline).await;
        let returned = rows.iter().any(|row| row.usn > row.first_usn);
        returned && rows.iter().all(|row| row.post.deleted_at_ms.is_none())
    })
    .await;
    driftline.stop().await;
    serving.abort();
}
