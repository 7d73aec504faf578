//! The tables of posts that wait for a job, `index_pending` and `edited_post`.
//!
//! Such a table has one row for each waiting post, with the time of the post's last change. The time
//! rises with each change, so the job removes no change that it has not read.

use driftline_db::{Column, DbError, Tx};

/// Removes posts of an instance from a table. Each post has the time of the row that the job read; a
/// row with another time stays.
pub(super) fn remove(
    tx: &mut Tx<'_>,
    table: &str,
    instance_id: i64,
    posts: &[(i64, i64)],
) -> Result<(), DbError> {
    tx.execute_many(
        &format!(
            "delete from {table} where instance_id = $1 and (post_id, since_ms) in
                 (select post_id, since_ms from {{rows as r(post_id, since_ms)}})"
        ),
        &[&instance_id],
        &[
            Column::i64(posts.iter().map(|(post, _)| *post)),
            Column::i64(posts.iter().map(|(_, since_ms)| *since_ms)),
        ],
    )?;
    Ok(())
}

/// The end of a statement that adds posts to a table: the time of a post that is there rises.
pub(super) fn or_raise_time(table: &str) -> String {
    format!(
        "on conflict (instance_id, post_id) do update
         set since_ms = {{greatest}}(excluded.since_ms, {table}.since_ms + 1)"
    )
}
