//! Counts of posts over time.

use driftline_core::{post::Counts, refresh::Freshness};
use driftline_db::{Column, DbError, Tx};
use serde::{Deserialize, Serialize};

use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
};

/// A post's counts as an answer showed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsAt {
    /// When the answer was requested, Unix ms.
    pub at_ms: i64,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A post's counts after each change, the oldest first; the first row is from when it was stored.
/// Empty if they never changed.
pub fn count_history(tx: &mut Tx<'_>, post: LocalId) -> Result<Vec<CountsAt>, StoreError> {
    let history = tx.query(
        "select at_ms, replies, boosts, favourites, quotes, views from count_history
         where post_id = $1 order by at_ms",
        &[&sql(post)],
        |row| {
            Ok(CountsAt {
                at_ms: row.i64(0)?,
                counts: Counts {
                    replies: row.opt_i64(1)?,
                    boosts: row.opt_i64(2)?,
                    favourites: row.opt_i64(3)?,
                    quotes: row.opt_i64(4)?,
                    views: row.opt_i64(5)?,
                },
            })
        },
    )?;
    Ok(history)
}

/// The rows to keep when one look-up follows another.
pub(crate) fn between(before: &Freshness, after: &Freshness) -> Vec<CountsAt> {
    let at = |at_ms, counts| CountsAt { at_ms, counts };
    let mut rows = Vec::new();
    if before.counts == after.counts {
        return rows;
    }
    // The row before records until when the counts were the old ones.
    if before.counts != Counts::default() {
        rows.push(at(before.refreshed_ms, before.counts));
    }
    if after.refreshed_ms != before.refreshed_ms {
        rows.push(at(after.refreshed_ms, after.counts));
    }
    rows
}

pub(crate) fn keep(tx: &mut Tx<'_>, rows: &[(i64, CountsAt)]) -> Result<(), DbError> {
    if rows.is_empty() {
        return Ok(());
    }
    let counts = || rows.iter().map(|(_, row)| row.counts);
    tx.execute_many_later(
        "insert into count_history (post_id, at_ms, replies, boosts, favourites, quotes, views)
         select r.post_id, r.at_ms, r.replies, r.boosts, r.favourites, r.quotes, r.views
         from {rows as r(post_id, at_ms, replies, boosts, favourites, quotes, views)}
         where true on conflict (post_id, at_ms) do nothing",
        &[],
        &[
            Column::i64(rows.iter().map(|(post_id, _)| *post_id)),
            Column::i64(rows.iter().map(|(_, row)| row.at_ms)),
            Column::i64(counts().map(|c| c.replies)),
            Column::i64(counts().map(|c| c.boosts)),
            Column::i64(counts().map(|c| c.favourites)),
            Column::i64(counts().map(|c| c.quotes)),
            Column::i64(counts().map(|c| c.views)),
        ],
    )
}
