//! Posts with their freshness, read in one statement.

use std::collections::HashMap;

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Tx};

use super::freshness::{self, COLUMNS, RefreshState};
use crate::{posts::post::PostVersion, text::without_nul};

/// A stored post, as far as a refresh needs it.
pub(crate) struct Stored {
    pub(crate) upstream_id: String,
    pub(crate) visibility: Visibility,
    /// When the newest answer that showed the stored version was requested, Unix ms.
    pub(crate) read_at_ms: i64,
    pub(crate) content_hash: i64,
    pub(crate) deleted_at_ms: Option<i64>,
    pub(crate) listed: bool,
}

/// The refresh states of posts and pending look-ups, with the posts, which look-ups do not have.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    post_ids: &[i64],
) -> Result<HashMap<i64, (RefreshState, Option<Stored>)>, DbError> {
    let rows = tx.query(
        &format!(
            "select {COLUMNS}, upstream_id, visibility, read_at_ms, content_hash, deleted_at_ms, listed,
                 first_source_id
             from freshness left join post on post.id = freshness.post_id
             where freshness.post_id {{in $1}}"
        ),
        &[&Column::i64(post_ids.iter().copied())],
        |row| {
            let (post_id, mut refresh_state) = freshness::from_row(row)?;
            let Some(upstream_id) = row.opt_str("upstream_id")? else {
                return Ok((post_id, (refresh_state, None)));
            };
            refresh_state.freshness.source = Some(row.i64("first_source_id")?.cast_unsigned());
            let stored = Stored {
                upstream_id: upstream_id.to_owned(),
                visibility: Visibility::named_or_narrowest(row.str("visibility")?),
                read_at_ms: row.i64("read_at_ms")?,
                content_hash: row.i64("content_hash")?,
                deleted_at_ms: row.opt_i64("deleted_at_ms")?,
                listed: row.bool("listed")?,
            };
            Ok((post_id, (refresh_state, Some(stored))))
        },
    )?;
    Ok(rows.into_iter().collect())
}

/// Replaces versions that differ in counts alone. The clock need not be held: a version that a poll
/// has stored meanwhile, newer or with other content, stays.
pub(crate) fn recount(tx: &mut Tx<'_>, posts: &[PostVersion<'_>]) -> Result<(), DbError> {
    let raws: Vec<_> = posts
        .iter()
        .map(|version| without_nul(&version.post.raw))
        .collect();
    tx.execute_many_later(
        "update post set raw = r.raw, read_at_ms = r.read_at_ms
         from {rows as r(id, content_hash, read_at_ms, raw)}
         where post.id = r.id and post.content_hash = r.content_hash
             and post.read_at_ms <= r.read_at_ms and post.deleted_at_ms is null",
        &[],
        &[
            Column::i64(posts.iter().map(|version| version.id)),
            Column::i64(posts.iter().map(|version| version.post.hashes.content)),
            Column::i64(posts.iter().map(|version| version.read_at_ms)),
            Column::text(raws.iter().map(|raw| &**raw)),
        ],
    )
}
