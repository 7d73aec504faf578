//! The rule for notifying libraries of a post's changed counts.
//!
//! Counts change at every refresh. A notification for each change would flood every replica.

use super::{age_table::AgeTable, freshness::Freshness};

/// True if libraries must be notified of a post's counts. At least an hour must have passed since
/// the last notification. The counts must have changed by a tenth, or the post must have changed
/// its age band and its counts.
pub(super) fn is_worth_notifying(table: &AgeTable, post: &Freshness, now_ms: i64) -> bool {
    let moved = post.counts.total().abs_diff(post.notified.total);
    if moved == 0 || (0..MIN_MS).contains(&now_ms.saturating_sub(post.notified.at_ms)) {
        return false;
    }
    let is_a_tenth = moved.saturating_mul(10) >= post.notified.total.unsigned_abs();
    is_a_tenth || band(table, post, now_ms) != band(table, post, post.notified.at_ms)
}

fn band(table: &AgeTable, post: &Freshness, at_ms: i64) -> Option<usize> {
    table.band(at_ms.saturating_sub(post.created_at_ms?))
}

const MIN_MS: i64 = 3_600_000;
