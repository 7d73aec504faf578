//! Control posts: posts that a look-up should find, if the one that it did not find is deleted.

use std::collections::{HashMap, HashSet};

use driftline_core::{
    post::{PostKind, Visibility},
    upstream_id::UpstreamId,
};
use driftline_db::{Column, DbError, Tx};

use crate::{
    error::StoreError,
    id_types::{SourceId, sql},
    posts::post,
    text::without_nul,
};

/// The posts that show what a look-up that did not find a post is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPosts {
    /// What the post in question is to look-ups.
    pub kind: PostKind,
    /// Whether the post that it boosts is known to be deleted.
    pub is_original_deleted: bool,
    /// Others of its kind by its author, those first that the source lists.
    pub of_author: Vec<UpstreamId>,
    /// Others of its kind, which pages have just shown.
    pub of_others: Vec<UpstreamId>,
}

/// A post that may serve as a control.
struct Candidate {
    upstream_id: UpstreamId,
    account: Option<i64>,
    is_listed: bool,
}

/// The control posts for a post, out of the newest that anyone may see in a source; `None` if the
/// post is not stored.
pub fn control_posts(
    tx: &mut Tx<'_>,
    source: SourceId,
    id: &UpstreamId,
) -> Result<Option<ControlPosts>, StoreError> {
    let upstream_id = without_nul(id.as_str());
    let Some(subject) = subject(tx, source, &upstream_id)? else {
        return Ok(None);
    };
    let mut candidates = candidates(tx, source, subject.kind)?;
    candidates.retain(|candidate| candidate.upstream_id.as_str() != upstream_id);
    let is_authors = |of: &&Candidate| subject.account.is_some() && of.account == subject.account;
    let (authors, others): (Vec<_>, Vec<_>) = candidates.iter().partition(is_authors);
    let first = |candidates: &[&Candidate]| {
        let ids = candidates.iter().map(|of| of.upstream_id.clone());
        ids.take(EACH).collect()
    };
    let (mut of_author, gone): (Vec<_>, Vec<_>) = authors.into_iter().partition(|of| of.is_listed);
    of_author.extend(gone);
    let mut authors = HashSet::new();
    let of_others: Vec<&Candidate> = others
        .into_iter()
        .filter(|of| of.is_listed && authors.insert(of.account))
        .collect();
    Ok(Some(ControlPosts {
        kind: subject.kind,
        is_original_deleted: subject.is_original_deleted,
        of_author: first(&of_author),
        of_others: first(&of_others),
    }))
}

/// The post in question.
struct Subject {
    kind: PostKind,
    account: Option<i64>,
    is_original_deleted: bool,
}

fn subject(
    tx: &mut Tx<'_>,
    source: SourceId,
    upstream_id: &str,
) -> Result<Option<Subject>, StoreError> {
    let instance_id = tx.query_opt(
        "select instance_id from source where id = $1",
        &[&sql(source)],
        |row| row.i64("instance_id"),
    )?;
    let instance_id = instance_id.ok_or(StoreError::NoSource)?;
    let Some(known) = post::known(tx, instance_id, &[upstream_id])?.remove(upstream_id) else {
        return Ok(None);
    };
    let (account, original) = tx.query_one(
        "select account_id, boost_of_upstream_id from post where id = $1",
        &[&known.id],
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
            .any(post::Known::is_gone),
        None => false,
    };
    Ok(Some(Subject {
        kind: known.kind,
        account,
        is_original_deleted,
    }))
}

/// Posts of a kind that a source lists or has listed, the newest first.
fn candidates(
    tx: &mut Tx<'_>,
    source: SourceId,
    kind: PostKind,
) -> Result<Vec<Candidate>, DbError> {
    let entries = tx.query(
        "select post_id, gone or absent_at_ms is not null or streamed as is_doubtful from entry
         where source_id = $1 and (not gone or left_at_ms is not null)
         order by position desc limit $2",
        &[&sql(source), &REACH],
        |row| Ok((row.i64("post_id")?, !row.bool("is_doubtful")?)),
    )?;
    let ids = Column::i64(entries.iter().map(|(post_id, _)| *post_id));
    let posts = tx.query(
        "select id, upstream_id, account_id, visibility,
             boost_of_upstream_id is not null as is_boost
         from post where id {in $1} and deleted_at_ms is null",
        &[&ids],
        |row| {
            let visibility = Visibility::named_or_narrowest(row.str("visibility")?);
            let is_open = matches!(visibility, Visibility::Public | Visibility::Unlisted);
            let is_control = is_open && PostKind::of(row.bool("is_boost")?) == kind;
            let candidate = Candidate {
                upstream_id: UpstreamId::new(row.str("upstream_id")?),
                account: row.opt_i64("account_id")?,
                is_listed: false,
            };
            Ok((row.i64("id")?, is_control.then_some(candidate)))
        },
    )?;
    let mut posts: HashMap<i64, Option<Candidate>> = posts.into_iter().collect();
    let listed = entries.into_iter().filter_map(|(post_id, is_listed)| {
        let candidate = posts.remove(&post_id)??;
        Some(Candidate {
            is_listed,
            ..candidate
        })
    });
    Ok(listed.collect())
}

/// How many of the source's newest posts are considered.
const REACH: i64 = 1_000;
/// How many controls of each sort.
const EACH: usize = 2;
