//! Places that are read once more because a page lacked posts there.
//!
//! One page that lacks a post proves little, and its look-up may prove nothing: some servers look
//! nothing up for this reader. So the page is asked for again some minutes later, unless look-ups
//! have answered for all posts that it lacked. What two pages lack has left the timeline.

use serde::{Deserialize, Serialize};

use super::{Machine, Step, answers::Answer};
use crate::{
    answer::Abilities,
    timeline::request::{Bounds, RequestPurpose},
    upstream_id::{Key, UpstreamId},
};

/// A place that is read once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recheck {
    low: Key,
    high: Key,
    /// When a page lacked the posts, or the last request failed, Unix ms by the local clock.
    pub(super) at_ms: i64,
    /// Requests that failed.
    failures: u32,
    /// The posts that no look-up has answered for.
    absent: Vec<UpstreamId>,
}

impl Recheck {
    /// A clock that was set back makes nothing wait long.
    fn is_due(&self, now_ms: i64) -> bool {
        now_ms.abs_diff(self.at_ms) >= RECHECK_AFTER_MS.unsigned_abs()
    }
}

impl Machine {
    /// A page that covers a place lacks these posts: it is read once more, unless look-ups answer.
    pub(super) fn recheck_later(
        &mut self,
        (low, high): (Key, Key),
        absent: &[UpstreamId],
        now_ms: i64,
    ) {
        let waits = |id: &&UpstreamId| !self.rechecks.iter().any(|of| of.absent.contains(id));
        let absent: Vec<UpstreamId> = absent.iter().filter(waits).cloned().collect();
        if !absent.is_empty() && self.rechecks.len() < MAX_RECHECKS {
            self.rechecks.push(Recheck {
                low,
                high,
                at_ms: now_ms,
                failures: 0,
                absent,
            });
        }
    }

    /// The look-up of a post has answered.
    pub(super) fn end_recheck_of(&mut self, id: &UpstreamId) {
        for recheck in &mut self.rechecks {
            recheck.absent.retain(|absent| absent != id);
        }
        self.rechecks.retain(|recheck| !recheck.absent.is_empty());
    }

    /// The page that is due to be read once more.
    pub(super) fn due_recheck(&self, abilities: Abilities, now_ms: i64) -> Option<Step> {
        let mut rechecks = self.rechecks.iter();
        let recheck = rechecks.find(|recheck| recheck.is_due(now_ms))?;
        let (low, high) = (recheck.low.clone(), recheck.high.clone());
        let bounds = Bounds::Back {
            max_id: high.clone(),
            anchor: None,
        };
        let purpose = RequestPurpose::Recheck { low, high };
        Some(Step::fetch(purpose, bounds, abilities))
    }

    /// When the next page is due that is not yet, Unix ms by the local clock.
    pub(super) fn next_recheck_ms(&self, now_ms: i64) -> Option<i64> {
        let waiting = self.rechecks.iter().filter(|of| !of.is_due(now_ms));
        waiting.map(|of| of.at_ms + RECHECK_AFTER_MS).min()
    }

    /// Applies a page that was read once more. What it does not reach down to is asked for at once.
    pub(super) fn rechecked(&mut self, answer: &Answer<'_>, low: &Key, high: &Key) {
        self.read_if_awaited(answer);
        let stretch = self.stretch(answer.request, answer.reading);
        let Some(index) = self.recheck_of(low, high) else {
            return;
        };
        match stretch {
            Some(read) if read.low > *low && read.low < *high => {
                self.rechecks[index].high = read.low;
            }
            _ => {
                self.rechecks.remove(index);
            }
        }
    }

    /// The request for such a page failed: it comes later, a few times.
    pub(super) fn recheck_failed(&mut self, low: &Key, high: &Key, now_ms: i64) {
        let Some(index) = self.recheck_of(low, high) else {
            return;
        };
        let recheck = &mut self.rechecks[index];
        recheck.at_ms = now_ms;
        recheck.failures += 1;
        if recheck.failures > MAX_FAILURES {
            self.rechecks.remove(index);
        }
    }

    fn recheck_of(&self, low: &Key, high: &Key) -> Option<usize> {
        let mut rechecks = self.rechecks.iter();
        rechecks.position(|recheck| recheck.low == *low && recheck.high == *high)
    }
}

/// Later than a second page has to come to count as one, and within five minutes.
const RECHECK_AFTER_MS: i64 = 2 * 60_000;
const MAX_RECHECKS: usize = 20;
const MAX_FAILURES: u32 = 3;
