//! Posts, which the sources of an instance share.

use std::{borrow::Cow, collections::HashMap};

use driftline_core::post::{Post, PostKind, Visibility};
use driftline_db::{Column, DbError, Row, Tx};

use crate::{posts::alias, text::without_nul};

/// A stored post, as far as it decides whether an answer is news.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) id: i64,
    pub(crate) upstream_id: String,
    pub(crate) edited_at_ms: Option<i64>,
    /// When the newest answer that showed the stored version was requested, Unix ms.
    pub(crate) read_at_ms: i64,
    pub(crate) content_hash: i64,
    pub(crate) deleted_at_ms: Option<i64>,
    pub(crate) visibility: Visibility,
    pub(crate) listed: bool,
    /// How often it has returned after a deletion.
    pub(crate) returns: i64,
    pub(crate) kind: PostKind,
}

impl Known {
    /// Whether it is deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.deleted_at_ms.is_some()
    }
}

/// The posts of those upstream IDs that are stored, by upstream ID. Their IDs come first, since a
/// distributed database joins no tables of different keys.
pub(crate) fn known(
    tx: &mut Tx<'_>,
    instance_id: i64,
    upstream_ids: &[&str],
) -> Result<HashMap<String, Known>, DbError> {
    let ids = tx.query_each(
        "select post_id from upstream_post where upstream_id = {row 1} and instance_id = $1",
        &[&instance_id],
        &[Column::text(upstream_ids.iter().copied())],
        |row| row.i64("post_id"),
    )?;
    by_upstream_id(tx, &ids)
}

/// [`known`] after deferred writes that hold the clock, with the last ID that the clock gave, in the
/// same round trip to the database. Fails when there are no upstream IDs.
pub(crate) fn known_by_clock(
    tx: &mut Tx<'_>,
    instance_id: i64,
    upstream_ids: &[&str],
) -> Result<(i64, HashMap<String, Known>), DbError> {
    let mut last_id = None;
    let ids = tx.query_each(
        "select c.last_id, s.post_id from local_clock c
         left join upstream_post s on s.upstream_id = {row 1} and s.instance_id = $1
         where c.one = 1",
        &[&instance_id],
        &[Column::text(upstream_ids.iter().copied())],
        |row| {
            last_id = Some(row.i64("last_id")?);
            row.opt_i64("post_id")
        },
    )?;
    let last_id = last_id.ok_or_else(|| DbError::invalid("a store without its clock"))?;
    let ids: Vec<i64> = ids.into_iter().flatten().collect();
    Ok((last_id, by_upstream_id(tx, &ids)?))
}

fn by_upstream_id(tx: &mut Tx<'_>, ids: &[i64]) -> Result<HashMap<String, Known>, DbError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let posts = by_ids(tx, ids)?.into_values();
    Ok(posts.map(|post| (post.upstream_id.clone(), post)).collect())
}

/// Stored posts by their IDs here.
pub(crate) fn by_ids(tx: &mut Tx<'_>, ids: &[i64]) -> Result<HashMap<i64, Known>, DbError> {
    let found = tx.query(
        &format!(
            "select {COLUMNS} from post p left join freshness f on f.post_id = p.id
             where p.id {{in $1}}"
        ),
        &[&Column::i64(ids.iter().copied())],
        from_row,
    )?;
    Ok(found.into_iter().map(|post| (post.id, post)).collect())
}

pub(crate) fn from_row(row: &Row<'_>) -> Result<Known, DbError> {
    Ok(Known {
        id: row.i64("id")?,
        upstream_id: row.text("upstream_id")?,
        edited_at_ms: row.opt_i64("edited_at_ms")?,
        read_at_ms: row.i64("read_at_ms")?,
        content_hash: row.i64("content_hash")?,
        deleted_at_ms: row.opt_i64("deleted_at_ms")?,
        visibility: Visibility::named_or_narrowest(row.str("visibility")?),
        listed: row.bool("listed")?,
        returns: row.i64("returns")?,
        kind: PostKind::of(row.bool("is_boost")?),
    })
}

/// The columns that [`from_row`] reads, of `post p` and `freshness f`.
pub(crate) const COLUMNS: &str = "p.id, p.upstream_id, p.edited_at_ms,
    {greatest}(p.read_at_ms, coalesce(f.refreshed_at_ms, p.read_at_ms)) as read_at_ms,
    p.content_hash, p.deleted_at_ms, p.visibility, p.listed, p.returns,
    p.boost_of_upstream_id is not null as is_boost";

/// A version of a post to write, as an answer showed it.
pub(crate) struct PostVersion<'a> {
    pub(crate) id: i64,
    pub(crate) post: &'a Post,
    pub(crate) listed: bool,
    /// When the answer was requested, Unix ms.
    pub(crate) read_at_ms: i64,
}

/// A version's texts, without NUL characters.
struct Texts<'a> {
    upstream_id: Cow<'a, str>,
    uri: Option<Cow<'a, str>>,
    url: Option<Cow<'a, str>>,
    boost_of: Option<Cow<'a, str>>,
    raw: Cow<'a, str>,
}

impl<'a> Texts<'a> {
    fn of(version: &PostVersion<'a>) -> Texts<'a> {
        let post = version.post;
        let boost_of = post.boost_of.as_ref();
        Texts {
            upstream_id: without_nul(post.id.as_str()),
            uri: post.uri.as_deref().map(without_nul),
            url: post.url.as_deref().map(without_nul),
            boost_of: boost_of.map(|boosted| without_nul(boosted.id.as_str())),
            raw: without_nul(&post.raw),
        }
    }
}

/// Stores posts that are new. The clock must be held.
///
/// What all rows share is sent as columns too: plain `values` are what SQLite inserts fastest.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    instance_id: i64,
    source_id: i64,
    new: &[PostVersion<'_>],
    accounts: &HashMap<String, i64>,
) -> Result<(), DbError> {
    let texts: Vec<Texts<'_>> = new.iter().map(Texts::of).collect();
    let posts = || new.iter().map(|version| version.post);
    let account = |post: &Post| {
        accounts
            .get(&*without_nul(post.author.id.as_str()))
            .copied()
    };
    tx.execute_many_later(
        "insert into post (id, instance_id, upstream_id, uri, url, account_id, first_source_id,
             created_at_ms, edited_at_ms, read_at_ms, visibility, boost_of_upstream_id,
             content_hash, listed, raw) {rows}",
        &[],
        &[
            Column::i64(new.iter().map(|version| version.id)),
            Column::i64(new.iter().map(|_| instance_id)),
            Column::text(texts.iter().map(|t| &*t.upstream_id)),
            Column::text(texts.iter().map(|t| t.uri.as_deref())),
            Column::text(texts.iter().map(|t| t.url.as_deref())),
            Column::i64(posts().map(account)),
            Column::i64(new.iter().map(|_| source_id)),
            Column::i64(posts().map(|post| post.created_at_ms)),
            Column::i64(posts().map(|post| post.edited_at_ms)),
            Column::i64(new.iter().map(|version| version.read_at_ms)),
            Column::text(posts().map(|post| post.visibility.name())),
            Column::text(texts.iter().map(|t| t.boost_of.as_deref())),
            Column::i64(posts().map(|post| post.hashes.content)),
            Column::bool(new.iter().map(|version| version.listed)),
            Column::text(texts.iter().map(|t| &*t.raw)),
        ],
    )?;
    tx.execute_many_later(
        "insert into upstream_post (upstream_id, instance_id, post_id) {rows}",
        &[],
        &[
            Column::text(texts.iter().map(|t| &*t.upstream_id)),
            Column::i64(new.iter().map(|_| instance_id)),
            Column::i64(new.iter().map(|version| version.id)),
        ],
    )
}

/// Replaces stored versions by newer ones, which are not deleted. The clock must be held.
pub(crate) fn replace(tx: &mut Tx<'_>, versions: &[PostVersion<'_>]) -> Result<(), DbError> {
    let texts: Vec<Texts<'_>> = versions.iter().map(Texts::of).collect();
    let posts = || versions.iter().map(|version| version.post);
    tx.execute_many_later(
        "update post set uri = r.uri, url = r.url, edited_at_ms = r.edited_at_ms,
             read_at_ms = r.read_at_ms, visibility = r.visibility, content_hash = r.content_hash,
             deleted_at_ms = null, listed = r.listed, raw = r.raw
         from {rows as r(id, uri, url, edited_at_ms, read_at_ms, visibility, content_hash, listed,
             raw)}
         where post.id = r.id",
        &[],
        &[
            Column::i64(versions.iter().map(|version| version.id)),
            Column::text(texts.iter().map(|t| t.uri.as_deref())),
            Column::text(texts.iter().map(|t| t.url.as_deref())),
            Column::i64(posts().map(|post| post.edited_at_ms)),
            Column::i64(versions.iter().map(|version| version.read_at_ms)),
            Column::text(posts().map(|post| post.visibility.name())),
            Column::i64(posts().map(|post| post.hashes.content)),
            Column::bool(versions.iter().map(|version| version.listed)),
            Column::text(texts.iter().map(|t| &*t.raw)),
        ],
    )
}

/// Lists posts in the public timeline at other IDs than their own: see [`crate::mirror::backdate`].
/// With `returned`, because they have returned after their deletion, and readers have passed the old IDs:
/// every source that has one of them then moves its entry when it is notified. The clock, which gave
/// the IDs, must be held.
pub(crate) fn list_at(
    tx: &mut Tx<'_>,
    posts: &[(i64, i64)],
    returned: bool,
) -> Result<(), DbError> {
    tx.execute_many_later(
        "update post set public_id = r.public_id, returns = returns + $1
         from {rows as r(id, public_id)} where post.id = r.id",
        &[&i64::from(returned)],
        &[
            Column::i64(posts.iter().map(|(id, _)| *id)),
            Column::i64(posts.iter().map(|(_, public_id)| *public_id)),
        ],
    )?;
    let aliases: Vec<_> = posts.iter().map(|(id, public)| (*public, *id)).collect();
    alias::add(tx, &aliases)
}
