//! The last edits and deletions of a stream, for posts that are stored after them.

use std::collections::VecDeque;

use driftline_core::answer::Event;
use driftline_store::ReceivedEvent;

/// Edits and deletions that may concern posts of held pages: the source does not have those posts yet, so that the
/// events change nothing when they come.
#[derive(Debug, Default)]
pub(crate) struct RecentChanges(VecDeque<ReceivedEvent>);

impl RecentChanges {
    /// Remembers the edits and deletions among these events, and forgets old ones.
    pub(crate) fn add(&mut self, events: &[ReceivedEvent], now_ms: i64) {
        let changes = events
            .iter()
            .filter(|received| !matches!(received.event, Event::Posted(_)));
        self.0.extend(changes.cloned());
        let surplus = self.0.len().saturating_sub(MAX_CHANGES);
        let is_old = |received: &&ReceivedEvent| received.received_at_ms < now_ms - KEPT_MS;
        let old = self.0.iter().take_while(is_old).count();
        self.0.drain(..surplus.max(old));
    }

    /// All that are remembered, in their order.
    pub(crate) fn all(&self) -> Vec<ReceivedEvent> {
        self.0.iter().cloned().collect()
    }
}

/// Longer than pages are held, and their commits take.
const KEPT_MS: i64 = 20_000;
const MAX_CHANGES: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(id: usize, received_at_ms: i64) -> ReceivedEvent {
        ReceivedEvent {
            event: Event::Deleted(id.to_string().as_str().into()),
            received_at_ms,
        }
    }

    #[test]
    fn the_last_changes_are_remembered_and_posts_are_not() {
        let mut recent = RecentChanges::default();
        let post = Box::new(driftline_store::testing::post(1, "text"));
        let posted = ReceivedEvent {
            event: Event::Posted(post),
            received_at_ms: 0,
        };
        recent.add(&[posted, deleted(2, 0)], 0);
        recent.add(&[deleted(3, KEPT_MS)], KEPT_MS);
        assert_eq!(recent.all(), [deleted(2, 0), deleted(3, KEPT_MS)]);
        recent.add(&[], KEPT_MS + 1);
        assert_eq!(recent.all(), [deleted(3, KEPT_MS)]);
        let many: Vec<_> = (0..MAX_CHANGES).map(|id| deleted(id, KEPT_MS)).collect();
        recent.add(&many, KEPT_MS);
        assert_eq!(recent.all(), many);
    }
}
