//! Absences: posts that a source no longer lists and that are not known to be deleted.
//!
//! Filters, blocks, mutes and rebuilt feeds remove posts from a timeline. The entry then ends and
//! nothing is erased: the post and the entries of other sources stay. One page without a post
//! proves little, because a server's cache may have been cold. The entry ends if a later page lacks
//! it, too, or by the answer of a look-up. A page with the post restores the entry at a new ID.

use std::collections::HashSet;

use driftline_core::upstream_id::{Key, UpstreamId};
use driftline_db::{Column, DbError, PendingRows, Tx};

use crate::mirror::{
    entry, left_usns, machine::LockedSource, source::TokenLocation, source_kind::IS_LISTED,
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, SourceId, SourceKey, from_sql, sql},
};

/// An entry that is missing from a page that should list it.
pub(crate) struct AbsentEntry {
    id: i64,
    post_id: i64,
    upstream_id: UpstreamId,
    /// The time of the request for the first such page, if it was an earlier one, in Unix ms.
    since_ms: Option<i64>,
}

/// The consequences of posts missing from a page.
#[derive(Default)]
pub(crate) struct Absences {
    /// The posts to look up.
    pub(crate) suspects: Vec<UpstreamId>,
    /// The number of entries that ended.
    pub(crate) left: u64,
}

impl Absences {
    /// No entry ends by a page that need not list the posts. Only their look-ups are evidence.
    pub(crate) fn suspected(absent: Vec<AbsentEntry>) -> Self {
        let mut suspects: Vec<_> = absent.into_iter().map(|of| of.upstream_id).collect();
        suspects.dedup();
        Self { suspects, left: 0 }
    }
}

/// The entries of a requested range; `None` for a listed entry.
pub(crate) type PendingLive<'r> = PendingRows<'r, Option<AbsentEntry>>;

/// The live entries in `[low, high)` outside of the listed positions, requested together with the
/// next query. Posts that a stream has shown since the page was requested, in Unix ms, need not be
/// listed.
pub(crate) fn live_later<'r>(
    tx: &mut Tx<'_>,
    source: SourceKey,
    (low, high): (&Key, &Key),
    listed: &'r HashSet<&'r str>,
    asked_at_ms: i64,
) -> Result<PendingLive<'r>, DbError> {
    let (low, high) = (low.as_str(), high.as_str());
    tx.query_later(
        &format!("select id, position, post_id, absent_at_ms from entry
         where source_id = $1 and instance_id = $6 and position >= $2 and position < $3
             and not gone and (not streamed or arrived_at_ms < $4 or arrived_at_ms > $4 + {ANSWERED_WITHIN_MS})
         order by position desc limit $5"),
        &[
            &source.id(),
            &low,
            &high,
            &asked_at_ms,
            &MAX_ABSENT,
            &source.instance_id(),
        ],
        |row| {
            let entry = AbsentEntry {
                id: row.i64("id")?,
                post_id: row.i64("post_id")?,
                upstream_id: UpstreamId::new(""),
                since_ms: row.opt_i64("absent_at_ms")?,
            };
            Ok((!listed.contains(row.str("position")?)).then_some(entry))
        },
    )
}

/// The entries that are missing from the ranges' pages, with their posts' upstream IDs.
pub(crate) fn absent(
    tx: &mut Tx<'_>,
    instance_id: i64,
    ranges: Vec<PendingLive<'_>>,
) -> Result<Vec<AbsentEntry>, DbError> {
    let mut absent = Vec::new();
    for live in ranges {
        absent.extend(tx.rows(live)?.into_iter().flatten());
    }
    if absent.is_empty() {
        return Ok(absent);
    }
    let posts = Column::i64(absent.iter().map(|entry| entry.post_id));
    let names = tx.query(
        "select id, upstream_id from post where id {in $1} and instance_id = $2",
        &[&posts, &instance_id],
        |row| Ok((row.i64("id")?, UpstreamId::new(row.str("upstream_id")?))),
    )?;
    let names: std::collections::HashMap<i64, UpstreamId> = names.into_iter().collect();
    for entry in &mut absent {
        if let Some(name) = names.get(&entry.post_id) {
            entry.upstream_id = name.clone();
        }
    }
    Ok(absent)
}

/// Applies the entries that are missing from a page. An entry that was missing from an earlier
/// page, too, has left.
pub(crate) fn take_in(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    absent: Vec<AbsentEntry>,
    asked_at_ms: i64,
) -> Result<Absences, StoreError> {
    let is_confirmed = |entry: &AbsentEntry| {
        let since_ms = entry.since_ms;
        since_ms.is_some_and(|since_ms| asked_at_ms >= since_ms.saturating_add(CONFIRM_AFTER_MS))
    };
    // Entries seen by a clock that was ahead count as seen first now.
    let is_first = |entry: &AbsentEntry| {
        let ahead_ms = asked_at_ms.saturating_add(ANSWERED_WITHIN_MS);
        entry.since_ms.is_none_or(|since_ms| since_ms > ahead_ms)
    };
    let (left, suspects): (Vec<_>, Vec<_>) = absent.into_iter().partition(is_confirmed);
    let first = suspects.iter().filter(|entry| is_first(entry));
    tx.execute_many_later(
        "update entry set absent_at_ms = $2 from {rows as r(id)}
         where entry.source_id = $1 and entry.instance_id = $3 and entry.id = r.id",
        &[&source.id, &asked_at_ms, &source.instance_id],
        &[Column::i64(first.map(|entry| entry.id))],
    )?;
    let ids: Vec<i64> = left.iter().map(|entry| entry.id).collect();
    end(tx, source, &ids, asked_at_ms)?;
    Ok(Absences {
        left: ids.len() as u64,
        ..Absences::suspected(suspects)
    })
}

/// Ends entries whose posts the source does not list any more, and notifies its library.
pub(crate) fn end(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    ids: &[i64],
    at_ms: i64,
) -> Result<(), DbError> {
    let usns: Vec<i64> = ids.iter().map(|_| source.library.next_usn()).collect();
    tx.execute_many_later(
        &format!(
            "update entry set usn = r.usn, change_usn = r.usn, gone = true, left_at_ms = $2,
                 absent_at_ms = null, times_left = times_left + 1, {}
             from {{rows as r(id, usn)}}
             where entry.source_id = $1 and entry.instance_id = $3 and entry.id = r.id",
            left_usns::assignments("true", "entry.visibility")
        ),
        &[&source.id, &at_ms, &source.instance_id],
        &[
            Column::i64(ids.iter().copied()),
            Column::i64(usns.iter().copied()),
        ],
    )
}

/// True if another source of the instance lists a post with another token. A post that is hidden
/// from this source's token is then not deleted.
pub(crate) fn is_listed_for_others(
    tx: &mut Tx<'_>,
    source: &LockedSource,
    post_id: i64,
) -> Result<bool, StoreError> {
    let own = tx.query_one(
        "select token from source where id = $1 and instance_id = $2",
        &[&source.id, &source.instance_id],
        |row| row.opt_text("token"),
    )?;
    is_listed(tx, source.key.instance, &[own], post_id)
}

/// True if a source of the instance lists a post with another token than these, which do not find
/// it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn is_listed_beyond(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    asked: &[Option<TokenLocation>],
    post: LocalId,
) -> Result<bool, StoreError> {
    let asked = asked
        .iter()
        .map(|token| token.as_ref().map(TokenLocation::to_text));
    let asked: Vec<Option<String>> = asked.collect();
    is_listed(tx, instance, &asked, sql(post))
}

fn is_listed(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    asked: &[Option<String>],
    post_id: i64,
) -> Result<bool, StoreError> {
    let sources = tx.query(
        &format!("select id, token from source where instance_id = $1 and {IS_LISTED}"),
        &[&sql(instance)],
        |row| Ok((from_sql(row.i64("id")?)?, row.opt_text("token")?)),
    )?;
    for (id, token) in sources {
        if asked.contains(&token) {
            continue;
        }
        let entries = entry::of_posts(tx, SourceKey { id, instance }, &[post_id])?;
        if entries.iter().any(|entry| !entry.gone) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The sources of an instance that no longer list a post that is not known to be deleted, each with
/// the time since when, in Unix ms.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn left(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    post: LocalId,
) -> Result<Vec<(SourceId, i64)>, StoreError> {
    let sources = tx.query(
        "select id from source where instance_id = $1 order by id",
        &[&sql(instance)],
        |row| from_sql(row.i64("id")?),
    )?;
    let mut left = Vec::new();
    for id in sources {
        let entries = entry::of_posts(tx, SourceKey { id, instance }, &[sql(post)])?;
        if let Some(at_ms) = entries.iter().filter_map(|entry| entry.left_at_ms).max() {
            left.push((id, at_ms));
        }
    }
    Ok(left)
}

/// An upstream that answers a long range with one old post must not cause look-ups of the whole
/// range.
const MAX_ABSENT: i64 = 1000;
/// A second page proves that a post is not listed only if it was requested this much later, in ms.
const CONFIRM_AFTER_MS: i64 = 60_000;
/// The longest time from a page's request to its commit, in ms. Later times come from a clock that
/// was ahead.
const ANSWERED_WITHIN_MS: i64 = 600_000;
