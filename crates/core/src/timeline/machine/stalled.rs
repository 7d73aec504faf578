//! Ranges whose requests make no progress: each try asks in another way, later tries wait longer, and
//! after some the range is given up. It stays listed.

use serde::{Deserialize, Serialize};

use super::Machine;
use crate::{
    timeline::{
        gap_ledger::{Gap, GapKind},
        ladder::Ladder,
    },
    upstream_id::Key,
};

/// A range that is left alone for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stalled {
    low: Key,
    high: Key,
    /// When it may be asked for again, Unix ms by the local clock.
    retry_ms: i64,
}

impl Machine {
    /// Counts a request for a range that made no progress.
    pub(super) fn made_no_progress(&mut self, low: &Key, high: &Key, now_ms: i64) {
        self.ledger.tried(low, high);
        let tries = self.ledger.most_tries(low, high);
        self.end_stall(low, high);
        if tries > FREE_TRIES {
            let wait_ms = FIRST_WAIT_MS << (tries - FREE_TRIES).min(16);
            self.stalled.push(Stalled {
                low: low.clone(),
                high: high.clone(),
                retry_ms: now_ms.saturating_add(wait_ms.min(MAX_WAIT_MS)),
            });
        }
    }

    /// Counts a request for a range that failed. Failures that may pass give nothing up.
    pub(super) fn failed_to_read(&mut self, low: &Key, high: &Key, is_refused: bool) {
        if is_refused || self.ledger.most_tries(low, high) + 1 < MAX_TRIES {
            self.ledger.tried(low, high);
        }
    }

    pub(super) fn end_stall(&mut self, low: &Key, high: &Key) {
        self.stalled
            .retain(|range| range.high <= *low || range.low >= *high);
    }

    /// Whether a gap is left alone for now, Unix ms by the local clock.
    pub(super) fn is_stalled(&self, gap: &Gap, now_ms: i64) -> bool {
        self.stalled
            .iter()
            .any(|range| now_ms < range.retry_ms && gap.overlaps(&range.low, &range.high))
    }

    /// Gives up what was tried in vain too often. Ranges of which it is being confirmed that they are
    /// empty have an end of their own.
    pub(super) fn give_up_stalled(&mut self, ladder: &Ladder, now_ms: i64) {
        self.stalled.retain(|range| now_ms < range.retry_ms);
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

/// Tries that come at once: each way to ask, from two anchors.
const FREE_TRIES: u32 = 6;
const FIRST_WAIT_MS: i64 = 500;
const MAX_WAIT_MS: i64 = 10 * 60_000;
/// About an hour and a half.
const MAX_TRIES: u32 = 24;
