//! Earlier versions of posts that only the edit histories of their servers have, because the posts
//! were edited before any source showed them.
//!
//! A history is requested in the same way as the content to which it belongs, and is stored for the
//! same readers.

use std::collections::HashMap;

use driftline_core::{
    edit_history::EarlierVersion, names::audience::Audience, upstream_id::UpstreamId,
};
use driftline_db::{Column, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    posts::{
        content_scope::{ContentScope, ReadableScopes},
        post,
        timeline::visible::seen_since_each,
    },
    text::without_nul,
    viewer::{Owner, Viewer},
};

/// The people to whom a server shows a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryReaders {
    /// The owner of the source for which it is requested, with the source's token or without one.
    pub owner: Owner,
    /// The audience of that source.
    pub audience: Audience,
}

impl HistoryReaders {
    /// Anybody: the history is requested without a token.
    pub const WORLD: HistoryReaders = HistoryReaders {
        owner: Owner::Operator,
        audience: Audience::Public,
    };

    fn scope(self) -> ContentScope {
        ContentScope::of_source(self.owner, self.audience, true)
    }

    /// One of these readers.
    fn viewer(self) -> Viewer {
        match (self.audience, self.owner) {
            (Audience::Public, _) => Viewer::Anonymous,
            (Audience::Private, Owner::Account(id)) => Viewer::Account(id),
            (Audience::Private | Audience::Members, _) => Viewer::Operator,
        }
    }
}

/// Those of these posts of an instance whose stored versions do not reach back to their creation,
/// in the given order. Posts whose content was not shown to exactly these readers are left out.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn lacking(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[UpstreamId],
    readers: HistoryReaders,
) -> Result<Vec<UpstreamId>, StoreError> {
    let known = known(tx, instance, posts, readers)?;
    let lacking = posts.iter().filter(|id| known.contains_key(id.as_str()));
    Ok(lacking.cloned().collect())
}

/// Stores the versions of a post that are older than all versions that its readers have. The first
/// one is the post as it was created. Must be written below [`super::instance::root`]. Returns the
/// number of new versions.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn store(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    (post, versions): (&UpstreamId, &[EarlierVersion]),
    readers: HistoryReaders,
    now_ms: i64,
) -> Result<usize, StoreError> {
    let scope = readers.scope();
    let known = known(tx, instance, std::slice::from_ref(post), readers)?;
    let Some(known) = known.get(post.as_str()) else {
        return Ok(0);
    };
    let is_older = |version: &&EarlierVersion| version.created_at_ms < known.oldest_ms;
    let older: Vec<&EarlierVersion> = versions.iter().take_while(is_older).collect();
    let raws: Vec<_> = older.iter().map(|of| without_nul(&of.raw)).collect();
    let created = older.iter().map(|of| Some(of.created_at_ms));
    // The first one was made by no edit.
    let edited = created
        .enumerate()
        .map(|(n, at_ms)| at_ms.filter(|_| n > 0));
    tx.execute_many_later(
        "insert into post_history (post_id, instance_id, seq, kind, at_ms, edited_at_ms, content_scope, raw)
         select $1, $2, r.seq, 'fetched', r.at_ms, r.edited_at_ms, $3, r.raw
         from {rows as r(seq, at_ms, edited_at_ms, raw)}",
        &[&known.post_id, &sql(instance), &scope.sql()],
        &[
            Column::i64((known.last_seq + 1..).take(older.len())),
            Column::i64(older.iter().map(|of| of.ended_at_ms.min(now_ms))),
            Column::i64(edited),
            Column::text(raws.iter().map(|raw| &**raw)),
        ],
    )?;
    Ok(older.len())
}

/// A post whose stored versions do not reach back to its creation.
struct KnownPost {
    post_id: i64,
    /// The time at which the oldest version that its readers have was written, Unix ms.
    oldest_ms: i64,
    last_seq: i64,
}

/// Posts that are not stored back to their creation, by their upstream IDs.
fn known(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[UpstreamId],
    readers: HistoryReaders,
) -> Result<HashMap<String, KnownPost>, StoreError> {
    let scope = readers.scope();
    let ids: Vec<&str> = posts.iter().map(UpstreamId::as_str).collect();
    let mut stored = post::stored(tx, (sql(instance), scope), &ids)?.posts;
    stored.retain(|_, post| !post.is_gone() && (post.has_scoped || post.scope == scope));
    if stored.is_empty() {
        return Ok(HashMap::new());
    }
    let versions = tx.query(
        "select post_id, seq, kind, at_ms, edited_at_ms, content_scope from post_history
         where post_id {in $1} and instance_id = $2",
        &[
            &Column::i64(stored.values().map(|post| post.id)),
            &sql(instance),
        ],
        |row| {
            Ok(VersionRow {
                post_id: row.i64("post_id")?,
                seq: row.i64("seq")?,
                is_deleted: row.str("kind")? == "deletion",
                noticed_at_ms: match row.str("kind")? {
                    "fetched" => None,
                    _ => Some(row.i64("at_ms")?),
                },
                edited_at_ms: row.opt_i64("edited_at_ms")?,
                scope: ContentScope::from_sql(row.i64("content_scope")?),
            })
        },
    )?;
    let readable = ReadableScopes::of_scope(scope);
    let ids: Vec<LocalId> = stored
        .values()
        .map(|post| from_sql(post.id))
        .collect::<Result<_, _>>()?;
    let seen_since = seen_since_each(tx, instance, &ids, readers.viewer())?;
    let mut known = HashMap::new();
    for (upstream_id, post) in stored {
        let of_post = || versions.iter().filter(|of| of.post_id == post.id);
        let since_ms = seen_since.get(&from_sql(post.id)?).copied();
        let shown = of_post().filter(|of| {
            let is_seen = of.noticed_at_ms.is_none_or(|at_ms| Some(at_ms) > since_ms);
            !of.is_deleted && readable.has(of.scope) && is_seen
        });
        let shown = shown.map(|of| of.edited_at_ms);
        // `None` stands for the post as it was created, and is the smallest.
        if let Some(oldest_ms) = shown.chain([post.edited_at_ms]).min().flatten() {
            let last_seq = of_post().map(|of| of.seq).max();
            let known_post = KnownPost {
                post_id: post.id,
                oldest_ms,
                last_seq: last_seq.unwrap_or_default(),
            };
            known.insert(upstream_id, known_post);
        }
    }
    Ok(known)
}

struct VersionRow {
    post_id: i64,
    seq: i64,
    is_deleted: bool,
    /// The time at which its end was noticed, in Unix ms; `None` for a fetched version.
    noticed_at_ms: Option<i64>,
    edited_at_ms: Option<i64>,
    scope: ContentScope,
}
