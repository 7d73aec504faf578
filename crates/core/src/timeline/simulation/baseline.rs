//! Baseline pollers, which trust `since_id`.

use super::{
    outcome::{Delays, PollerOutcome},
    server::{Bounds, PAGE, ROUND_TRIP_MS, Server},
    workload::Workload,
    world::{World, time_ms},
};

/// How a baseline poller chooses where to read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// From the newest ID seen.
    Newest,
    /// By the seed's clamp with this overlap, ms.
    Clamp(i64),
}

/// Runs a baseline poller for `length_ms`: it polls every `every_ms`, pages back to the newest post
/// that it knows, and keeps all that it has stored.
pub fn run_baseline(
    workload: &Workload,
    baseline: Baseline,
    every_ms: i64,
    length_ms: i64,
    seed: u64,
) -> PollerOutcome {
    let start_ms = super::copy::START_MS;
    let mut server = Server::new(
        World::new(workload.clone(), seed, start_ms),
        workload.throttle,
    );
    let (mut now_ms, end_ms) = (start_ms + LEAD_MS, start_ms + length_ms);
    let mut outcome = PollerOutcome::default();
    let mut delays = Vec::new();
    let (mut latest, mut polled_at_ms, mut fetched, mut stored) = (0_u64, 0_i64, 0_u64, 0_u64);
    let first_ms = now_ms;
    while now_ms < end_ms {
        let began_ms = now_ms;
        let since = match baseline {
            Baseline::Newest => latest,
            Baseline::Clamp(k_ms) => {
                let lower_ms = time_ms(latest) - k_ms;
                let from_ms = (polled_at_ms - k_ms).max(lower_ms);
                ((from_ms.max(0) as u64) << 16)
                    .saturating_sub(1)
                    .min(latest)
            }
        };
        let (mut below, mut newest) = (None, latest);
        loop {
            outcome.requests += 1;
            let answered = server.answer(now_ms, latest > 0);
            if answered.is_err() {
                break;
            }
            let bounds = Bounds {
                since_id: (since > 0).then_some(since),
                max_id: below,
                min_id: None,
            };
            let page = server.page(bounds, now_ms);
            now_ms += ROUND_TRIP_MS;
            fetched += page.len() as u64;
            for &index in &page {
                let post = server.world.get_mut(index);
                newest = newest.max(post.id);
                if post.stored_at_ms.is_none() {
                    post.stored_at_ms = Some(now_ms);
                    stored += 1;
                    if time_ms(post.id) >= first_ms {
                        delays.push(now_ms - post.visible_at_ms);
                    }
                }
            }
            let Some(&oldest) = page.last() else { break };
            below = Some(server.world.get(oldest).id);
            if page.len() < PAGE || latest == 0 {
                break;
            }
        }
        (latest, polled_at_ms) = (newest, began_ms);
        server.world.drop_older(now_ms - KEPT_MS);
        now_ms = (began_ms + every_ms).max(now_ms + 1);
    }
    let counts = |id: u64| (first_ms..end_ms - KEPT_MS).contains(&time_ms(id));
    let world = &server.world;
    let unread = world.posts().filter(|post| post.stored_at_ms.is_none());
    let missed = world
        .missed
        .iter()
        .chain(unread)
        .filter(|post| counts(post.id));
    outcome.missed = missed.count() as u64;
    outcome.posts = delays.len() as u64 + outcome.missed;
    outcome.fetches_after = fetched as f64 / stored.max(1) as f64;
    outcome.fetches_before = outcome.fetches_after;
    outcome.delays = Delays::of(delays);
    outcome
}

/// Posts are there before the first poll.
const LEAD_MS: i64 = 60_000;
/// Posts that are this old and not stored are missed.
const KEPT_MS: i64 = 2 * 3_600_000;
