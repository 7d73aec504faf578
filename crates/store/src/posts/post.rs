//! Posts, which the sources of an instance share.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use driftline_core::post::{Post, PostKind, Visibility};
use driftline_db::{Column, DbError, PendingRows, Row, Tx};

use crate::{
    new_ids::TakenIds,
    posts::{
        account, alias,
        content_scope::ContentScope,
        object_uri::{self, NamedKind},
    },
    text::without_nul,
};

/// The facts about a stored post that decide if an answer is new.
#[derive(Clone, Debug)]
pub(crate) struct KnownPost {
    pub(crate) id: i64,
    pub(crate) upstream_id: String,
    pub(crate) edited_at_ms: Option<i64>,
    /// The time at which the newest answer that showed the stored version was requested, in Unix
    /// ms.
    pub(crate) read_at_ms: i64,
    pub(crate) content_hash: i64,
    pub(crate) deleted_at_ms: Option<i64>,
    pub(crate) visibility: Visibility,
    pub(crate) listed: bool,
    /// True if a source that everybody may read has it.
    pub(crate) in_public: bool,
    /// True if its server only claims to know it ([`Post::is_claimed`]).
    pub(crate) claimed: bool,
    /// True if its ID in the public timeline belongs to a post of history.
    pub(crate) from_history: bool,
    /// The number of its returns after a deletion.
    pub(crate) returns: i64,
    pub(crate) kind: PostKind,
    /// The scope of the post's own content.
    pub(crate) scope: ContentScope,
    /// True if the scope for which it was read has content of its own: then the version is that
    /// content.
    pub(crate) has_scoped: bool,
    /// The post's own content, if it belongs to another scope than the one for which it was read,
    /// and that one has no content of its own.
    pub(crate) other_raw: Option<String>,
}

impl KnownPost {
    /// True if it is deleted.
    pub(crate) fn is_gone(&self) -> bool {
        self.deleted_at_ms.is_some()
    }

    /// True if an answer shows a different version.
    pub(crate) fn differs_from(&self, post: &Post) -> bool {
        self.content_hash != post.hashes.content
    }

    /// True if it is the version about which an entry's library was notified.
    pub(crate) fn is_version(&self, content_hash: i64) -> bool {
        self.content_hash == content_hash
    }
}

/// The stored posts and references of some upstream IDs, by upstream ID.
#[derive(Default)]
pub(crate) struct Stored {
    /// Posts.
    pub(crate) posts: HashMap<String, KnownPost>,
    /// The local IDs by which public posts refer to them, if these are not the posts' own.
    pub(crate) references: HashMap<String, i64>,
}

/// The stored posts with these upstream IDs, by upstream ID.
pub(crate) fn known(
    tx: &mut Tx<'_>,
    instance_id: i64,
    upstream_ids: &[&str],
) -> Result<HashMap<String, KnownPost>, DbError> {
    Ok(stored(tx, (instance_id, ContentScope::WORLD), upstream_ids)?.posts)
}

/// Reads the posts and references of these upstream IDs, for a scope.
pub(crate) fn stored(
    tx: &mut Tx<'_>,
    of: (i64, ContentScope),
    upstream_ids: &[&str],
) -> Result<Stored, DbError> {
    let rows = stored_later(tx, of, upstream_ids)?;
    read_stored(tx, rows)
}

/// Posts and references that were requested: for [`read_stored`].
pub(crate) struct PendingStored(PendingRows<'static, UpstreamRow>);

/// The stored posts and references of these upstream IDs. Requested together with the next
/// statement. The posts come along, so that a write that holds the instance waits for one answer
/// instead of two.
pub(crate) fn stored_later(
    tx: &mut Tx<'_>,
    (instance_id, scope): (i64, ContentScope),
    upstream_ids: &[&str],
) -> Result<PendingStored, DbError> {
    let rows = tx.query_each_later(
        &format!(
            "select u.upstream_id as named_id, u.reference_id, {} from upstream_post u
             left join post p on p.id = u.post_id and p.instance_id = $1
             left join freshness f on f.post_id = u.post_id and f.instance_id = $1
             left join scoped_content c on c.post_id = u.post_id and c.instance_id = $1 and c.scope = $2
                 and not {LATER_EDIT}
             where u.upstream_id = {{row 1}} and u.instance_id = $1",
            scoped_columns("$2")
        ),
        &[&instance_id, &scope.sql()],
        &[Column::text(upstream_ids.iter().copied())],
        upstream_row,
    )?;
    Ok(PendingStored(rows))
}

/// An upstream ID, the ID by which others refer to it, and its post, if there is one.
type UpstreamRow = (String, Option<i64>, Option<KnownPost>);

fn upstream_row(row: &Row<'_>) -> Result<UpstreamRow, DbError> {
    let has_post = row.opt_i64("id")?.is_some();
    Ok((
        row.text("named_id")?,
        row.opt_i64("reference_id")?,
        has_post.then(|| from_row(row)).transpose()?,
    ))
}

/// Reads the answer to [`stored_later`].
pub(crate) fn read_stored(tx: &mut Tx<'_>, pending: PendingStored) -> Result<Stored, DbError> {
    let mut stored = Stored::default();
    for (upstream_id, reference_id, post) in tx.rows(pending.0)? {
        if let Some(id) = reference_id {
            stored.references.insert(upstream_id, id);
        }
        if let Some(post) = post {
            stored.posts.insert(post.upstream_id.clone(), post);
        }
    }
    Ok(stored)
}

/// Stored posts of an instance by their IDs here, for a scope.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    (instance_id, scope): (i64, ContentScope),
    ids: &[i64],
) -> Result<HashMap<i64, KnownPost>, DbError> {
    let found = tx.query(
        &format!(
            "select {} from post p
             left join freshness f on f.post_id = p.id and f.instance_id = p.instance_id
             left join scoped_content c on c.post_id = p.id and c.instance_id = p.instance_id and c.scope = $3
                 and not {LATER_EDIT}
             where p.id {{in $1}} and p.instance_id = $2",
            scoped_columns("$3")
        ),
        &[&Column::i64(ids.iter().copied()), &instance_id, &scope.sql()],
        from_row,
    )?;
    Ok(found.into_iter().map(|post| (post.id, post)).collect())
}

pub(crate) fn from_row(row: &Row<'_>) -> Result<KnownPost, DbError> {
    Ok(KnownPost {
        id: row.i64("id")?,
        upstream_id: row.text("upstream_id")?,
        edited_at_ms: row.opt_i64("edited_at_ms")?,
        read_at_ms: row.i64("read_at_ms")?,
        content_hash: row.i64("content_hash")?,
        deleted_at_ms: row.opt_i64("deleted_at_ms")?,
        visibility: Visibility::named_or_narrowest(row.str("visibility")?),
        listed: row.bool("listed")?,
        in_public: row.bool("in_public")?,
        claimed: row.bool("claimed")?,
        from_history: row.bool("from_history")?,
        returns: row.i64("returns")?,
        kind: PostKind::from_is_boost(row.bool("is_boost")?),
        scope: ContentScope::from_sql(row.i64("content_scope")?),
        has_scoped: row.bool("has_scoped")?,
        other_raw: row.opt_text("other_raw")?,
    })
}

/// The columns that [`from_row`] reads, of `post p` and `freshness f`, with the post's own content.
pub(crate) const COLUMNS: &str = "p.id, p.upstream_id, p.edited_at_ms,
    {greatest}(p.read_at_ms, coalesce(f.refreshed_at_ms, p.read_at_ms)) as read_at_ms,
    p.content_hash, p.deleted_at_ms, p.visibility, p.listed, p.in_public, p.claimed,
    p.from_history, p.returns, p.boost_of_upstream_id is not null as is_boost, p.content_scope, 1 = 0 as has_scoped,
    cast(null as text) as other_raw";

/// The columns that [`from_row`] reads, of `post p`, `freshness f` and `scoped_content c`, with the
/// content of a scope, which this parameter names. [`LATER_EDIT`]s take precedence.
fn scoped_columns(scope: &str) -> String {
    SCOPED_COLUMNS.replace("{scope}", scope)
}

/// True if all readers of `scoped_content c` were shown a later edit of its `post p`.
const LATER_EDIT: &str =
    "(p.content_scope in (0, -1) and coalesce(p.edited_at_ms, 0) > coalesce(c.edited_at_ms, 0))";

const SCOPED_COLUMNS: &str = "p.id, p.upstream_id,
    case when c.post_id is null then p.edited_at_ms else c.edited_at_ms end as edited_at_ms,
    case when c.post_id is null then {greatest}(p.read_at_ms, coalesce(f.refreshed_at_ms, p.read_at_ms))
        else c.read_at_ms end as read_at_ms,
    coalesce(c.content_hash, p.content_hash) as content_hash, p.deleted_at_ms,
    coalesce(c.visibility, p.visibility) as visibility, p.listed, p.in_public,
    p.claimed, p.from_history, p.returns, p.boost_of_upstream_id is not null as is_boost, p.content_scope,
    c.post_id is not null as has_scoped,
    case when c.post_id is null and p.content_scope <> {scope} then p.raw end as other_raw";

/// A version of a post to write, as an answer showed it.
pub(crate) struct PostVersion<'a> {
    pub(crate) id: i64,
    pub(crate) post: &'a Post,
    pub(crate) listed: bool,
    /// True if a source that everybody may read has it.
    pub(crate) in_public: bool,
    /// True if a new post came as history.
    pub(crate) from_history: bool,
    /// The time at which the answer was requested, in Unix ms.
    pub(crate) read_at_ms: i64,
    /// The scope of the answer.
    pub(crate) scope: ContentScope,
}

/// A version's texts, without NUL characters.
struct Texts<'a> {
    upstream_id: Cow<'a, str>,
    uri: Option<Cow<'a, str>>,
    url: Option<Cow<'a, str>>,
    boost_of: Option<Cow<'a, str>>,
    reply_to: Option<Cow<'a, str>>,
    raw: Cow<'a, str>,
}

impl<'a> Texts<'a> {
    fn of(version: &PostVersion<'a>) -> Texts<'a> {
        let post = version.post;
        let boost_of = post.boost_of.as_ref();
        let reply_to = post.reply_to.as_ref();
        Texts {
            upstream_id: without_nul(post.id.as_str()),
            uri: post.uri.as_deref().map(without_nul),
            url: post.url.as_deref().map(without_nul),
            boost_of: boost_of.map(|boosted| without_nul(boosted.id.as_str())),
            reply_to: reply_to.map(|answered| without_nul(answered.as_str())),
            raw: without_nul(&post.raw),
        }
    }
}

/// Stores new posts, whose IDs may come from `ids`. The instance must be held.
///
/// Values that all rows share are sent as columns too, because SQLite inserts plain `values`
/// fastest.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    (instance_id, source_id): (i64, i64),
    new: &[PostVersion<'_>],
    accounts: &account::StoredIds,
    ids: &TakenIds,
) -> Result<(), DbError> {
    let texts: Vec<Texts<'_>> = new.iter().map(Texts::of).collect();
    let posts = || new.iter().map(|version| version.post);
    let account = |post: &Post| Some(accounts.of(&post.author)?.id);
    tx.execute_many_later(
        "insert into post (id, instance_id, upstream_id, uri, url, account_id, first_source_id,
             created_at_ms, edited_at_ms, read_at_ms, visibility, boost_of_upstream_id,
              content_hash, content_scope, listed, in_public, claimed, from_history, raw) {rows}",
        &[],
        &[
            ids.column(new.iter().map(|version| version.id)),
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
            Column::i64(new.iter().map(|version| version.scope.sql())),
            Column::bool(new.iter().map(|version| version.listed)),
            Column::bool(new.iter().map(|version| version.in_public)),
            Column::bool(posts().map(|post| post.is_claimed(&accounts.origin))),
            Column::bool(new.iter().map(|version| version.from_history)),
            Column::text(texts.iter().map(|t| &*t.raw)),
        ],
    )?;
    // A row without a post exists because others refer to it. A row with a post would mean that two
    // commits have stored the same post: null fails the commit.
    tx.execute_many_later(
        "insert into upstream_post (upstream_id, instance_id, post_id, reply_to_id) {rows}
         on conflict (upstream_id, instance_id) do update
         set post_id = case when upstream_post.post_id = 0 then excluded.post_id end,
             reply_to_id = excluded.reply_to_id",
        &[],
        &[
            Column::text(texts.iter().map(|t| &*t.upstream_id)),
            Column::i64(new.iter().map(|_| instance_id)),
            ids.column(new.iter().map(|version| version.id)),
            Column::text(texts.iter().map(|t| t.reply_to.as_deref())),
        ],
    )?;
    // Some servers give a boost the name of the boosted post. The boost is no copy of that post.
    let named = new.iter().filter_map(|version| {
        let uri = version.post.uri.as_deref()?;
        let boosted = version.post.boost_of.as_ref();
        let is_own = boosted.is_none_or(|boosted| boosted.uri.as_deref() != Some(uri));
        is_own.then_some((version.id, uri))
    });
    let of_instance = (instance_id, accounts.origin.as_str());
    object_uri::add(tx, of_instance, NamedKind::Post, named, ids)
}

/// Replaces stored versions with newer ones, which are not deleted. A post keeps its first name, by
/// which its copies are known: a server that could rename it could take the place of another post.
/// The instance must be held.
pub(crate) fn replace(
    tx: &mut Tx<'_>,
    instance_id: i64,
    versions: &[PostVersion<'_>],
) -> Result<(), DbError> {
    // All writes lock posts in the same order.
    let mut versions: Vec<&PostVersion<'_>> = versions.iter().collect();
    versions.sort_unstable_by_key(|version| version.id);
    let texts: Vec<Texts<'_>> = versions.iter().map(|version| Texts::of(version)).collect();
    let posts = || versions.iter().map(|version| version.post);
    tx.execute_many_later(
        "update post set url = r.url, edited_at_ms = r.edited_at_ms,
             read_at_ms = r.read_at_ms, visibility = r.visibility, content_hash = r.content_hash,
             content_scope = r.content_scope, deleted_at_ms = null, listed = r.listed, raw = r.raw
         from {rows as r(id, url, edited_at_ms, read_at_ms, visibility, content_hash, content_scope, listed,
             raw)}
         where post.id = r.id and post.instance_id = $1",
        &[&instance_id],
        &[
            Column::i64(versions.iter().map(|version| version.id)),
            Column::text(texts.iter().map(|t| t.url.as_deref())),
            Column::i64(posts().map(|post| post.edited_at_ms)),
            Column::i64(versions.iter().map(|version| version.read_at_ms)),
            Column::text(posts().map(|post| post.visibility.name())),
            Column::i64(posts().map(|post| post.hashes.content)),
            Column::i64(versions.iter().map(|version| version.scope.sql())),
            Column::bool(versions.iter().map(|version| version.listed)),
            Column::text(texts.iter().map(|t| &*t.raw)),
        ],
    )?;
    set_replies(tx, instance_id, posts())
}

/// Records the posts to which posts reply. A post that the upstream no longer shows as a reply
/// keeps the old value, because the other post may be gone. The instance must be held.
pub(crate) fn set_replies<'p>(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: impl Iterator<Item = &'p Post>,
) -> Result<(), DbError> {
    let replies = posts.filter_map(|post| Some((post.id.as_str(), post.reply_to.as_ref()?)));
    let (ids, answered): (Vec<_>, Vec<_>) = replies
        .map(|(id, answered)| (without_nul(id), without_nul(answered.as_str())))
        .unzip();
    tx.execute_many_later(
        "update upstream_post set reply_to_id = r.reply_to_id
         from {rows as r(upstream_id, reply_to_id)}
         where upstream_post.upstream_id = r.upstream_id and upstream_post.instance_id = $1
             and upstream_post.reply_to_id is distinct from r.reply_to_id",
        &[&instance_id],
        &[
            Column::text(ids.iter().map(|id| &**id)),
            Column::text(answered.iter().map(|id| &**id)),
        ],
    )
}

/// Lists posts in the public timeline at new IDs, because they have returned after their deletion
/// and readers have passed the old IDs. Every source that has one of them then moves its entry when
/// it is notified. The instance must be held.
pub(crate) fn list_at(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[(i64, i64)],
    ids: &TakenIds,
) -> Result<(), DbError> {
    tx.execute_many_later(
        "update post set public_id = r.public_id, returns = returns + 1, from_history = false
         from {rows as r(id, public_id)} where post.id = r.id and post.instance_id = $1",
        &[&instance_id],
        &[
            Column::i64(posts.iter().map(|(id, _)| *id)),
            ids.column(posts.iter().map(|(_, public_id)| *public_id)),
        ],
    )?;
    let aliases: Vec<_> = posts
        .iter()
        .map(|(id, public)| (*public, Some(*id)))
        .collect();
    alias::add(tx, (instance_id, None), &aliases, ids)
}

/// The facts about a post that its new entry repeats.
#[derive(Clone, Copy, Default)]
pub(crate) struct AuthorAndTime {
    /// The ID by which people know the author.
    pub(crate) author_id: Option<i64>,
    /// The time of the post's creation, in Unix ms.
    pub(crate) created_at_ms: Option<i64>,
}

/// The authors and times of posts, by the posts' IDs.
pub(crate) fn authors_and_times(
    tx: &mut Tx<'_>,
    instance_id: i64,
    ids: &[i64],
) -> Result<HashMap<i64, AuthorAndTime>, DbError> {
    let found = tx.query(
        "select p.id, p.created_at_ms, a.acct_id from post p
         left join account a on a.id = p.account_id and a.instance_id = p.instance_id
         where p.id {in $1} and p.instance_id = $2",
        &[&Column::i64(ids.iter().copied()), &instance_id],
        |row| {
            let found = AuthorAndTime {
                author_id: row.opt_i64("acct_id")?,
                created_at_ms: row.opt_i64("created_at_ms")?,
            };
            Ok((row.i64("id")?, found))
        },
    )?;
    Ok(found.into_iter().collect())
}

/// Those of these posts that their server only claims to know.
pub(crate) fn claimed(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: impl Iterator<Item = i64>,
) -> Result<HashSet<i64>, DbError> {
    let found = tx.query(
        "select id from post where id {in $1} and instance_id = $2 and claimed",
        &[&Column::i64(posts), &instance_id],
        |row| row.i64("id"),
    )?;
    Ok(found.into_iter().collect())
}

/// Removes posts from the public timeline that no longer belong to a source that everybody may
/// read. The instance must be held.
pub(crate) fn withdraw(tx: &mut Tx<'_>, instance_id: i64, posts: &[i64]) -> Result<(), DbError> {
    let mut posts = posts.to_vec();
    posts.sort_unstable();
    tx.execute_many_later(
        "update post set in_public = false, listed = false
         from {rows as r(id)} where post.id = r.id and post.instance_id = $1",
        &[&instance_id],
        &[Column::i64(posts)],
    )
}

/// A post that enters the public timeline.
pub(crate) struct PublishedPost {
    pub(crate) id: i64,
    /// The ID at which it is listed, if it is: that of an entry of a source that everybody may
    /// read.
    pub(crate) public_id: Option<i64>,
    /// True if that entry is history.
    pub(crate) from_history: bool,
}

/// Records that a source that everybody may read has got posts that no such source had, or had only
/// as history, and lists them at their new IDs. The instance must be held.
pub(crate) fn publish(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[PublishedPost],
    ids: &TakenIds,
) -> Result<(), DbError> {
    tx.execute_many_later(
        "update post set in_public = true, listed = r.public_id is not null,
             public_id = coalesce(r.public_id, post.public_id), from_history = r.from_history
         from {rows as r(id, public_id, from_history)}
         where post.id = r.id and post.instance_id = $1",
        &[&instance_id],
        &[
            Column::i64(posts.iter().map(|post| post.id)),
            ids.column(posts.iter().map(|post| post.public_id)),
            Column::bool(posts.iter().map(|post| post.from_history)),
        ],
    )
}
