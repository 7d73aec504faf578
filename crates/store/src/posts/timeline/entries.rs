//! The entries of posts in every source that lists them.

use std::collections::HashSet;

use driftline_db::{Column, DbError, Row, Tx};

use super::stored_post::StoredPost;
use crate::id_types::sql;

/// The order of a post's entries, which decides its place: it stands at the first entry that came
/// live, or else at the first one that came as history, which nothing announced. Live entries come
/// before those of history, and earlier ones before later ones.
pub(crate) fn came(id: i64, arrival_id: Option<i64>) -> (bool, i64) {
    (arrival_id.is_some(), arrival_id.unwrap_or(id))
}

/// An entry of a post.
pub(super) struct PostEntry {
    pub(super) source_id: i64,
    pub(super) post_id: i64,
    pub(super) id: i64,
    pub(super) visibility: i64,
    pub(super) author_id: Option<i64>,
    pub(super) returns: i64,
    /// The order among the post's entries: see [`came`].
    pub(super) came: (bool, i64),
    pub(super) arrived_at_ms: i64,
    /// True if its source no longer lists it, or it is deleted.
    pub(super) gone: bool,
    pub(super) left_at_ms: Option<i64>,
}

impl PostEntry {
    fn from_row(row: &Row<'_>) -> Result<PostEntry, DbError> {
        let id = row.i64("id")?;
        Ok(PostEntry {
            source_id: row.i64("source_id")?,
            post_id: row.i64("post_id")?,
            id,
            visibility: row.i64("visibility")?,
            author_id: row.opt_i64("account_id")?,
            returns: row.i64("returns")?,
            came: came(id, row.opt_i64("arrival_id")?),
            arrived_at_ms: row.i64("arrived_at_ms")?,
            gone: row.bool("gone")?,
            left_at_ms: row.opt_i64("left_at_ms")?,
        })
    }
}

/// The entries of posts in all sources, including those that have left.
pub(super) fn entries<'p>(
    tx: &mut Tx<'_>,
    posts: &(impl Iterator<Item = &'p StoredPost> + Clone),
) -> Result<Vec<PostEntry>, DbError> {
    if posts.clone().next().is_none() {
        return Ok(Vec::new());
    }
    let ids = Column::i64(posts.clone().map(|found| sql(found.post.post_id)));
    let instance_ids = posts.clone().map(|found| sql(found.post.instance));
    let instance_ids = Column::i64(instance_ids.collect::<HashSet<_>>());
    let sources = posts.clone().map(|found| found.first_source_id);
    let sources = Column::i64(sources.collect::<HashSet<_>>());
    let columns =
        "source_id, post_id, id, visibility, account_id, returns, arrival_id, arrived_at_ms, gone,
        coalesce(left_at_ms, left_before_ms) as left_at_ms";
    let first = tx.query_later(
        &format!(
            "select {columns} from entry
             where source_id {{in $3}} and instance_id {{in $2}} and id {{in $1}}"
        ),
        &[&ids, &instance_ids, &sources],
        PostEntry::from_row,
    )?;
    let others = tx.query_later(
        &format!(
            "select {columns} from entry
             where post_id {{in $1}} and instance_id {{in $2}} and id <> post_id"
        ),
        &[&ids, &instance_ids],
        PostEntry::from_row,
    )?;
    let mut found = tx.rows(first)?;
    found.extend(tx.rows(others)?);
    Ok(found)
}
