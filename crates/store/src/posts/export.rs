//! Exports stored posts in the order of their arrival.

use std::collections::HashMap;

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, PendingRows, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{AccountId, LocalId, SourceKey, from_sql, sql},
    mirror::machine::source_scope,
    posts::{
        content_scope::{ContentScope, ReadableScopes},
        instance,
    },
    viewer::Viewer,
};

/// An entry with its post, to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRow {
    /// Its ID.
    pub id: LocalId,
    /// The ID of its post.
    pub post_id: LocalId,
    /// Its number in the order of arrival. The next export continues after it.
    pub first_usn: i64,
    /// Its last USN.
    pub usn: i64,
    /// The time at which it was stored, in Unix ms.
    pub arrived_at_ms: i64,
    /// The time since which the source no longer lists the post, although it is not known to be
    /// deleted, in Unix ms.
    pub left_at_ms: Option<i64>,
    /// The post.
    pub post: ExportPost,
}

/// A stored post, to export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportPost {
    /// Its ID at the upstream.
    pub upstream_id: String,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// Its author's ID; `None` if the upstream left the author out.
    pub account: Option<AccountId>,
    /// The upstream ID of the post that it boosts.
    pub boost_of: Option<String>,
    /// The time of creation according to its author, in Unix ms.
    pub created_at_ms: Option<i64>,
    /// The time of its last edit, in Unix ms.
    pub edited_at_ms: Option<i64>,
    /// The time at which its deletion was noticed, in Unix ms.
    pub deleted_at_ms: Option<i64>,
    /// The time at which the answer was requested that showed this version, in Unix ms.
    pub fetched_at_ms: i64,
    /// The people who may see it at the upstream.
    pub visibility: Visibility,
    /// True if its server only claims to know it ([`driftline_core::post::Post::is_claimed`]).
    pub claimed: bool,
    /// The post as it was received, JSON; `None` for a tombstone.
    pub raw: Option<String>,
}

/// A stored post as it was shown to a viewer who may see it. A deleted post is returned as its
/// tombstone.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn post(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
) -> Result<Option<ExportPost>, StoreError> {
    let Some(instance) = instance::of_post(tx, id)? else {
        return Ok(None);
    };
    let readable = ReadableScopes::of(viewer);
    Ok(posts(tx, &[sql(id)], sql(instance), readable)?.remove(&sql(id)))
}

/// Entries of a source that arrived after `after_first_usn`, in order of arrival.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn rows(
    tx: &mut Tx<'_>,
    source: SourceKey,
    after_first_usn: i64,
    limit: u32,
) -> Result<Vec<ExportRow>, StoreError> {
    let entries = arrived_later(tx, source, after_first_usn, limit)?;
    let entries = tx.rows(entries)?;
    with_posts(tx, source, &entries)
}

/// An entry, without its post.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExportEntry {
    pub(crate) id: i64,
    pub(crate) post_id: i64,
    pub(crate) first_usn: i64,
    pub(crate) usn: i64,
    pub(crate) change_usn: Option<i64>,
    pub(crate) gone: bool,
    pub(crate) is_history: bool,
    pub(crate) arrived_at_ms: i64,
    pub(crate) left_at_ms: Option<i64>,
}

/// The entries that [`rows`] returns, requested together with the next statement.
pub(crate) fn arrived_later(
    tx: &mut Tx<'_>,
    source: SourceKey,
    after_first_usn: i64,
    limit: u32,
) -> Result<PendingRows<'static, ExportEntry>, DbError> {
    entries_later(tx, source, "first_usn", after_first_usn, limit)
}

/// Entries whose last change came after this USN, in the order of these changes. Requested together
/// with the next statement.
pub(crate) fn changed_later(
    tx: &mut Tx<'_>,
    source: SourceKey,
    after_change_usn: i64,
    limit: u32,
) -> Result<PendingRows<'static, ExportEntry>, DbError> {
    entries_later(tx, source, "change_usn", after_change_usn, limit)
}

fn entries_later(
    tx: &mut Tx<'_>,
    source: SourceKey,
    usn: &str,
    after: i64,
    limit: u32,
) -> Result<PendingRows<'static, ExportEntry>, DbError> {
    tx.query_later(
        &format!(
            "select id, post_id, first_usn, usn, change_usn, gone, arrival_id, arrived_at_ms, left_at_ms
             from entry where source_id = $1 and instance_id = $4 and {usn} > $2
             order by {usn} limit $3"
        ),
        &[&source.id(), &after, &limit, &source.instance_id()],
        |row| {
            Ok(ExportEntry {
                id: row.i64("id")?,
                post_id: row.i64("post_id")?,
                first_usn: row.i64("first_usn")?,
                usn: row.i64("usn")?,
                change_usn: row.opt_i64("change_usn")?,
                gone: row.bool("gone")?,
                is_history: row.opt_i64("arrival_id")?.is_some(),
                arrived_at_ms: row.i64("arrived_at_ms")?,
                left_at_ms: row.opt_i64("left_at_ms")?,
            })
        },
    )
}

/// Entries of a source with their posts, in the same order.
pub(crate) fn with_posts(
    tx: &mut Tx<'_>,
    source: SourceKey,
    entries: &[ExportEntry],
) -> Result<Vec<ExportRow>, StoreError> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<i64> = entries.iter().map(|entry| entry.post_id).collect();
    let scope = source_scope(tx, source)?;
    let readable = ReadableScopes::of_scope(scope);
    let posts = posts(tx, &ids, source.instance_id(), readable)?;
    let with_post = |entry: &ExportEntry| {
        let post = posts
            .get(&entry.post_id)
            .cloned()
            .ok_or_else(|| StoreError::unreadable("an entry", &"its post is missing"))?;
        Ok(ExportRow {
            id: from_sql(entry.id)?,
            post_id: from_sql(entry.post_id)?,
            first_usn: entry.first_usn,
            usn: entry.usn,
            arrived_at_ms: entry.arrived_at_ms,
            left_at_ms: entry.left_at_ms,
            post,
        })
    };
    entries.iter().map(with_post).collect()
}

/// Posts as they were shown to these scopes. A post of which the scopes were shown nothing is
/// returned as if it were deleted.
fn posts(
    tx: &mut Tx<'_>,
    ids: &[i64],
    instance_id: i64,
    readable: ReadableScopes,
) -> Result<HashMap<i64, ExportPost>, DbError> {
    let own = readable.own().unwrap_or(ContentScope::WORLD);
    let ids = Column::i64(ids.iter().copied());
    let found = tx.query(
        "select p.id, p.upstream_id, p.uri, p.url, p.created_at_ms, p.edited_at_ms, p.deleted_at_ms,
             p.read_at_ms, p.visibility, p.claimed, p.raw, p.content_scope, p.boost_of_upstream_id,
             (select a.acct_id from account a
              where a.id = p.account_id and a.instance_id = p.instance_id) as author_id,
             c.raw as own_raw, c.edited_at_ms as own_edited_at_ms, c.read_at_ms as own_read_at_ms,
             c.visibility as own_visibility
         from post p left join scoped_content c
             on c.post_id = p.id and c.instance_id = p.instance_id and c.scope = $3
         where p.id {in $1} and p.instance_id = $2",
        &[&ids, &instance_id, &own.sql()],
        |row| from_row(row, readable),
    )?;
    Ok(found.into_iter().collect())
}

fn from_row(row: &Row<'_>, readable: ReadableScopes) -> Result<(i64, ExportPost), DbError> {
    let scope = ContentScope::from_sql(row.i64("content_scope")?);
    let raw = row.opt_text("raw")?;
    let is_alive = raw.is_some();
    let mut post = ExportPost {
        upstream_id: row.text("upstream_id")?,
        uri: row.opt_text("uri")?,
        url: row.opt_text("url")?,
        account: row.opt_i64("author_id")?.map(from_sql).transpose()?,
        boost_of: row.opt_text("boost_of_upstream_id")?,
        created_at_ms: row.opt_i64("created_at_ms")?,
        edited_at_ms: row.opt_i64("edited_at_ms")?,
        deleted_at_ms: row.opt_i64("deleted_at_ms")?,
        fetched_at_ms: row.i64("read_at_ms")?,
        visibility: Visibility::named_or_narrowest(row.str("visibility")?),
        claimed: row.bool("claimed")?,
        raw: raw.filter(|_| readable.has(scope)),
    };
    if is_alive && let Some(own) = row.opt_text("own_raw")? {
        let edited_at_ms = row.opt_i64("own_edited_at_ms")?;
        if post.raw.is_none() || post.edited_at_ms <= edited_at_ms {
            post.edited_at_ms = edited_at_ms;
            post.fetched_at_ms = row.i64("own_read_at_ms")?;
            post.visibility = Visibility::named_or_narrowest(row.str("own_visibility")?);
            post.raw = Some(own);
        }
    }
    Ok((row.i64("id")?, post))
}
