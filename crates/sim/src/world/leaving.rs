//! Entries that leave the timeline, and posts that it shows late.

use driftline_core::upstream_id::UpstreamId;

use super::{LEAVING, SHOWN_LATE, World};
use crate::{
    quirks::{Leave, LeaveCause},
    record::Record,
    rng::{Rng, mix},
};

impl World {
    /// When and why a published post is not in the timeline though it exists: spans of Unix ms, whose
    /// ends are excluded.
    pub fn leaves(&self, id: &UpstreamId) -> Vec<(LeaveCause, i64, i64)> {
        let Some(record) = self.index(id).map(|index| self.record(index)) else {
            return Vec::new();
        };
        let leaves = self.config.quirks.leaves.iter().enumerate();
        leaves
            .filter(|(number, leave)| self.concerns(*number, leave, record))
            .map(|(_, leave)| {
                let (from_ms, until_ms) = self.span_ms(leave);
                (leave.cause, from_ms, until_ms)
            })
            .collect()
    }

    /// Whether a post is not in the timeline, though it exists.
    pub(super) fn has_left(&self, record: &Record, now_ms: i64) -> bool {
        self.leaves_by(record, now_ms, |_| true)
    }

    /// Whether pages leave a post out after they are sliced.
    pub(super) fn shortens_pages(&self, record: &Record, now_ms: i64) -> bool {
        self.leaves_by(record, now_ms, LeaveCause::shortens_pages)
    }

    /// Whether a post is left out before pages are sliced.
    pub(super) fn is_unlisted(&self, record: &Record, now_ms: i64) -> bool {
        self.leaves_by(record, now_ms, |cause| !cause.shortens_pages())
    }

    /// Whether a post is a boost that was taken back.
    pub(super) fn is_unboosted(&self, record: &Record, now_ms: i64) -> bool {
        self.leaves_by(record, now_ms, |cause| cause == LeaveCause::Unboost)
    }

    fn leaves_by(&self, record: &Record, now_ms: i64, by: impl Fn(LeaveCause) -> bool) -> bool {
        let mut leaves = self.config.quirks.leaves.iter().enumerate();
        leaves.any(|(number, leave)| {
            let (from_ms, until_ms) = self.span_ms(leave);
            by(leave.cause)
                && (from_ms..until_ms).contains(&now_ms)
                && self.concerns(number, leave, record)
        })
    }

    fn span_ms(&self, leave: &Leave) -> (i64, i64) {
        let (from_ms, until_ms) = leave.span_ms();
        let start_ms = self.config.start_ms;
        (
            start_ms.saturating_add(from_ms),
            start_ms.saturating_add(until_ms),
        )
    }

    fn concerns(&self, number: usize, leave: &Leave, record: &Record) -> bool {
        if leave.cause == LeaveCause::Unboost && record.boost_of.is_none() {
            return false;
        }
        let what = match leave.cause.is_of_accounts() {
            true => {
                record
                    .author(self.config.authors, self.config.only_author)
                    .id
            }
            false => record.genes,
        };
        let seed = mix(mix(self.seed, number as u64), what);
        Rng::stream(seed, LEAVING).happens(leave.share)
    }

    /// How much later than else a post with these genes is shown.
    pub(super) fn shown_late_ms(&self, genes: u64) -> i64 {
        let quirks = &self.config.quirks;
        if quirks.shown_late.is_none() {
            return 0;
        }
        let mut rng = Rng::stream(mix(self.seed, genes), SHOWN_LATE);
        quirks.shown_late_ms.draw(&mut rng).max(0)
    }
}
