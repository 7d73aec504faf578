//! Counts of posts over time.

use driftline_core::{post::Counts, refresh::Freshness};
use driftline_db::{Column, DbError, Row, Tx};
use serde::{Deserialize, Serialize};

use super::refresh_state;
use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
    posts::{instance, timeline::visible::seen_since},
    viewer::Viewer,
};

/// A post's counts in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsAt {
    /// The time of the request, in Unix ms.
    pub at_ms: i64,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A post's counts after each change, the oldest first. The first row is from when the first source
/// that the viewer may read had it. Empty if they never changed.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn count_history(
    tx: &mut Tx<'_>,
    post: LocalId,
    viewer: Viewer,
) -> Result<Vec<CountsAt>, StoreError> {
    let Some(instance) = instance::of_post(tx, post)? else {
        return Ok(Vec::new());
    };
    let Some(since_ms) = seen_since(tx, post, viewer)? else {
        return Ok(Vec::new());
    };
    let text = format!(
        "select {COLUMNS} from count_history
         where post_id = $1 and instance_id = $2 order by at_ms"
    );
    let history = tx.query(&text, &[&sql(post), &sql(instance)], from_row)?;
    let history = history.into_iter().map(|(_, counts)| counts).collect();
    Ok(from(history, since_ms))
}

/// The part of a history from a time on. It begins with the counts that the post had then.
fn from(history: Vec<CountsAt>, since_ms: i64) -> Vec<CountsAt> {
    let (before, after): (Vec<CountsAt>, Vec<CountsAt>) =
        history.into_iter().partition(|row| row.at_ms <= since_ms);
    let first = before.last().map(|last| CountsAt {
        at_ms: since_ms,
        counts: last.counts,
    });
    // They have not changed since.
    let first = first.filter(|_| !after.is_empty());
    first.into_iter().chain(after).collect()
}

/// The whole histories of posts, one after the other.
pub(crate) fn of_posts(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: impl Iterator<Item = i64>,
) -> Result<Vec<(i64, CountsAt)>, DbError> {
    let sql = format!(
        "select {COLUMNS} from count_history
         where post_id {{in $1}} and instance_id = $2 order by post_id, at_ms"
    );
    tx.query(&sql, &[&Column::i64(post_ids), &instance_id], from_row)
}

/// The rows to store when one look-up follows another.
pub(crate) fn between(before: &Freshness, after: &Freshness) -> Vec<CountsAt> {
    let at = |at_ms, counts| CountsAt { at_ms, counts };
    let mut rows = Vec::new();
    if before.counts == after.counts {
        return rows;
    }
    // The row before records the time until which the counts were the old ones.
    if before.counts != Counts::default() {
        rows.push(at(before.refreshed_ms, before.counts));
    }
    if after.refreshed_ms != before.refreshed_ms {
        rows.push(at(after.refreshed_ms, after.counts));
    }
    rows
}

pub(crate) fn keep(
    tx: &mut Tx<'_>,
    instance_id: i64,
    rows: &[(i64, CountsAt)],
) -> Result<(), DbError> {
    let counts = || rows.iter().map(|(_, row)| row.counts);
    tx.execute_many_later(
        &format!(
            "insert into count_history (instance_id, {COLUMNS})
             select $1, {COLUMNS} from {{rows as r({COLUMNS})}}
             where true on conflict ({{key post_id, at_ms + instance_id}}) do nothing"
        ),
        &[&instance_id],
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

/// The columns that [`from_row`] reads and [`keep`] writes, in order.
const COLUMNS: &str = "post_id, at_ms, replies, boosts, favourites, quotes, views";

fn from_row(row: &Row<'_>) -> Result<(i64, CountsAt), DbError> {
    let counts = CountsAt {
        at_ms: row.i64("at_ms")?,
        counts: refresh_state::counts_of(row)?,
    };
    Ok((row.i64("post_id")?, counts))
}
