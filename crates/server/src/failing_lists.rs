//! Lists that cannot be compared with edited posts.
//!
//! An edited post stays until all lists were compared with it. A list that always fails would keep it
//! for all of them, so after some attempts the post is removed without that list.

use std::collections::{HashMap, HashSet};

use driftline_store::{StoreError, social::list_entry::ListKey};

/// The lists that failed at their last comparison.
#[derive(Debug, Default)]
pub(crate) struct FailingLists(HashMap<ListKey, Failures>);

#[derive(Debug, Default)]
struct Failures {
    /// The number of consecutive failures.
    count: u32,
    /// The number of edited posts that were removed without a comparison.
    left_out: usize,
}

impl FailingLists {
    /// Forgets the lists that do not exist any more.
    pub(crate) fn retain(&mut self, lists: impl Iterator<Item = ListKey>) {
        if !self.0.is_empty() {
            let lists: HashSet<ListKey> = lists.collect();
            self.0.retain(|list, _| lists.contains(list));
        }
    }

    /// Counts a failure of a list. Returns true if its posts need not be kept for it any longer.
    pub(crate) fn failed(&mut self, list: ListKey, error: &StoreError) -> bool {
        let failures = self.0.entry(list).or_default();
        failures.count = failures.count.saturating_add(1);
        let max = match error.is_outage() {
            true => MAX_OUTAGES,
            false => MAX_FAILURES,
        };
        failures.count >= max
    }

    /// Records that a list works.
    pub(crate) fn succeeded(&mut self, list: ListKey) {
        if let Some(failures) = self.0.remove(&list)
            && failures.left_out > 0
        {
            let posts = failures.left_out;
            tracing::warn!(list = %list.list, posts, "a list is compared with edited posts again; some were left out");
        }
    }

    /// Records that posts were removed without a comparison with a list. Only the first time is logged.
    pub(crate) fn left_out(&mut self, list: ListKey, posts: usize, error: &StoreError) {
        let failures = self.0.entry(list).or_default();
        if failures.left_out == 0 {
            tracing::warn!(list = %list.list, posts, %error, "a list cannot be compared with edited posts, which are left out; it is tried again with the next ones");
        }
        failures.left_out += posts;
    }
}

/// The number of consecutive failures of a list after which posts are left out: about 15 s.
const MAX_FAILURES: u32 = 3;
/// The same for failures that may be the store's: about five minutes. In each of these turns the store has
/// answered the reads before the comparison, and in the last one the removal of the posts.
const MAX_OUTAGES: u32 = 60;

#[cfg(test)]
mod tests {
    use std::iter;

    use driftline_db::DbError;
    use driftline_store::{LocalAccountId, LocalId};

    use super::*;

    const LIST: ListKey = ListKey {
        account: LocalAccountId::new(1),
        list: LocalId::new(2),
    };

    #[test]
    fn a_list_is_left_out_after_consecutive_failures() {
        let broken = StoreError::Db(DbError::Constraint("list_entry".into()));
        let mut lists = FailingLists::default();
        for _ in 1..MAX_FAILURES {
            assert!(!lists.failed(LIST, &broken));
        }
        lists.succeeded(LIST);
        for _ in 1..MAX_FAILURES {
            assert!(!lists.failed(LIST, &broken));
        }
        for _ in 0..3 {
            assert!(lists.failed(LIST, &broken));
            lists.left_out(LIST, 1, &broken);
        }
        lists.retain(iter::once(LIST));
        assert!(lists.failed(LIST, &broken));
        lists.retain(iter::empty());
        assert!(!lists.failed(LIST, &broken), "another list");
    }

    #[test]
    fn an_outage_leaves_nothing_out_for_minutes() {
        let away = StoreError::Db(DbError::ConnectionLost("away".into()));
        let mut lists = FailingLists::default();
        for _ in 1..MAX_OUTAGES {
            assert!(!lists.failed(LIST, &away));
        }
        assert!(lists.failed(LIST, &away));
    }
}
