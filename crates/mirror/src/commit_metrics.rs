//! Metrics of what commits have changed.

use driftline_runtime::metrics::{DELETIONS, EDITS, POSTS_RECOUNTED, POSTS_STORED};
use driftline_store::CommitSummary;

/// Adds the posts of a commit to the metrics.
pub(crate) fn count(summary: &CommitSummary) {
    POSTS_STORED.increment(summary.new);
    EDITS.increment(summary.edited);
    POSTS_RECOUNTED.increment(summary.recounted);
    DELETIONS.increment(summary.deleted);
}
