//! Baseline pollers, which trust `since_id`.

use super::{
    outcome::{PollerOutcome, Tally},
    server::{PAGE, ROUND_TRIP_MS},
    workload::Workload,
    world::{START_MS, World, time_ms},
};
use crate::{answer::PageRequest, upstream_id::UpstreamId};

/// The lower bound of a baseline poller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Baseline {
    /// The newest ID seen.
    Newest,
    /// The seed's clamp with this overlap, in ms.
    Clamp(i64),
}

/// Runs a baseline poller for `length_ms`. It polls every `every_ms`, pages back to the newest
/// known post, and keeps all posts that it has stored. `passed` is called with the elapsed virtual
/// time in ms.
pub fn run_baseline(
    workload: &Workload,
    baseline: Baseline,
    every_ms: i64,
    length_ms: i64,
    seed: u64,
    passed: &mut dyn FnMut(i64),
) -> PollerOutcome {
    let world = World::new(workload.clone(), seed);
    let mut poller = Poller {
        now_ms: world.first_poll_ms(),
        world,
        latest: 0,
        polled_at_ms: 0,
        tally: Tally::default(),
        requests: 0,
    };
    let end_ms = START_MS + length_ms;
    while poller.now_ms < end_ms {
        let began_ms = poller.now_ms;
        passed(began_ms - START_MS);
        poller.poll(baseline);
        poller.world.drop_older(poller.now_ms - KEPT_MS);
        poller.now_ms = (began_ms + every_ms).max(poller.now_ms + 1);
    }
    poller.finish(end_ms)
}

struct Poller {
    world: World,
    now_ms: i64,
    /// The newest ID seen.
    latest: u64,
    /// The time at which the last poll began.
    polled_at_ms: i64,
    tally: Tally,
    requests: u64,
}

impl Poller {
    /// Pages back from the newest post to the lower bound.
    fn poll(&mut self, baseline: Baseline) {
        let began_ms = self.now_ms;
        let id = |number: u64| UpstreamId::new(number.to_string());
        let mut request = PageRequest {
            since_id: Some(self.since(baseline))
                .filter(|since| *since > 0)
                .map(id),
            ..PageRequest::default()
        };
        let mut newest = self.latest;
        loop {
            self.requests += 1;
            let Ok((page, _)) = self.world.page(&request, self.now_ms) else {
                break;
            };
            self.now_ms += ROUND_TRIP_MS;
            let world = &mut self.world;
            let first_ms = world.first_poll_ms();
            self.tally.fetched(page.len());
            self.tally.store(world, &page, self.now_ms, first_ms);
            let ids = || page.iter().map(|index| world.posts[*index].id);
            newest = ids().fold(newest, u64::max);
            if page.len() < PAGE || self.latest == 0 {
                break;
            }
            request.max_id = ids().next_back().map(id);
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

    fn finish(self, end_ms: i64) -> PollerOutcome {
        let counted = self.world.first_poll_ms()..end_ms - KEPT_MS;
        let missed = self.world.missed();
        let missed = missed.filter(|post| counted.contains(&time_ms(post.id)));
        let missed = missed.count() as u64;
        let fetches = self.tally.fetches();
        PollerOutcome {
            posts: self.tally.delays.len() as u64 + missed,
            missed,
            requests: self.requests,
            fetches_before: fetches,
            fetches_after: fetches,
            delays: self.tally.delays.into(),
            ..PollerOutcome::default()
        }
    }
}

/// The age at which posts that are not stored count as missed.
const KEPT_MS: i64 = 2 * 3_600_000;
