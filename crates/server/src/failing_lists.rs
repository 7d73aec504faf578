//! Lists that cannot be compared with edited posts.
//!
//! An edited post stays until all lists were compared with it. A list that always fails would keep it
//! for all of them, so after some attempts the post is removed without that list.

use std::collections::{HashMap, HashSet};

use driftline_store::{
    StoreError,
    social::{list_bell::StandingList, list_entry::ListKey},
};

/// The lists that failed at their last comparison.
#[derive(Debug, Default)]
pub(crate) struct FailingLists {
    lists: HashMap<ListKey, Failures>,
    /// The number of consecutive turns that kept edited posts, whichever lists failed.
    kept_turns: u32,
}

/// The failures of a list since its last success. The counts are separate, because an outage must not
/// use up the attempts of a list, nor the reverse.
#[derive(Debug, Default)]
struct Failures {
    /// The predicate that failed. Another one begins again.
    predicate: String,
    /// The number of failures that concern the list alone.
    own: u32,
    /// The number of failures that may be the store's.
    outages: u32,
    /// The number of edited posts that were removed without a comparison.
    skipped_posts: usize,
}

impl FailingLists {
    /// Forgets the lists that do not exist any more.
    pub(crate) fn retain(&mut self, lists: impl Iterator<Item = ListKey>) {
        if !self.lists.is_empty() {
            let lists: HashSet<ListKey> = lists.collect();
            self.lists.retain(|list, _| lists.contains(list));
        }
    }

    /// Counts a failure of a list. Returns true if the posts need not be kept for it any longer.
    pub(crate) fn record_failure(&mut self, list: &StandingList, error: &StoreError) -> bool {
        let is_kept_long = self.kept_turns >= MAX_KEPT_TURNS;
        let failures = self.failures(list);
        let (count, max) = match error.is_outage() {
            true => (&mut failures.outages, MAX_OUTAGES),
            false => (&mut failures.own, MAX_OWN_FAILURES),
        };
        *count = count.saturating_add(1);
        *count >= max || is_kept_long
    }

    /// Records that a list works.
    pub(crate) fn record_success(&mut self, list: &StandingList) {
        if let Some(failures) = self.lists.remove(&list.key)
            && failures.predicate == list.predicate
            && failures.skipped_posts > 0
        {
            let posts = failures.skipped_posts;
            tracing::warn!(list = %list.key.list, posts, "a list is compared with edited posts again; some were left out");
        }
    }

    /// Records that posts were removed without a comparison with a list. Only the first time is logged.
    pub(crate) fn record_skipped(&mut self, list: &StandingList, posts: usize, error: &StoreError) {
        let failures = self.failures(list);
        if failures.skipped_posts == 0 {
            tracing::warn!(list = %list.key.list, posts, %error, "a list cannot be compared with edited posts, which are left out; it is tried again with the next ones");
        }
        failures.skipped_posts += posts;
    }

    /// Records that a turn kept the edited posts for a list that failed.
    pub(crate) fn record_kept_posts(&mut self) {
        self.kept_turns = self.kept_turns.saturating_add(1);
    }

    /// Records that the edited posts were removed.
    pub(crate) fn record_removed_posts(&mut self) {
        self.kept_turns = 0;
    }

    /// Returns the failures of a list with its present predicate.
    fn failures(&mut self, list: &StandingList) -> &mut Failures {
        let failures = self.lists.entry(list.key).or_default();
        if failures.predicate != list.predicate {
            *failures = Failures {
                predicate: list.predicate.clone(),
                ..Failures::default()
            };
        }
        failures
    }
}

/// The number of a list's own failures after which posts are left out: about 15 s.
const MAX_OWN_FAILURES: u32 = 3;
/// The same for failures that may be the store's: about five minutes. In each of these turns the store has
/// answered the reads before the comparison, and in the last one the removal of the posts.
const MAX_OUTAGES: u32 = 60;
/// The number of turns in which failing lists together keep edited posts: about ten minutes. Lists that fail in
/// alternate turns stay below the other limits.
const MAX_KEPT_TURNS: u32 = 120;

#[cfg(test)]
mod tests {
    use std::iter;

    use driftline_db::DbError;
    use driftline_store::{LocalAccountId, LocalId};

    use super::*;

    fn list(id: u64, predicate: &str) -> StandingList {
        StandingList {
            key: ListKey {
                account: LocalAccountId::new(1),
                list: LocalId::new(id),
            },
            predicate: predicate.to_owned(),
            notified: None,
        }
    }

    fn own_failure() -> StoreError {
        StoreError::Db(DbError::Constraint("list_entry".into()))
    }

    fn outage() -> StoreError {
        StoreError::Db(DbError::ConnectionLost("away".into()))
    }

    #[test]
    fn a_list_is_skipped_after_consecutive_failures() {
        let list = list(2, "cat");
        let error = own_failure();
        let mut lists = FailingLists::default();
        for _ in 1..MAX_OWN_FAILURES {
            assert!(!lists.record_failure(&list, &error));
        }
        lists.record_success(&list);
        for _ in 1..MAX_OWN_FAILURES {
            assert!(!lists.record_failure(&list, &error));
        }
        for _ in 0..3 {
            assert!(lists.record_failure(&list, &error));
            lists.record_skipped(&list, 1, &error);
        }
        lists.retain(iter::once(list.key));
        assert!(lists.record_failure(&list, &error));
        lists.retain(iter::empty());
        assert!(!lists.record_failure(&list, &error), "another list");
    }

    #[test]
    fn an_outage_skips_nothing_for_minutes() {
        let list = list(2, "cat");
        let mut lists = FailingLists::default();
        for _ in 1..MAX_OUTAGES {
            assert!(!lists.record_failure(&list, &outage()));
        }
        assert!(lists.record_failure(&list, &outage()));
    }

    #[test]
    fn failures_of_a_list_and_outages_have_limits_of_their_own() {
        let list = list(2, "cat");
        let mut lists = FailingLists::default();
        for _ in 1..MAX_OUTAGES {
            assert!(!lists.record_failure(&list, &outage()));
        }
        for _ in 1..MAX_OWN_FAILURES {
            assert!(!lists.record_failure(&list, &own_failure()));
        }
        // A success clears both counts.
        lists.record_success(&list);
        assert!(!lists.record_failure(&list, &outage()));
        assert!(!lists.record_failure(&list, &own_failure()));
    }

    #[test]
    fn another_predicate_begins_again() {
        let error = own_failure();
        let mut lists = FailingLists::default();
        for _ in 1..MAX_OWN_FAILURES {
            assert!(!lists.record_failure(&list(2, "cat"), &error));
        }
        for _ in 1..MAX_OWN_FAILURES {
            assert!(!lists.record_failure(&list(2, "dog"), &error));
        }
        assert!(lists.record_failure(&list(2, "dog"), &error));
    }

    #[test]
    fn lists_that_fail_in_turn_do_not_keep_posts_for_ever() {
        let [one, other] = [list(2, "cat"), list(3, "dog")];
        let error = own_failure();
        let mut lists = FailingLists::default();
        for turn in 0..MAX_KEPT_TURNS {
            let (failing, working) = match turn % 2 {
                0 => (&one, &other),
                _ => (&other, &one),
            };
            lists.record_success(working);
            assert!(!lists.record_failure(failing, &error));
            lists.record_kept_posts();
        }
        lists.record_success(&other);
        assert!(lists.record_failure(&one, &error));
        lists.record_removed_posts();
        lists.record_success(&one);
        assert!(!lists.record_failure(&other, &error), "the next posts");
    }
}
