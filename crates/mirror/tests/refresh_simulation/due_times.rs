//! Each due time of each age band, as it passes.

use std::collections::HashMap;

use driftline_core::upstream_id::UpstreamId;
use driftline_store::refresh::{Claim, LookupTarget};

use super::{LEASE_MS, MINUTE_MS, Simulation};

/// Below which age posts are due how often, both ms: the table, as the pipeline has to keep it.
pub(super) const BANDS: [(i64, i64); 3] = [
    (10 * MINUTE_MS, MINUTE_MS),
    (30 * MINUTE_MS, 3 * MINUTE_MS),
    (600 * MINUTE_MS, 6 * MINUTE_MS),
];

/// When posts are due by their age, from answers alone: nothing here asks the pipeline. Of posts
/// that failed or were left out nothing is known until they are answered again.
pub(super) struct DueTimes {
    is_by_age: bool,
    is_poisoned: bool,
    next: HashMap<UpstreamId, DueTime>,
    /// How many were answered, by age band.
    met: [u64; BANDS.len()],
}

struct DueTime {
    band: usize,
    at_ms: i64,
}

impl DueTimes {
    /// Of a run by age or by value, with poisonous posts or without.
    pub(super) fn new(is_by_age: bool, is_poisoned: bool) -> Self {
        Self {
            is_by_age,
            is_poisoned,
            next: HashMap::new(),
            met: [0; BANDS.len()],
        }
    }

    /// Nothing is looked up before its time, or scheduled for another one.
    pub(super) fn claimed(&self, claim: &Claim, now_ms: i64) {
        for post in &claim.posts {
            let is_plain = post.freshness.failures == 0 && !post.freshness.missing;
            let due = self.next.get(&UpstreamId::from(post.upstream_id.as_str()));
            let (LookupTarget::Stored(_), true, Some(due)) = (post.what, is_plain, due) else {
                continue;
            };
            assert_eq!(
                post.due_at_ms, due.at_ms,
                "{} is scheduled for another time than its age band says, {}",
                post.upstream_id, due.band
            );
            assert!(
                due.at_ms <= now_ms,
                "{} is looked up before the time of its age band {}",
                post.upstream_id,
                due.band
            );
        }
    }

    /// An answer that was asked for then is saved.
    pub(super) fn answered(&mut self, id: &UpstreamId, created_at_ms: Option<i64>, asked_ms: i64) {
        if !self.is_by_age {
            return;
        }
        if let Some(due) = self.next.remove(id)
            && due.at_ms <= asked_ms
        {
            self.met[due.band] += 1;
        }
        let Some(age_ms) = created_at_ms.map(|created_at_ms| asked_ms - created_at_ms) else {
            return;
        };
        let band = BANDS.iter().position(|(below_ms, _)| age_ms < *below_ms);
        if let Some(band) = band {
            let at_ms = asked_ms + BANDS[band].1;
            self.next.insert(id.clone(), DueTime { band, at_ms });
        }
    }

    /// Nobody knows when it is due.
    pub(super) fn forget(&mut self, id: &UpstreamId) {
        self.next.remove(id);
    }

    /// Each band had due times that were kept.
    pub(super) fn check_met(&self) {
        let is_met = !self.is_by_age || self.met.iter().all(|met| *met > 0);
        assert!(is_met, "answered in each age band: {:?}", self.met);
    }
}

impl Simulation {
    /// While nothing goes wrong, and once the backlog of what did is worked off, no due time has
    /// passed for longer than the quota takes.
    pub(super) fn check_due_times(&self, posts: usize) {
        let poisonous = if self.due_times.is_poisoned {
            posts / 20 + 2
        } else {
            0
        };
        let bound_ms = self.bound_ms(posts, poisonous);
        let is_calm = self.now_ms < self.storm_from_ms
            || self.now_ms >= self.calm_from_ms + bound_ms + LEASE_MS;
        if !is_calm {
            return;
        }
        for (id, due) in &self.due_times.next {
            let late_ms = self.now_ms - due.at_ms;
            assert!(
                late_ms <= bound_ms,
                "{id} was due {late_ms} ms ago in age band {}; the bound is {bound_ms} ms",
                due.band
            );
        }
    }
}
