//! Streams next to polls, over real sockets.

use std::{collections::HashMap, ops::Range, time::Duration};

use driftline_core::timeline::{Backfill, Overlap, Settings, Streaming};
use driftline_runtime::now_ms;
use driftline_server::testing::wait as until;
use driftline_sim::{
    SpanMs, WorldConfig,
    http::{SimServer, Timeline as SimTimeline},
};
use driftline_store::export::ExportRow;
use tokio::time::sleep;

use crate::{
    running::{Driftline, settings, upstream},
    world,
};

const HOUR_MS: i64 = 3_600_000;

/// Polls so rare that nothing comes from them after the first, and no looks at what they have read.
fn hardly_polled(stream: Streaming) -> Settings {
    Settings {
        every_ms: HOUR_MS,
        stream,
        backfill: Backfill::None,
        second_look_ms: HOUR_MS,
        rungs: Vec::new(),
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

/// Mirrors home, and waits until the stream is open.
async fn follow(sim: &SimServer, settings: Settings) -> Driftline {
    let driftline = Driftline::start().await;
    driftline.mirror(&sim.url(), "home", settings).await;
    until("a stream", async || sim.open_streams() == 1).await;
    driftline
}

/// The IDs of posts that became visible in that time, Unix ms, of which a Driftline lacks the last state.
async fn missing(sim: &SimServer, driftline: &Driftline, visible: Range<i64>) -> Vec<String> {
    let now_ms = now_ms();
    let rows = driftline.rows().await;
    let rows: HashMap<&str, &ExportRow> = rows
        .iter()
        .map(|row| (row.post.upstream_id.as_str(), row))
        .collect();
    let posts = sim.truth(&SimTimeline::Home).unwrap().posts.into_iter();
    let posts = posts.filter(|post| visible.contains(&post.visible_at_ms));
    let lacks = posts.filter(|post| {
        let row = rows.get(post.id.as_str());
        if post.deleted_at_ms.is_some_and(|at_ms| at_ms < now_ms) {
            // A boost that is taken back leaves. Nobody had to see what was deleted at once.
            return row.is_some_and(|row| row.post.deleted_at_ms.or(row.left_at_ms).is_none());
        }
        let edited_at_ms = post.edited_at_ms.filter(|at_ms| *at_ms < now_ms);
        row.is_none_or(|row| row.post.edited_at_ms < edited_at_ms)
    });
    lacks.map(|post| post.id.to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_brings_posts_edits_and_deletions_without_a_poll() {
    for way in [Streaming::Sse, Streaming::WebSocket] {
        let sim = upstream(WorldConfig {
            edited_share: 0.3,
            edited_after_ms: SpanMs::new(300, 1_200),
            deleted_share: 0.3,
            deleted_after_ms: SpanMs::new(300, 1_200),
            ..steady(60_000)
        })
        .await;
        let driftline = follow(&sim, hardly_polled(way)).await;
        let before = sim.traffic();
        let opened_ms = now_ms();
        until("events", async || {
            sim.traffic().events > before.events + 100
        })
        .await;
        let visible = opened_ms..now_ms();
        until("all that came", async || {
            missing(&sim, &driftline, visible.clone()).await.is_empty()
        })
        .await;
        // The poll that the opening asks for, and what it has to fill.
        let pages = sim.traffic().page_requests - before.page_requests;
        assert!(pages < 10, "{way:?}: {pages} pages");
        driftline.stop().await;
        assert_eq!(sim.open_streams(), 0, "the lease's end ends the stream");
        sim.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_breaks_or_is_refused_comes_back_and_polls_fill_in() {
    let sim = upstream(steady(60_000)).await;
    let rarely = Settings {
        every_ms: HOUR_MS,
        stream: Streaming::Auto,
        ..settings()
    };
    let driftline = follow(&sim, rarely).await;
    let opened_ms = now_ms();
    sim.change_faults(|faults| faults.streams.refused = true);
    sim.drop_streams();
    let mut unseen = Vec::new();
    until("posts that nothing has shown", async || {
        unseen = missing(&sim, &driftline, opened_ms..now_ms()).await;
        sim.open_streams() == 0 && unseen.len() > 5
    })
    .await;
    sim.change_faults(|faults| faults.streams.refused = false);
    until("a stream", async || sim.open_streams() == 1).await;
    // The opened stream asks for a poll, which brings what it had not shown.
    until("what was missed", async || {
        let missing = missing(&sim, &driftline, opened_ms..now_ms()).await;
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
        overlap: Overlap::Fixed(200),
        ..hardly_polled(Streaming::Auto)
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
    until("frequent polls", async || polls(2_000).await >= 4).await;
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
    driftline.until(async || driftline.is_settled().await).await;
    assert_eq!((sim.open_streams(), sim.traffic().events), (0, 0));
    driftline.stop().await;
    sim.shutdown().await;
}
