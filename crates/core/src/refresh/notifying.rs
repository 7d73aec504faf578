//! When libraries are told that a post's counts changed.
//!
//! Counts change at every refresh: if each change were told, every replica would be flooded.

use super::{age_table::AgeTable, freshness::Freshness};

/// Whether a library is to be told of a post's counts: they moved by a tenth since it was last
/// told, or the post has come into another age band since and they moved at all; and at least an
/// hour has passed since.
pub(super) fn is_worth_notifying(table: &AgeTable, post: &Freshness, now_ms: i64) -> bool {
    let moved = post.counts.total().abs_diff(post.told.total);
    if moved == 0 || now_ms.saturating_sub(post.told.at_ms) < MIN_MS {
        return false;
    }
    let is_a_tenth = moved.saturating_mul(10) >= post.told.total.unsigned_abs();
    is_a_tenth || band(table, post, now_ms) != band(table, post, post.told.at_ms)
}

fn band(table: &AgeTable, post: &Freshness, at_ms: i64) -> Option<usize> {
    table.band(at_ms.saturating_sub(post.created_at_ms?))
}

const MIN_MS: i64 = 3_600_000;
