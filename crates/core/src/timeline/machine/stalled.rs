//! Ranges whose requests make no progress. Each attempt uses another way, later attempts wait
//! longer, and after some the range is given up. It stays listed.

use serde::{Deserialize, Serialize};

use super::{Machine, answers::is_about_the_server};
use crate::{
    answer::{Failure, FailureKind},
    clock::Deadline,
    timeline::{
        gap_ledger::{Gap, GapKind},
        ladder::Ladder,
    },
    upstream_id::Key,
};

/// A range without requests for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stalled {
    low: Key,
    high: Key,
    /// The wait before its next request.
    pub(super) wait: Deadline,
    /// The number of requests for it that failed while polls did not.
    #[serde(default)]
    failures: u32,
}

impl Machine {
    /// Counts a request for a range that made no progress.
    pub(super) fn made_no_progress(&mut self, low: &Key, high: &Key, now_ms: i64) {
        self.ledger.tried(low, high);
        let tries = self.ledger.max_tries(low, high);
        self.end_stall(low, high);
        if tries > FREE_TRIES {
            let wait_ms = FIRST_WAIT_MS << (tries - FREE_TRIES).min(16);
            self.stalled.push(Stalled {
                low: low.clone(),
                high: high.clone(),
                wait: Deadline::after(now_ms, wait_ms.min(MAX_WAIT_MS)),
                failures: 0,
            });
        }
    }

    /// Counts a failed request for a range. While polls succeed, each failure lengthens the wait
    /// before the next request for it, so that it delays nothing else. Failures of the server may
    /// be temporary, so they give nothing up.
    pub(super) fn failed_to_read(
        &mut self,
        (low, high): (&Key, &Key),
        failure: &Failure,
        now_ms: i64,
    ) {
        if self.errors.polls_fail() {
            return;
        }
        let is_refused = REFUSALS.contains(&failure.kind);
        if !is_about_the_server(failure.kind)
            && (is_refused || self.ledger.max_tries(low, high) + 1 < MAX_TRIES)
        {
            self.ledger.tried(low, high);
        }
        let is_it = |range: &&mut Stalled| range.low == *low && range.high == *high;
        let failures = match self.stalled.iter_mut().find(is_it) {
            Some(range) => range.failures + 1,
            None => 1,
        };
        let wait_ms = FIRST_WAIT_MS << failures.min(16);
        self.end_stall(low, high);
        self.stalled.push(Stalled {
            low: low.clone(),
            high: high.clone(),
            wait: Deadline::after(now_ms, wait_ms.min(MAX_WAIT_MS)),
            failures,
        });
    }

    /// True if a range waits because its last request failed.
    pub(super) fn has_failed_ranges(&self) -> bool {
        self.stalled.iter().any(|range| range.failures > 0)
    }

    pub(super) fn end_stall(&mut self, low: &Key, high: &Key) {
        self.stalled
            .retain(|range| range.high <= *low || range.low >= *high);
    }

    /// True if a gap gets no requests at `now_ms`, in Unix ms by the local clock.
    pub(super) fn is_stalled(&self, gap: &Gap, now_ms: i64) -> bool {
        self.stalled_until_ms(gap, now_ms).is_some()
    }

    /// The time until which a gap gets no requests, in Unix ms by the local clock; `None` if it may
    /// get them.
    pub(super) fn stalled_until_ms(&self, gap: &Gap, now_ms: i64) -> Option<i64> {
        let stalled = self.stalled.iter();
        let stalled = stalled.filter(|range| gap.overlaps(&range.low, &range.high));
        let until_ms = stalled.map(|range| range.wait.until_ms()).max()?;
        (until_ms > now_ms).then_some(until_ms)
    }

    /// Gives up ranges after too many attempts without progress. Ranges whose emptiness is being
    /// confirmed have an end of their own.
    pub(super) fn give_up_stalled(&mut self, ladder: &Ladder, now_ms: i64) {
        // The number of failed requests is kept until one succeeds or the range is no gap any more.
        let gaps = self.ledger.gaps();
        self.stalled.retain(|range| {
            let is_gap = || gaps.iter().any(|gap| gap.overlaps(&range.low, &range.high));
            !range.wait.is_over(now_ms) || (range.failures > 0 && is_gap())
        });
        let is_over = |gap: &&Gap| match &gap.kind {
            GapKind::Open { tries, .. } => *tries >= MAX_TRIES,
            GapKind::Provisional(read) => read.tries >= MAX_TRIES,
            GapKind::PassedOver { .. } | GapKind::Unrecoverable => false,
        };
        let gaps = self.ledger.gaps().iter().filter(is_over);
        let gaps = gaps.filter(|gap| !self.is_unconfirmed(gap));
        let over: Vec<(Key, Key)> = gaps
            .map(|gap| (gap.low.clone(), gap.high.clone()))
            .collect();
        for (low, high) in over {
            self.leave_unread(&low, &high, ladder);
        }
    }

    /// Lists a range as one that is not read any more.
    pub(super) fn leave_unread(&mut self, low: &Key, high: &Key, ladder: &Ladder) {
        if let Some(scheme) = self.scheme {
            self.ledger.give_up(low, high, &scheme);
            self.ledger.pass_over(low, high, &scheme, ladder);
        }
        self.end_stall(low, high);
    }
}

/// The number of attempts without a wait: each way, from two anchors.
pub(super) const FREE_TRIES: u32 = 6;
const FIRST_WAIT_MS: i64 = 500;
const MAX_WAIT_MS: i64 = 10 * 60_000;
/// About an hour and a half.
const MAX_TRIES: u32 = 24;
/// The failures that a request repeats as long as its answer stays the same.
const REFUSALS: [FailureKind; 4] = [
    FailureKind::Refused,
    FailureKind::BadId,
    FailureKind::BadJson,
    FailureKind::ErrorBody,
];
