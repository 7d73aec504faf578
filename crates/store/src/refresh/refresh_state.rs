//! The state of a post's refreshes, as a row of `freshness`.

use driftline_core::{
    post::Counts,
    refresh::{CountSample, Decision, Due, Freshness, LookupOutcome},
};
use driftline_db::{DbError, Row};

use super::schedule::Slot;

/// The state of a post in the refresh pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshState {
    /// Its freshness by its answers.
    pub freshness: Freshness,
    /// Its due time in Unix ms; `None` if it has none any more.
    pub due_at_ms: Option<i64>,
    /// The outcome of its last look-up.
    pub outcome: Option<LookupOutcome>,
    pub(crate) post_id: i64,
    pub(crate) bucket: i64,
    pub(crate) state_hash: Option<i64>,
}

impl RefreshState {
    /// The state of a new post, or of a look-up.
    pub(crate) fn first(
        (bucket, post_id): (i64, i64),
        freshness: Freshness,
        due: Due,
        state_hash: Option<i64>,
    ) -> RefreshState {
        RefreshState {
            freshness,
            due_at_ms: time_of(due),
            outcome: None,
            post_id,
            bucket,
            state_hash,
        }
    }

    /// Its slot in the schedule, if it has a due time.
    pub(crate) fn slot(&self) -> Option<Slot> {
        Some(Slot {
            bucket: self.bucket,
            due_at_ms: self.due_at_ms?,
            post_id: self.post_id,
        })
    }

    /// A decision on an answer. If the post's counts were not known before, the first ones are no
    /// growth, and libraries are not notified about them.
    pub(crate) fn without_first_growth(&self, mut decision: Decision, now_ms: i64) -> Decision {
        if self.state_hash.is_none() {
            decision.notify = false;
            decision.freshness.notified = CountSample {
                at_ms: now_ms,
                total: decision.freshness.counts.total(),
            };
        }
        decision
    }
}

/// All columns, in the order of [`columns`].
pub(crate) const COLUMNS: &str = "post_id, bucket, post_created_at_ms, first_at_ms,
    refreshed_at_ms, due_at_ms, refreshes, failures, missing, outcome, state_hash, replies, boosts,
    favourites, quotes, views, before_at_ms, before_total, notified_at_ms, notified_total";

/// Reads the [`COLUMNS`]: all except the source, which is the post's.
pub(crate) fn from_row(row: &Row<'_>) -> Result<RefreshState, DbError> {
    let small = |column| {
        row.i64(column)
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
    };
    let before_total = row.i64("before_total")?;
    let freshness = Freshness {
        created_at_ms: row.opt_i64("post_created_at_ms")?,
        first_ms: row.i64("first_at_ms")?,
        refreshed_ms: row.i64("refreshed_at_ms")?,
        refreshes: small("refreshes")?,
        failures: small("failures")?,
        missing: row.bool("missing")?,
        counts: counts_of(row)?,
        before: row.opt_i64("before_at_ms")?.map(|at_ms| CountSample {
            at_ms,
            total: before_total,
        }),
        notified: CountSample {
            at_ms: row.i64("notified_at_ms")?,
            total: row.i64("notified_total")?,
        },
        source: None,
    };
    Ok(RefreshState {
        freshness,
        post_id: row.i64("post_id")?,
        due_at_ms: row.opt_i64("due_at_ms")?,
        outcome: row.opt_str("outcome")?.and_then(|name| name.parse().ok()),
        bucket: row.i64("bucket")?,
        state_hash: row.opt_i64("state_hash")?,
    })
}

/// The counts in a row of posts' freshness or history.
pub(crate) fn counts_of(row: &Row<'_>) -> Result<Counts, DbError> {
    Ok(Counts {
        replies: row.opt_i64("replies")?,
        boosts: row.opt_i64("boosts")?,
        favourites: row.opt_i64("favourites")?,
        quotes: row.opt_i64("quotes")?,
        views: row.opt_i64("views")?,
    })
}

/// The due time of a post in Unix ms; `None` if it has none any more.
pub(crate) fn time_of(due: Due) -> Option<i64> {
    match due {
        Due::At(due_at_ms) => Some(due_at_ms),
        Due::Retired | Due::Never => None,
    }
}
