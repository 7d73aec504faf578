//! The order in which an answer lists its posts, compared with the order of their IDs.

use std::collections::HashSet;

use super::scheme::IdScheme;
use crate::upstream_id::Key;

/// The posts of an answer that are in their place.
///
/// The posts of an answer are contiguous, but only those that it lists in order. A pinned post
/// above the newest, or a repeated one at the end, does not bound the posts between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageOrder {
    /// For each key, true if it is part of the longest run in order.
    pub(super) placed: Vec<bool>,
    /// The ms within which the answer lists posts in any order.
    pub(super) precision_ms: i64,
}

impl PageOrder {
    /// The order of different keys, as the answer lists them.
    pub(super) fn detect(keys: &[Key], scheme: &IdScheme) -> Self {
        let exact = Self {
            placed: non_increasing(keys),
            precision_ms: 0,
        };
        let least_ms = scheme.precision_ms();
        if least_ms == 0 && exact.strays() == 0 {
            return exact;
        }
        let times: Option<Vec<i64>> = keys.iter().map(|key| scheme.time_ms(key)).collect();
        let Some(times) = times else {
            return exact;
        };
        let coarse = |precision_ms: i64| Self {
            placed: non_increasing(&windows(&times, precision_ms)),
            precision_ms,
        };
        if least_ms > 0 {
            return coarse(least_ms);
        }
        let by_second = coarse(SECOND_MS);
        if by_second.strays() < exact.strays() {
            by_second
        } else {
            exact
        }
    }

    /// The number of posts out of place.
    pub(super) fn strays(&self) -> usize {
        self.placed.iter().filter(|placed| !**placed).count()
    }

    /// True if the answer follows the order of IDs. A few posts may be out of place.
    pub(super) fn is_kept(&self) -> bool {
        self.strays() <= (self.placed.len() / 4).max(1)
    }
}

/// True if an answer with these keys lists some of its posts again. GoToSocial does so at the end
/// of a short page, and lists boosts there that it omits before. They follow older posts in any
/// order. The answer is in order except for its beginning or its end.
pub(super) fn lists_again(keys: &[Key]) -> bool {
    let different: HashSet<&Key> = keys.iter().collect();
    let rises = keys.windows(2).filter(|pair| pair[0] < pair[1]).count();
    different.len() < keys.len() && rises <= MAX_RISES
}

fn windows(times: &[i64], precision_ms: i64) -> Vec<i64> {
    times.iter().map(|ms| ms.div_euclid(precision_ms)).collect()
}

/// For each value, true if it belongs to the longest run that never rises.
pub(super) fn non_increasing<T: Ord>(values: &[T]) -> Vec<bool> {
    // For each length the index of the largest value with which such a run can end.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let length = ends.partition_point(|end| values[*end] >= *value);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut placed = vec![false; values.len()];
    let mut at = ends.last().copied();
    while let Some(index) = at {
        placed[index] = true;
        at = before[index];
    }
    placed
}

/// The order of `created_at` in whole seconds.
const SECOND_MS: i64 = 1_000;

/// One rise before the posts that are listed again, and one below a pinned post.
const MAX_RISES: usize = 2;

#[cfg(test)]
mod tests {
    use driftline_id::Layout;

    use super::*;
    use crate::upstream_id::{IdOrder, UpstreamId};

    const SCHEME: IdScheme = IdScheme {
        order: IdOrder::Numeric,
        layout: Some(Layout::MASTODON),
    };

    /// Posts with these times in ms, in the order of the answer.
    fn order(times_ms: &[i64]) -> PageOrder {
        let key = |ms: &i64| {
            let id = Layout::MASTODON.smallest_at(1_700_000_000_000 + ms);
            SCHEME.key(&UpstreamId::new(id.to_string())).expect("an ID")
        };
        let keys: Vec<Key> = times_ms.iter().map(key).collect();
        PageOrder::detect(&keys, &SCHEME)
    }

    #[test]
    fn posts_out_of_place_are_found_and_the_others_keep_theirs() {
        for (times_ms, strays, precision_ms) in [
            (&[90_000, 60_000, 30_000, 100][..], &[][..], 0),
            (&[500, 90_000, 60_000, 30_000], &[0], 0),
            (&[90_000, 60_000, 30_000, 120_000], &[3], 0),
            (&[90_100, 90_900, 90_500, 30_000], &[], 1_000),
            (&[95_000, 99_000, 92_000, 30_000], &[0], 0),
            (&[100, 90_100, 90_900, 90_500, 30_000], &[0], 1_000),
        ] {
            let order = order(times_ms);
            let found = order.placed.iter().enumerate();
            let found: Vec<usize> = found
                .filter(|(_, placed)| !**placed)
                .map(|of| of.0)
                .collect();
            assert_eq!(found, strays, "{times_ms:?}");
            assert_eq!(order.precision_ms, precision_ms, "{times_ms:?}");
            assert!(order.is_kept(), "{times_ms:?}");
        }
    }

    #[test]
    fn posts_that_are_listed_again_are_told_from_another_order() {
        let key = |ms: i64| SCHEME.floor(1_700_000_000_000 + ms).expect("an ID");
        let again = |times_ms: &[i64]| {
            let keys: Vec<Key> = times_ms.iter().map(|ms| key(*ms)).collect();
            lists_again(&keys)
        };
        assert!(again(&[700, 500, 300, 800, 700, 600, 500, 300]));
        assert!(again(&[700, 500, 300, 700]));
        assert!(
            again(&[100, 700, 500, 800, 700, 600]),
            "below a pinned post"
        );
        assert!(!again(&[700, 500, 300]));
        assert!(!again(&[700, 500, 800, 300]), "seconds in any order");
        assert!(!again(&[300, 500, 400, 700, 100, 500]), "no order");
    }

    #[test]
    fn an_order_that_is_not_that_of_ids_is_not_kept() {
        let minutes = [7, 3, 9, 1, 8, 2, 6, 4, 5, 0].map(|minute| minute * 60_000);
        assert!(!order(&minutes).is_kept());
        let mut rising = minutes;
        rising.sort_unstable();
        assert!(!order(&rising).is_kept());
    }
}
