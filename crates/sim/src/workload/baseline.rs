//! Baseline pollers on a workload.

use super::{
    outcome::{PollerOutcome, Tally},
    server::{ROUND_TRIP_MS, START_MS, WorkloadServer},
    tail::Workload,
};
use crate::baseline::{Poller, Schedule, run};

/// Runs a baseline poller for `length_ms`, with a poll every `every_ms`. `passed` is called with
/// the elapsed virtual time in ms.
pub fn run_baseline(
    workload: &Workload,
    mut poller: Poller,
    every_ms: i64,
    length_ms: i64,
    seed: u64,
    passed: &mut dyn FnMut(i64),
) -> PollerOutcome {
    let mut server = WorkloadServer::new(workload.clone(), seed);
    let mut tally = Tally::default();
    let (first_ms, end_ms) = (server.first_poll_ms(), START_MS + length_ms);
    let schedule = Schedule {
        from_ms: first_ms,
        until_ms: end_ms - 1,
        every_ms,
    };
    run(&mut poller, schedule, |sent_at_ms, request| {
        passed(sent_at_ms - START_MS);
        server.drop_older(sent_at_ms - KEPT_MS);
        let received_at_ms = sent_at_ms + ROUND_TRIP_MS;
        let page = server.page(request, sent_at_ms).map(|(page, _)| {
            tally.fetched(page.len());
            tally.store(&mut server, &page, received_at_ms, first_ms);
            let ids = page.iter().map(|&index| server.posts[index].upstream_id());
            ids.collect()
        });
        (page, received_at_ms)
    });
    let counted = first_ms..end_ms - KEPT_MS;
    let missed = server.missed();
    let missed = missed.filter(|post| counted.contains(&post.id_ms()));
    let missed = missed.count() as u64;
    let fetches = tally.fetches();
    PollerOutcome {
        posts: tally.delays.len() as u64 + missed,
        missed,
        requests: poller.requests(),
        fetches_before: fetches,
        fetches_after: fetches,
        delays: tally.delays.into(),
        ..PollerOutcome::default()
    }
}

/// The age at which posts that are not stored count as missed.
const KEPT_MS: i64 = 2 * 3_600_000;
