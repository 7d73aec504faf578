//! Places that are read once more because a page lacked posts there.
//!
//! One page without a post proves little, and its look-up may prove nothing: some servers reject
//! look-ups by this reader. So the page is requested again some minutes later, unless look-ups have
//! answered for all missing posts. Posts that are missing from two pages have left the timeline.

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
    /// The time at which a page lacked the posts, or the last request failed, in Unix ms by the
    /// local clock.
    pub(super) at_ms: i64,
    /// The number of failed requests.
    failures: u32,
    /// The posts for which no look-up has answered.
    absent: Vec<UpstreamId>,
}

impl Recheck {
    /// True if the recheck is due. A clock that was set back causes no long wait.
    fn is_due(&self, now_ms: i64) -> bool {
        now_ms.abs_diff(self.at_ms) >= RECHECK_AFTER_MS.unsigned_abs()
    }
}

impl Machine {
    /// Records that a page that covers a place lacks these posts. It is read once more, unless
    /// look-ups answer.
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

    /// Records that the look-up of a post has answered.
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

    /// The time of the next page that is not due yet, in Unix ms by the local clock.
    pub(super) fn next_recheck_ms(&self, now_ms: i64) -> Option<i64> {
        let waiting = self.rechecks.iter().filter(|of| !of.is_due(now_ms));
        waiting.map(|of| of.at_ms + RECHECK_AFTER_MS).min()
    }

    /// Applies a page that was read once more. The part below its lower end is requested at once.
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

    /// Records that the request for such a page failed. It is repeated later, a few times.
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

/// Long enough for a second page to count as another one, and below five minutes.
const RECHECK_AFTER_MS: i64 = 2 * 60_000;
const MAX_RECHECKS: usize = 20;
const MAX_FAILURES: u32 = 3;
