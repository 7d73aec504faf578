//! Trials of shorter last looks: the looks that may be enough, by the finds of later reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{age_bins::nearest, evidence::PAGE_FULL};

/// The finds of reads in ranges that had been read at an earlier age, by bins of age.
///
/// It only selects looks for a trial. The proof is [`Evidence`](super::Evidence).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Trials {
    candidates: BTreeMap<usize, Candidate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Candidate {
    /// The number of posts that were read again since the last find.
    posts: u64,
    /// The number of trials in which the look was not enough.
    failed: u32,
}

impl Trials {
    /// Counts a read of a range that had been read at an earlier age: its posts, and true if one of
    /// them was new.
    pub(super) fn read_again(&mut self, before_ms: i64, posts: u64, is_find: bool) {
        let candidate = self.candidates.entry(nearest(before_ms)).or_default();
        candidate.posts = if is_find { 0 } else { candidate.posts + posts };
    }

    /// True if a look at this age may be enough: [`TRIAL_PAGE_FULLS`] were read again without
    /// result, and twice as many for each of its failed trials.
    pub(super) fn may_be_enough(&self, age_ms: i64) -> bool {
        let candidate = self.candidates.get(&nearest(age_ms));
        candidate.is_some_and(|candidate| {
            let doublings = candidate.failed.min(MAX_DOUBLINGS);
            candidate.posts >= (PAGE_FULL * TRIAL_PAGE_FULLS) << doublings
        })
    }

    /// True if a look on trial has missed nothing since the trial began.
    pub(super) fn goes_on(&self, age_ms: i64) -> bool {
        let candidate = self.candidates.get(&nearest(age_ms));
        candidate.is_some_and(|candidate| candidate.posts >= PAGE_FULL * TRIAL_PAGE_FULLS)
    }

    /// Records that a look at this age was not enough in a trial.
    pub(super) fn failed(&mut self, age_ms: i64) {
        let candidate = self.candidates.entry(nearest(age_ms)).or_default();
        candidate.posts = 0;
        candidate.failed += 1;
    }

    /// Records that a look at this age, and so at all higher ages, was proven to be enough.
    pub(super) fn proven(&mut self, age_ms: i64) {
        self.candidates.retain(|bin, _| *bin < nearest(age_ms));
    }
}

/// This number of page-fulls without result suggests that a shorter look is enough.
pub(super) const TRIAL_PAGE_FULLS: u64 = 40;
const MAX_DOUBLINGS: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_find_restarts_the_count_of_its_age() {
        let mut trials = Trials::default();
        for before_ms in [16_000, 64_000] {
            trials.read_again(before_ms, PAGE_FULL * TRIAL_PAGE_FULLS, false);
        }
        assert!(trials.may_be_enough(15_000) && trials.may_be_enough(64_000));
        trials.read_again(16_000, PAGE_FULL, true);
        assert!(!trials.may_be_enough(15_000) && !trials.goes_on(15_000));
        assert!(trials.may_be_enough(64_000), "a shorter one says nothing");
    }

    #[test]
    fn each_trial_that_fails_asks_for_twice_as_many() {
        let mut trials = Trials::default();
        for doublings in [0, 1, 2, 3, 4, 5, 6, 6, 6] {
            let enough = (PAGE_FULL * TRIAL_PAGE_FULLS) << doublings;
            trials.read_again(16_000, enough - 1, false);
            assert!(!trials.may_be_enough(16_000), "{doublings}");
            trials.read_again(16_000, 1, false);
            assert!(trials.may_be_enough(16_000), "{doublings}");
            trials.failed(16_000);
        }
        trials.proven(16_000);
        assert_eq!(trials, Trials::default());
    }
}
