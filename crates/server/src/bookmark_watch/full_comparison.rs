use driftline_store::social::bookmark_copy::BookmarkKey;

/// The comparison of all bookmarks, in pages, by the time of a monotonic clock. It begins at the start, every hour, and some
/// minutes after the last one if it was asked for: accounts can ask as often as they like.
#[derive(Debug, Default)]
pub(super) struct FullComparison {
    /// The place of the comparison under way.
    place: Option<Place>,
    /// The beginning of the last comparison; `None` before the first.
    began_at_ms: Option<i64>,
    /// True if another one was asked for since then.
    is_asked: bool,
}

/// A place in a comparison: after a bookmark, or before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) Option<BookmarkKey>);

impl FullComparison {
    /// True once a comparison has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.began_at_ms.is_some()
    }

    /// True until the comparison that has begun is complete.
    pub(super) fn is_under_way(&self) -> bool {
        self.place.is_some()
    }

    /// Asks for a comparison that begins after now.
    pub(super) fn ask(&mut self) {
        self.is_asked = true;
    }

    /// The place of the next page, after beginning a comparison if one is due; `None` if there is none.
    pub(super) fn next(&mut self, now_ms: i64) -> Option<Place> {
        if self.place.is_none() && self.is_due(now_ms) {
            self.place = Some(Place(None));
            self.began_at_ms = Some(now_ms);
            self.is_asked = false;
        }
        self.place
    }

    /// Goes on after the last bookmark of a page that was compared; `None` ends the comparison.
    pub(super) fn advance(&mut self, last: Option<BookmarkKey>) {
        self.place = last.map(|last| Place(Some(last)));
    }

    fn is_due(&self, now_ms: i64) -> bool {
        self.began_at_ms.is_none_or(|began_at_ms| {
            let passed_ms = now_ms - began_at_ms;
            passed_ms >= EVERY_MS || self.is_asked && passed_ms >= ASKED_EVERY_MS
        })
    }
}

const EVERY_MS: i64 = 60 * 60_000;
/// The least time between the beginnings of two comparisons.
const ASKED_EVERY_MS: i64 = 5 * 60_000;

#[cfg(test)]
mod tests {
    use driftline_store::{LocalAccountId, LocalId};

    use super::*;

    fn bookmark(id: u64) -> BookmarkKey {
        BookmarkKey {
            account: LocalAccountId::new(1),
            id: LocalId::new(id),
        }
    }

    #[test]
    fn a_page_that_failed_is_the_next_one_again() {
        let mut comparison = FullComparison::default();
        assert_eq!(comparison.next(0), Some(Place(None)));
        assert_eq!(comparison.next(1), Some(Place(None)));
        comparison.advance(Some(bookmark(7)));
        for now_ms in [2, EVERY_MS, 3 * EVERY_MS] {
            assert_eq!(comparison.next(now_ms), Some(Place(Some(bookmark(7)))));
        }
        comparison.advance(None);
        assert!(!comparison.is_under_way());
        assert_eq!(comparison.next(3 * EVERY_MS), Some(Place(None)));
    }

    #[test]
    fn one_that_is_asked_for_again_and_again_begins_every_few_minutes() {
        let mut comparison = FullComparison::default();
        let mut begun = Vec::new();
        for now_ms in (0..=EVERY_MS).step_by(1_000) {
            comparison.ask();
            if comparison.next(now_ms) == Some(Place(None)) {
                begun.push(now_ms);
            }
            comparison.advance(None);
        }
        let expected: Vec<i64> = (0..=EVERY_MS).step_by(ASKED_EVERY_MS as usize).collect();
        assert_eq!(begun, expected);
    }

    #[test]
    fn one_that_is_asked_for_during_another_begins_later() {
        let mut comparison = FullComparison::default();
        comparison.next(0);
        comparison.ask();
        comparison.ask();
        comparison.advance(Some(bookmark(7)));
        let place = comparison.next(2 * ASKED_EVERY_MS);
        assert_eq!(place, Some(Place(Some(bookmark(7)))), "it goes on");
        comparison.advance(None);
        assert_eq!(comparison.next(2 * ASKED_EVERY_MS), Some(Place(None)));
        comparison.advance(None);
        assert_eq!(comparison.next(4 * ASKED_EVERY_MS), None, "only once");
        assert_eq!(
            comparison.next(2 * ASKED_EVERY_MS + EVERY_MS),
            Some(Place(None))
        );
    }
}
