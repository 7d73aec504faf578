//! Posts with their freshness, read in one statement.

use std::collections::HashMap;

use driftline_core::clock::MAX_SKEW_MS;
use driftline_db::{Column, DbError, PendingRows, Tx};

use super::refresh_state::{self, RefreshState};
use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
    posts::{
        content_scope::ContentScope,
        instance,
        post::{self, PostVersion},
    },
    text::without_nul,
};

/// The refresh states of posts and pending look-ups, with the posts. Look-ups have no post.
pub(crate) type States = HashMap<i64, (RefreshState, Option<post::KnownPost>)>;

/// The states with these IDs, with their posts.
pub(crate) fn with_posts(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<States, DbError> {
    let states = with_posts_later(tx, instance_id, post_ids)?;
    Ok(tx.rows(states)?.into_iter().collect())
}

/// A requested state.
pub(crate) type PendingStates =
    PendingRows<'static, (i64, (RefreshState, Option<post::KnownPost>))>;

/// [`with_posts`], requested together with the next query.
pub(crate) fn with_posts_later(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<PendingStates, DbError> {
    tx.query_later(
        &format!(
            "select {}, {}, first_source_id
             from freshness f
             left join post p on p.id = f.post_id and p.instance_id = f.instance_id
             where f.post_id {{in $1}} and f.instance_id = $2",
            refresh_state::COLUMNS,
            post::COLUMNS
        ),
        &[&Column::i64(post_ids.iter().copied()), &instance_id],
        |row| {
            let mut state = refresh_state::from_row(row)?;
            let source = row.opt_i64("first_source_id")?;
            state.freshness.source = source.map(i64::cast_unsigned);
            let post = match source {
                Some(_) => Some(post::from_row(row)?),
                None => None,
            };
            Ok((state.post_id, (state, post)))
        },
    )
}

/// Replaces versions that differ only in counts, each in the content of its scope. The instance
/// need not be locked: a version that a poll has stored meanwhile, newer or with other content,
/// stays.
pub(crate) fn recount(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[PostVersion<'_>],
    now_ms: i64,
) -> Result<(), DbError> {
    // All writes lock posts in one order.
    let mut posts: Vec<&PostVersion<'_>> = posts.iter().collect();
    posts.sort_unstable_by_key(|version| version.id);
    let raws: Vec<_> = posts
        .iter()
        .map(|version| without_nul(&version.post.raw))
        .collect();
    let columns = [
        Column::i64(posts.iter().map(|version| version.id)),
        Column::i64(posts.iter().map(|version| version.post.hashes.content)),
        Column::i64(posts.iter().map(|version| version.scope.sql())),
        Column::i64(posts.iter().map(|version| version.read_at_ms)),
        Column::text(raws.iter().map(|raw| &**raw)),
    ];
    let last_ms = now_ms.saturating_add(MAX_SKEW_MS);
    tx.execute_many_later(
        "update post set raw = r.raw, read_at_ms = r.read_at_ms
         from {rows as r(id, content_hash, content_scope, read_at_ms, raw)}
         where post.id = r.id and post.instance_id = $1 and post.content_hash = r.content_hash
             and post.content_scope = r.content_scope
             and (post.read_at_ms <= r.read_at_ms or post.read_at_ms > $2)
             and post.deleted_at_ms is null",
        &[&instance_id, &last_ms],
        &columns,
    )?;
    let is_worlds = |version: &&PostVersion<'_>| version.scope == ContentScope::WORLD;
    if posts.iter().all(is_worlds) {
        return Ok(());
    }
    tx.execute_many_later(
        "update scoped_content set raw = r.raw, read_at_ms = r.read_at_ms
         from {rows as r(id, content_hash, scope, read_at_ms, raw)}
         where scoped_content.post_id = r.id and scoped_content.instance_id = $1
             and scoped_content.content_hash = r.content_hash and scoped_content.scope = r.scope
             and (scoped_content.read_at_ms <= r.read_at_ms or scoped_content.read_at_ms > $2)",
        &[&instance_id, &last_ms],
        &columns,
    )
}

/// The state of a post; `None` if it is not stored or was never scheduled.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn refresh_state(tx: &mut Tx<'_>, post: LocalId) -> Result<Option<RefreshState>, StoreError> {
    let Some(instance) = instance::of_post(tx, post)? else {
        return Ok(None);
    };
    Ok(by_ids(tx, sql(instance), &[sql(post)])?.remove(&sql(post)))
}

/// The states of an instance's posts and pending look-ups.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    instance_id: i64,
    post_ids: &[i64],
) -> Result<HashMap<i64, RefreshState>, DbError> {
    let found = with_posts(tx, instance_id, post_ids)?.into_iter();
    Ok(found.map(|(id, (state, _))| (id, state)).collect())
}
