//! The ladder: the ages and portions in which a range is read again.

use serde::{Deserialize, Serialize};

/// The looks that read every range, by age, with the second look first, and the age from which a
/// read completes a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    rungs: Vec<Rung>,
    complete_ms: i64,
    /// True if probes are made below its rungs. Ranges that they read stay separate until the next
    /// look.
    #[serde(default)]
    is_probed: bool,
}

/// A rung: a range is read once more when its youngest ID has this age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// The age at which a range is read, ms.
    pub age_ms: i64,
    /// The time span of the timeline that one look covers, in ms.
    pub period_ms: i64,
}

impl Rung {
    /// The tolerated delay of a look that still counts as one at its age, in ms.
    pub(super) fn in_time_ms(&self) -> i64 {
        2 * self.period_ms + IN_TIME_MS
    }
}

impl Ladder {
    /// A ladder with these rungs, which are sorted by age. A range that was read at `complete_ms`
    /// is complete, even without a rung at that age.
    pub fn new(mut rungs: Vec<Rung>, complete_ms: i64) -> Self {
        rungs.sort_by_key(|rung| rung.age_ms);
        Self {
            rungs,
            complete_ms,
            is_probed: false,
        }
    }

    /// The same ladder, with or without probes below its rungs.
    #[must_use]
    pub(super) fn probed(mut self, is_probed: bool) -> Self {
        self.is_probed = is_probed;
        self
    }

    /// True if probes are made below its rungs.
    pub(super) fn is_probed(&self) -> bool {
        self.is_probed
    }

    /// The age at which a rung reads, in ms; `None` above the last rung.
    pub fn age_ms(&self, rung: usize) -> Option<i64> {
        self.rungs.get(rung).map(|rung| rung.age_ms)
    }

    /// The time span that one look covers, in ms. Above the last rung, the time span that becomes
    /// old enough together.
    pub fn period_ms(&self, rung: usize) -> i64 {
        self.rungs
            .get(rung)
            .map_or(self.complete_ms / 4, |rung| rung.period_ms)
    }

    /// The age from which a read completes a range, in ms.
    pub fn complete_ms(&self) -> i64 {
        self.complete_ms
    }

    /// The next rung for a range that was last read at this age. The number of rungs if there is
    /// none.
    pub fn next(&self, read_age_ms: i64) -> usize {
        self.rungs
            .partition_point(|rung| rung.age_ms <= read_age_ms)
    }

    /// The age that counts for a read at this age, in ms. A look in time counts as one at its
    /// rung's age, although some posts are older.
    pub fn counted_ms(&self, age_ms: i64) -> i64 {
        let Some(rung) = self.next(age_ms).checked_sub(1) else {
            return age_ms;
        };
        let rung = self.rungs[rung];
        let in_time = age_ms - rung.age_ms < rung.in_time_ms();
        if in_time { rung.age_ms } else { age_ms }
    }

    /// True if some ranges are never read again before they are old enough.
    pub fn leaves_out_the_last(&self) -> bool {
        self.rungs
            .last()
            .is_none_or(|rung| rung.age_ms < self.complete_ms)
    }

    /// The number of rungs.
    pub fn len(&self) -> usize {
        self.rungs.len()
    }

    /// True if no range is ever read again.
    pub fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }

    /// The rungs in order.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }
}

/// The results of a rung's looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RungStats {
    /// The number of ranges that were read to their end.
    pub looks: u64,
    /// The number of posts that looks were the first to find.
    pub found: u64,
    /// The number of edits that looks found.
    pub edited: u64,
    /// The number of deletions that looks found and look-ups confirmed.
    pub deleted: u64,
    /// The number of ranges that passed without a look because the quota's share was spent.
    pub skipped_quota: u64,
    /// The number of ranges without posts from the upstream: beyond its depth, or empty.
    pub unreachable: u64,
}

const IN_TIME_MS: i64 = 30_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_rung_is_the_first_above_the_age_of_the_last_read() {
        let rung = |age_ms| Rung {
            age_ms,
            period_ms: age_ms / 2,
        };
        let ladder = Ladder::new(vec![rung(600), rung(15)], 3_600);
        assert_eq!(ladder.next(0), 0);
        assert_eq!(ladder.next(15), 1);
        assert_eq!(ladder.next(599), 1);
        assert_eq!(ladder.next(600), 2);
        assert_eq!(ladder.counted_ms(14), 14);
        assert_eq!(ladder.counted_ms(22), 15);
        assert_eq!(ladder.counted_ms(40_000), 40_000, "long after both");
        assert_eq!(ladder.period_ms(2), 900);
        assert!(ladder.leaves_out_the_last());
        assert!(!Ladder::new(vec![rung(3_600)], 3_600).leaves_out_the_last());
    }
}
