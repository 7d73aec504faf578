//! The ladder: how often and how late a range is read again.

use serde::{Deserialize, Serialize};

/// The rungs, the second look first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ladder {
    rungs: Vec<Rung>,
}

/// One rung: a range is read once more when its youngest ID is this old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// The age at which a range is read, ms.
    pub age_ms: i64,
    /// How much time of the timeline one look takes together, ms.
    pub period_ms: i64,
}

impl Ladder {
    /// A ladder of these rungs, which are put in order of age.
    pub fn new(mut rungs: Vec<Rung>) -> Self {
        rungs.sort_by_key(|rung| rung.age_ms);
        Self { rungs }
    }

    /// The age at which a rung reads, ms; `None` above the last rung.
    pub fn age_ms(&self, rung: usize) -> Option<i64> {
        self.rungs.get(rung).map(|rung| rung.age_ms)
    }

    /// How much of the timeline one look takes together, ms.
    pub fn period_ms(&self, rung: usize) -> i64 {
        self.rungs.get(rung).map_or(0, |rung| rung.period_ms)
    }

    /// The number of rungs.
    pub fn len(&self) -> usize {
        self.rungs.len()
    }

    /// Whether nothing is ever read again.
    pub fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }

    /// The rungs in order.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }
}

/// What a rung's looks have found, and how often it is worth a look.
///
/// A rung above the second look is used as long as it finds something. When it
/// has read as many posts again in vain as the source's patience allows, it
/// leaves the rest of the range, reads one page of every second range, and
/// with each doubling of the posts read in vain of half as many, down to every
/// 64th. A find starts it again at every range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Yield {
    /// Ranges that were read to their end.
    pub looks: u64,
    /// Posts that looks found which nothing before had found.
    pub found: u64,
    /// Edits that looks found.
    pub edited: u64,
    /// Deletions that looks found and look-ups confirmed.
    pub deleted: u64,
    /// Ranges that passed, whole or from somewhere on, without a look because
    /// the rung found nothing.
    pub skipped_idle: u64,
    /// Ranges that passed without a look because the quota's share was spent.
    pub skipped_quota: u64,
    /// Ranges of which the upstream showed nothing, down to the end of what it
    /// has: beyond its depth, or empty.
    pub unreachable: u64,
    barren_posts: u64,
    pass_over: u32,
}

impl Yield {
    /// Whether the next due range may pass without a look.
    pub fn is_idle(&self) -> bool {
        self.pass_over > 0
    }

    /// Counts a range that passed without a look because of idleness.
    pub fn passed_over(&mut self) {
        self.skipped_idle += 1;
        self.pass_over = self.pass_over.saturating_sub(1);
    }

    /// Counts a page of a look.
    pub fn read(&mut self, posts: u64, found: u64, edited: u64, patience_posts: u64) {
        self.found += found;
        self.edited += edited;
        self.barren_posts += posts;
        if found + edited > 0 {
            self.rewarded();
        } else if let Some(times) = (self.barren_posts / patience_posts.max(1)).checked_ilog2() {
            self.pass_over = (1 << (times + 1).min(6)) - 1;
        }
    }

    /// Counts a range that was read to its end.
    pub fn finished(&mut self) {
        self.looks += 1;
    }

    /// Counts a deletion that a look came upon.
    pub fn confirmed_deletion(&mut self) {
        self.deleted += 1;
        self.rewarded();
    }

    fn rewarded(&mut self) {
        self.barren_posts = 0;
        self.pass_over = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rung_that_finds_nothing_looks_ever_more_rarely_and_a_find_wakes_it() {
        let mut rung = Yield::default();
        let mut looks = 0;
        for _ in 0..1000 {
            if rung.is_idle() {
                rung.passed_over();
            } else {
                rung.read(40, 0, 0, 400);
                rung.finished();
                looks += 1;
            }
        }
        assert!(
            (60..160).contains(&looks),
            "{looks} looks over 1000 barren ranges"
        );
        assert_eq!(rung.looks + rung.skipped_idle, 1000);
        rung.read(40, 1, 0, 400);
        assert!(!rung.is_idle());
    }
}
