//! Control posts: posts that a look-up should find if the post that it did not find is deleted.

use std::collections::{HashMap, HashSet};

use driftline_core::{
    post::{PostKind, Visibility},
    timeline::ControlPosts,
    upstream_id::UpstreamId,
};
use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::entry,
    posts::{content_scope::ContentScope, post},
    refresh::{PendingHolders, is_open as is_open_to_all},
    text::without_nul,
    viewer::Owner,
};

/// The owner of the credential for their look-ups, and true if it has a token.
pub type Reader = (Owner, bool);

/// The control posts for a post, given by any of its IDs, that the reader may look up; `None` if
/// the post is not stored.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn control_posts(
    tx: &mut Tx<'_>,
    source: SourceKey,
    reader: Reader,
    id: &UpstreamId,
) -> Result<Option<ControlPosts>, StoreError> {
    let id = id.stable();
    let Some(subject) = subject(tx, source, &without_nul(id.as_str()))? else {
        return Ok(None);
    };
    let of_author = match (subject.kind, subject.account) {
        (PostKind::Post, Some(account)) => of_author(tx, (source, reader), &subject, account)?,
        _ => Vec::new(),
    };
    Ok(Some(ControlPosts {
        kind: subject.kind,
        is_original_deleted: subject.is_original_deleted,
        of_author,
        of_others: of_others(tx, (source, reader), &subject)?,
    }))
}

/// The post in question.
struct Subject {
    id: i64,
    kind: PostKind,
    account: Option<i64>,
    is_original_deleted: bool,
}

fn subject(
    tx: &mut Tx<'_>,
    source: SourceKey,
    upstream_id: &str,
) -> Result<Option<Subject>, StoreError> {
    let instance_id = source.instance_id();
    tx.query_opt(
        "select 1 from source where id = $1 and instance_id = $2",
        &[&source.id(), &instance_id],
        |_| Ok(()),
    )?
    .ok_or(StoreError::NoSource)?;
    let Some(known) = post::known(tx, instance_id, &[upstream_id])?.remove(upstream_id) else {
        return Ok(None);
    };
    let (account, original) = tx.query_one(
        "select account_id, boost_of_upstream_id from post
         where id = $1 and instance_id = $2",
        &[&known.id, &instance_id],
        |row| {
            Ok((
                row.opt_i64("account_id")?,
                row.opt_text("boost_of_upstream_id")?,
            ))
        },
    )?;
    let is_original_deleted = match &original {
        Some(original) => post::known(tx, instance_id, &[original])?
            .values()
            .any(post::KnownPost::is_gone),
        None => false,
    };
    Ok(Some(Subject {
        id: known.id,
        kind: known.kind,
        account,
        is_original_deleted,
    }))
}

/// An author's other posts of any age. Posts that are visible to everyone and listed by the source
/// come first. The others matter, too, because an author who blocks the reader hides them all.
fn of_author(
    tx: &mut Tx<'_>,
    (source, reader): (SourceKey, Reader),
    subject: &Subject,
    account: i64,
) -> Result<Vec<UpstreamId>, DbError> {
    let posts = tx.query(
        "select id, upstream_id, visibility, in_public, content_scope from post
         where account_id = $1 and boost_of_upstream_id is null and deleted_at_ms is null
             and id <> $2 and instance_id = $4
         order by id desc limit $3",
        &[
            &account,
            &subject.id,
            &AUTHORS_NEWEST,
            &source.instance_id(),
        ],
        |row| {
            let upstream_id = UpstreamId::new(row.str("upstream_id")?);
            let (is_open, in_public) = (is_open(row)?, row.bool("in_public")?);
            let scope = ContentScope::from_sql(row.i64("content_scope")?);
            Ok((row.i64("id")?, upstream_id, (is_open, in_public, scope)))
        },
    )?;
    let ids: Vec<i64> = posts.iter().map(|(id, ..)| *id).collect();
    let holders = PendingHolders::ask(tx, source.instance_id())?.of_posts(tx, &ids)?;
    let posts = posts
        .into_iter()
        .filter_map(|(id, upstream_id, (is_open, in_public, scope))| {
            let access = holders.access(id, is_open, in_public, scope);
            let is_admitted = access.admits(reader.0, reader.1);
            is_admitted.then_some((id, upstream_id, is_open))
        });
    let mut posts: Vec<_> = posts.collect();
    let entries = entry::of_posts(tx, source, &ids)?.into_iter();
    let is_listed = |of: &entry::KnownEntry| !of.gone && !of.is_absent && !of.streamed;
    let listed: HashSet<i64> = entries.filter(is_listed).map(|of| of.post_id).collect();
    posts.sort_by_key(|(id, _, is_open)| (!is_open, !listed.contains(id)));
    let ids = posts.into_iter().map(|(_, upstream_id, _)| upstream_id);
    Ok(ids.take(EACH).collect())
}

/// The newest public posts of the kind that pages of the source have just shown, each by a
/// different author, also different from that of the post in question. Further boosts by the same
/// authors follow, because few accounts boost in some timelines, and look-ups of boosts depend on
/// the server.
fn of_others(
    tx: &mut Tx<'_>,
    (source, reader): (SourceKey, Reader),
    subject: &Subject,
) -> Result<Vec<UpstreamId>, DbError> {
    let entries = tx.query(
        "select post_id, absent_at_ms is not null or streamed as is_doubtful from entry
         where source_id = $1 and instance_id = $3 and not gone
         order by position desc limit $2",
        &[&source.id(), &REACH, &source.instance_id()],
        |row| Ok((!row.bool("is_doubtful")?).then_some(row.i64("post_id")?)),
    )?;
    let entries: Vec<i64> = entries.into_iter().flatten().collect();
    let holders = PendingHolders::ask(tx, source.instance_id())?.of_posts(tx, &entries)?;
    let ids = Column::i64(entries.iter().copied().filter(|id| *id != subject.id));
    let posts = tx.query(
        "select id, upstream_id, account_id, visibility, in_public, content_scope,
             boost_of_upstream_id is not null as is_boost
         from post where id {in $1} and instance_id = $2 and deleted_at_ms is null",
        &[&ids, &source.instance_id()],
        |row| {
            let (id, is_open) = (row.i64("id")?, is_open(row)?);
            let scope = ContentScope::from_sql(row.i64("content_scope")?);
            let access = holders.access(id, is_open, row.bool("in_public")?, scope);
            let is_control = is_open
                && access.admits(reader.0, reader.1)
                && PostKind::from_is_boost(row.bool("is_boost")?) == subject.kind;
            let upstream_id = UpstreamId::new(row.str("upstream_id")?);
            let control = (upstream_id, row.opt_i64("account_id")?);
            Ok((id, is_control.then_some(control)))
        },
    )?;
    let mut posts: HashMap<i64, Option<_>> = posts.into_iter().collect();
    let mut authors: HashSet<Option<i64>> = subject.account.map(Some).into_iter().collect();
    let controls = entries
        .into_iter()
        .filter_map(|id| posts.remove(&id).flatten());
    let (others, same): (Vec<_>, Vec<_>) =
        controls.partition(|(_, account)| authors.insert(*account));
    let same = same.into_iter().filter(|_| subject.kind == PostKind::Boost);
    let ids = others.into_iter().chain(same);
    Ok(ids.take(EACH).map(|(upstream_id, _)| upstream_id).collect())
}

fn is_open(row: &Row<'_>) -> Result<bool, DbError> {
    let visibility = Visibility::named_or_narrowest(row.str("visibility")?);
    Ok(is_open_to_all(visibility))
}

/// The number of the source's newest posts that are considered.
const REACH: i64 = 1_000;
/// The number of an author's newest posts that are considered.
const AUTHORS_NEWEST: i64 = 20;
/// The number of controls of each kind.
const EACH: usize = 2;
