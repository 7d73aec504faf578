//! Earlier versions of posts.

use driftline_db::{Column, DbError, Tx};
use serde::{Deserialize, Serialize};

use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
    posts::{
        content_scope::{ContentScope, ReadableScopes},
        edited_post, instance,
        timeline::{PostKey, visible::seen_since},
    },
    viewer::Viewer,
};

/// A version of a post that is no longer shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Counts from 1, for each viewer.
    pub seq: i64,
    /// The cause of its end.
    pub ended_by: EndedBy,
    /// The time at which its end was noticed, in Unix ms.
    pub at_ms: i64,
    /// True if the server's edit history showed it ([`super::fetched_history`]), and no answer
    /// while it was current. Then `raw` is Mastodon's `StatusEdit`, which has no visibility.
    pub is_fetched: bool,
    /// The post as it was, JSON.
    pub raw: String,
}

/// The cause of the end of a version of a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// An edit.
    Edit,
    /// Its deletion.
    Deletion,
}

/// A post's earlier versions that were shown to a viewer, the oldest first. Versions that had ended
/// when the first source that the viewer may read got the post are left out, because only hidden
/// sources can have shown them.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn versions(
    tx: &mut Tx<'_>,
    post: LocalId,
    viewer: Viewer,
) -> Result<Vec<Version>, StoreError> {
    let Some(instance) = instance::of_post(tx, post)? else {
        return Ok(Vec::new());
    };
    let Some(since_ms) = seen_since(tx, post, viewer)? else {
        return Ok(Vec::new());
    };
    let readable = ReadableScopes::of(viewer);
    // A version that ends when the post arrives was replaced by the content that came with the
    // arrival. Fetched versions were shown to their whole scope.
    let found = tx.query(
        "select seq, kind, at_ms, edited_at_ms, content_scope, raw from post_history
         where post_id = $1 and instance_id = $2 and (at_ms > $3 or kind = 'fetched') order by seq",
        &[&sql(post), &sql(instance), &since_ms],
        |row| {
            let scope = ContentScope::from_sql(row.i64("content_scope")?);
            let (ended_by, is_fetched) = match row.str("kind")? {
                "edit" => (EndedBy::Edit, false),
                "fetched" => (EndedBy::Edit, true),
                "deletion" => (EndedBy::Deletion, false),
                _ => return Err(DbError::invalid("a version of an unknown kind")),
            };
            let version = Version {
                seq: row.i64("seq")?,
                ended_by,
                at_ms: row.i64("at_ms")?,
                is_fetched,
                raw: row.text("raw")?,
            };
            let stored = StoredVersion {
                version,
                edited_at_ms: row.opt_i64("edited_at_ms")?,
                scope,
            };
            Ok(readable.has(scope).then_some(stored))
        },
    )?;
    let mut found = in_order(found.into_iter().flatten().collect());
    for (seq, version) in (1..).zip(&mut found) {
        version.seq = seq;
    }
    Ok(found)
}

/// A version with the columns that decide to whom it is shown.
struct StoredVersion {
    version: Version,
    edited_at_ms: Option<i64>,
    scope: ContentScope,
}

/// Puts fetched versions, which came later than their successors, at their own times among the
/// others, which stay in the order of their ends. A fetched version is left out if it was also
/// noticed, or fetched for the viewer's own scope.
fn in_order(stored: Vec<StoredVersion>) -> Vec<Version> {
    let (mut fetched, mut shown): (Vec<_>, Vec<_>) = stored
        .into_iter()
        .partition(|stored| stored.version.is_fetched);
    fetched.sort_by_key(|stored| (stored.edited_at_ms, stored.scope == ContentScope::WORLD));
    for new in fetched {
        let is_same = |other: &StoredVersion| {
            other.edited_at_ms == new.edited_at_ms
                && other.version.ended_by == EndedBy::Edit
                && (!other.version.is_fetched || other.scope != new.scope)
        };
        if !shown.iter().any(is_same) {
            let later = |other: &StoredVersion| other.edited_at_ms > new.edited_at_ms;
            let at = shown.iter().position(later).unwrap_or(shown.len());
            shown.insert(at, new);
        }
    }
    shown.into_iter().map(|stored| stored.version).collect()
}

/// The oldest version that an edit of a post ended, as a viewer was shown it, as JSON: of all
/// versions from `since_seq` on, or the last one. `None` if there is none, or the viewer was not
/// shown it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn before_edit(
    tx: &mut Tx<'_>,
    post: PostKey,
    since_seq: Option<i64>,
    viewer: Viewer,
) -> Result<Option<String>, StoreError> {
    let Some(since_ms) = seen_since(tx, post.post, viewer)? else {
        return Ok(None);
    };
    let order = match since_seq {
        Some(_) => "seq",
        None => "seq desc",
    };
    let readable = ReadableScopes::of(viewer);
    let versions = tx.query(
        &format!(
            "select content_scope, raw from post_history
             where post_id = $1 and instance_id = $2 and kind = 'edit' and at_ms > $3 and seq >= $4
             order by {order}"
        ),
        &[
            &sql(post.post),
            &sql(post.instance),
            &since_ms,
            &since_seq.unwrap_or_default(),
        ],
        |row| {
            let scope = ContentScope::from_sql(row.i64("content_scope")?);
            Ok((readable.has(scope), row.text("raw")?))
        },
    )?;
    let mut shown = versions.into_iter().filter(|(is_shown, _)| *is_shown);
    Ok(shown.next().map(|(_, raw)| raw))
}

/// Copies the present versions of posts into their history. The instance must be held.
pub(crate) fn keep(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[i64],
    ended_by: EndedBy,
    at_ms: i64,
) -> Result<(), DbError> {
    let kind = match ended_by {
        EndedBy::Edit => "edit",
        EndedBy::Deletion => "deletion",
    };
    tx.execute_many_later(
        "insert into post_history (post_id, instance_id, seq, kind, at_ms, edited_at_ms, content_scope, raw)
         select p.id, p.instance_id, coalesce((select max(h.seq) from post_history h
             where h.post_id = p.id and h.instance_id = $3), 0) + 1, $1, $2, p.edited_at_ms,
             p.content_scope, p.raw
         from {rows as r(id)} join post p on p.id = r.id
         where p.instance_id = $3 and p.raw is not null",
        &[&kind, &at_ms, &instance_id],
        &[Column::i64(posts.iter().copied())],
    )?;
    match ended_by {
        EndedBy::Edit => edited_post::add(tx, instance_id, posts.iter().copied(), at_ms),
        EndedBy::Deletion => Ok(()),
    }
}

/// Erases the history of posts, including their counts over time.
pub(crate) fn erase(tx: &mut Tx<'_>, instance_id: i64, posts: &[i64]) -> Result<(), DbError> {
    if posts.is_empty() {
        return Ok(());
    }
    for sql in [
        "delete from post_history where post_id {in $1} and instance_id = $2",
        "delete from scoped_content where post_id {in $1} and instance_id = $2",
        "delete from count_history where post_id {in $1} and instance_id = $2",
    ] {
        tx.execute_later(sql, &[&Column::i64(posts.iter().copied()), &instance_id])?;
    }
    Ok(())
}
