//! The evidence from repeated reads: page-fulls without a late post, by the lateness that they
//! would have shown.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::age_bins::{BINS, nearest};

/// Runs of page-fulls that were read again without result, one for each bin of lateness.
///
/// Late posts come in clusters (from a stuck queue of a server), so the unit is a page-full of
/// [`PAGE_FULL`] posts and not a post. A find ends the runs of all bins to which it may belong.
/// Evidence older than thirty days does not count.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Evidence {
    runs: Vec<Run>,
}

/// The posts that were read again since the last find, by spans of time, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Run(VecDeque<(i64, u64)>);

impl Evidence {
    /// Counts a read at `age_ms` of a range that was first read at `before_ms`. It showed this
    /// number of posts, all of them known.
    pub fn read_again(&mut self, before_ms: i64, age_ms: i64, posts: u64, now_ms: i64) {
        let span = now_ms.div_euclid(SPAN_MS);
        for run in self.bins(before_ms, age_ms) {
            match run.0.back_mut() {
                Some((last, sum)) if *last >= span => *sum += posts,
                _ => run.0.push_back((span, posts)),
            }
            run.0.retain(|(of, _)| *of > span - SPANS);
        }
    }

    /// Ends the runs that a post found by such a read contradicts.
    pub fn found(&mut self, before_ms: i64, age_ms: i64) {
        for run in self.bins(before_ms, age_ms) {
            run.0.clear();
        }
    }

    /// The number of page-fulls that were read again without result for every lateness above one
    /// age and up to another. It is the minimum of their runs.
    pub fn page_fulls(&self, above_ms: i64, up_to_ms: i64, now_ms: i64) -> u64 {
        let span = now_ms.div_euclid(SPAN_MS);
        let bins = nearest(above_ms) + 1..nearest(up_to_ms) + 1;
        let posts = |bin: usize| -> u64 {
            let Some(Run(run)) = self.runs.get(bin) else {
                return 0;
            };
            let counts = |(of, _): &&(i64, u64)| *of > span - SPANS;
            run.iter().filter(counts).map(|(_, posts)| posts).sum()
        };
        bins.map(posts).min().unwrap_or(0) / PAGE_FULL
    }

    fn bins(&mut self, before_ms: i64, age_ms: i64) -> impl Iterator<Item = &mut Run> {
        let (before, age) = (nearest(before_ms), nearest(age_ms).min(BINS - 1));
        if self.runs.len() <= age {
            self.runs.resize(age + 1, Run::default());
        }
        let count = (age + 1).saturating_sub(before + 1);
        self.runs.iter_mut().skip(before + 1).take(count)
    }
}

/// An upper bound, at 95%, of the share of page-fulls that lack a post, after this number of
/// page-fulls without result: `1 - 0.05^(1/n)`, about `3/n` (the rule of three).
pub fn bound_of(page_fulls: u64) -> f64 {
    if page_fulls == 0 {
        return 1.0;
    }
    -(0.05_f64.ln() / page_fulls as f64).exp_m1()
}

/// The number of posts in a page-full, independent of an upstream's pages.
pub const PAGE_FULL: u64 = 40;
/// This number of page-fulls without result bounds the share that lacks a post by 1 in 10,000.
pub const PROVEN_PAGE_FULLS: u64 = 30_000;
/// Evidence counts for thirty days.
pub(super) const MAX_AGE_MS: i64 = SPANS * SPAN_MS;
const SPAN_MS: i64 = 3 * 86_400_000;
const SPANS: i64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn the_rule_of_three() {
        assert!(bound_of(PROVEN_PAGE_FULLS) <= 1e-4);
        assert!(bound_of(PROVEN_PAGE_FULLS - 100) > 0.999e-4);
        assert!((bound_of(133) - 3.0 / 133.0).abs() < 4e-4);
        assert!((bound_of(0) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn every_bin_between_must_have_been_read() {
        let mut evidence = Evidence::default();
        evidence.read_again(16_000, 600_000, 4_000, 0);
        assert_eq!(evidence.page_fulls(16_000, 600_000, 0), 100);
        assert_eq!(evidence.page_fulls(16_000, 7_200_000, 0), 0);
        evidence.read_again(600_000, 7_200_000, 400, 0);
        assert_eq!(evidence.page_fulls(16_000, 7_200_000, 0), 10);
        assert_eq!(evidence.page_fulls(8_000, 7_200_000, 0), 0);
    }

    #[test]
    fn a_find_ends_the_runs_that_it_may_contradict() {
        let mut evidence = Evidence::default();
        evidence.read_again(16_000, DAY_MS, 40_000, 0);
        evidence.found(16_000, 600_000);
        assert_eq!(evidence.page_fulls(16_000, DAY_MS, 0), 0);
        assert_eq!(evidence.page_fulls(600_000, DAY_MS, 0), 1_000);
    }

    #[test]
    fn old_evidence_does_not_count() {
        let mut evidence = Evidence::default();
        evidence.read_again(16_000, DAY_MS, 40_000, 0);
        assert_eq!(evidence.page_fulls(16_000, DAY_MS, 26 * DAY_MS), 1_000);
        assert_eq!(evidence.page_fulls(16_000, DAY_MS, 30 * DAY_MS), 0);
        evidence.read_again(16_000, DAY_MS, 80, 40 * DAY_MS);
        assert_eq!(evidence.page_fulls(16_000, DAY_MS, 40 * DAY_MS), 2);
    }
}
