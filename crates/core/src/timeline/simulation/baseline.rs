//! Baseline pollers, which trust `since_id`.

use super::{
    copy::START_MS,
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
    let world = World::new(workload.clone(), seed, START_MS);
    let mut poller = Poller {
        server: Server::new(world, workload.throttle),
        now_ms: START_MS + LEAD_MS,
        latest: 0,
        polled_at_ms: 0,
        fetched: 0,
        stored: 0,
        delays: Vec::new(),
        requests: 0,
    };
    let end_ms = START_MS + length_ms;
    while poller.now_ms < end_ms {
        let began_ms = poller.now_ms;
        poller.poll(baseline);
        poller.server.world.drop_older(poller.now_ms - KEPT_MS);
        poller.now_ms = (began_ms + every_ms).max(poller.now_ms + 1);
    }
    poller.finish(end_ms)
}

struct Poller {
    server: Server,
    now_ms: i64,
    /// The newest ID seen.
    latest: u64,
    /// When the last poll began.
    polled_at_ms: i64,
    fetched: u64,
    stored: u64,
    /// From visible to stored, ms.
    delays: Vec<i64>,
    requests: u64,
}

impl Poller {
    /// Pages back from the newest post to the one that the rule names.
    fn poll(&mut self, baseline: Baseline) {
        let began_ms = self.now_ms;
        let since = self.since(baseline);
        let (mut below, mut newest) = (None, self.latest);
        loop {
            self.requests += 1;
            if self.server.answer(self.now_ms, self.latest > 0).is_err() {
                break;
            }
            let bounds = Bounds {
                since_id: (since > 0).then_some(since),
                max_id: below,
                min_id: None,
            };
            let page = self.server.page(bounds, self.now_ms);
            self.now_ms += ROUND_TRIP_MS;
            self.store(&page);
            let id = |index: &usize| self.server.world.get(*index).id;
            newest = page.iter().map(id).fold(newest, u64::max);
            below = page.last().map(id);
            if page.len() < PAGE || self.latest == 0 {
                break;
            }
        }
        (self.latest, self.polled_at_ms) = (newest, began_ms);
    }

    fn since(&self, baseline: Baseline) -> u64 {
        let Baseline::Clamp(k_ms) = baseline else {
            return self.latest;
        };
        let from_ms = self.polled_at_ms.max(time_ms(self.latest)) - k_ms;
        let since = ((from_ms.max(0) as u64) << 16).saturating_sub(1);
        since.min(self.latest)
    }

    fn store(&mut self, page: &[usize]) {
        self.fetched += page.len() as u64;
        for &index in page {
            let post = self.server.world.get_mut(index);
            if post.stored_at_ms.is_none() {
                post.stored_at_ms = Some(self.now_ms);
                self.stored += 1;
                if time_ms(post.id) >= START_MS + LEAD_MS {
                    self.delays.push(self.now_ms - post.visible_at_ms);
                }
            }
        }
    }

    fn finish(self, end_ms: i64) -> PollerOutcome {
        let counted = START_MS + LEAD_MS..end_ms - KEPT_MS;
        let world = &self.server.world;
        let unread = world.posts().filter(|post| post.stored_at_ms.is_none());
        let missed = world.missed.iter().chain(unread);
        let missed = missed.filter(|post| counted.contains(&time_ms(post.id)));
        let missed = missed.count() as u64;
        let fetches = self.fetched as f64 / self.stored.max(1) as f64;
        PollerOutcome {
            posts: self.delays.len() as u64 + missed,
            missed,
            requests: self.requests,
            fetches_before: fetches,
            fetches_after: fetches,
            delays: Delays::of(self.delays),
            ..PollerOutcome::default()
        }
    }
}

/// Posts are there before the first poll.
const LEAD_MS: i64 = 60_000;
/// Posts that are this old and not stored are missed.
const KEPT_MS: i64 = 2 * 3_600_000;
