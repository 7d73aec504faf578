//! Pending look-ups: posts that were requested by their upstream ID and are not stored yet.
//!
//! Each is scheduled under a *look-up ID*, a negative number, so that it is claimed, leased and
//! retried like stored posts. Once the post is found, the look-up is removed. If the post is not
//! found, the look-up stays as a record of that.

use std::collections::{HashMap, HashSet};

use driftline_core::{
    post::Counts,
    refresh::{Due, Freshness, LookupOutcome},
};
use driftline_db::{Column, DbError, Tx};

use super::{RefreshState, bucket, freshness, stored};
use crate::{
    error::StoreError,
    id_types::sql,
    local_ids,
    new_ids::TakenIds,
    posts::find,
    text,
    viewer::{ReadableSources, Viewer},
};

/// A requested post that is not stored: its look-up is pending or has failed.
#[derive(Clone, Debug)]
pub struct PendingPost {
    /// The origin of its instance.
    pub origin: String,
    /// Its ID there.
    pub upstream_id: String,
    /// True if its look-up is pending; otherwise it has failed.
    pub waits: bool,
    /// The state of its look-up. Its creation time is that of the request.
    pub refresh_state: RefreshState,
}

/// The post without a stored version that `text` identifies like in [`find::post`]: by an address
/// that ends in its ID, or by `INSTANCE/ID`. Only for a source that the viewer may read.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn pending_post(
    tx: &mut Tx<'_>,
    text: &str,
    viewer: Viewer,
) -> Result<Option<PendingPost>, StoreError> {
    let readable = ReadableSources::load(tx, viewer)?;
    let text = text::without_nul(text.trim());
    let Some((instance, upstream_id)) = text.trim_end_matches('/').rsplit_once('/') else {
        return Ok(None);
    };
    for instance in find::instances_of(tx, instance)? {
        let found = tx.query_opt(
            "select lookup_id, source_id, waits from pending_lookup
             where upstream_id = $1 and instance_id = $2",
            &[&upstream_id, &sql(instance.id)],
            |row| {
                let source_id = row.i64("source_id")?;
                Ok((row.i64("lookup_id")?, source_id, row.bool("waits")?))
            },
        )?;
        let found = found.filter(|(_, source_id, _)| readable.of_raw(*source_id).is_some());
        let Some((lookup_id, _, waits)) = found else {
            continue;
        };
        let refresh_state = stored::by_ids(tx, sql(instance.id), &[lookup_id])?.remove(&lookup_id);
        return Ok(refresh_state.map(|refresh_state| PendingPost {
            origin: instance.origin,
            upstream_id: upstream_id.to_owned(),
            waits,
            refresh_state,
        }));
    }
    Ok(None)
}

/// Stores look-ups of upstream IDs that have none, due at once. The source stores the posts that
/// they find. With `once` these are not refreshed afterwards.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    (instance_id, source_id): (i64, i64),
    upstream_ids: &[&str],
    once: bool,
    now_ms: i64,
) -> Result<(), StoreError> {
    let count = upstream_ids.len();
    let take = move |tx: &mut Tx<'_>| local_ids::take_numbers(tx, "last_lookup_id", count);
    // Both commits are one only if one server has both.
    let first = match tx.is_distributed() {
        true => tx.apart(take)?,
        false => take(tx)?,
    };
    let lookup_ids: Vec<i64> = (first..)
        .take(upstream_ids.len())
        .map(|lookup_id| -lookup_id)
        .collect();
    tx.execute_many_later(
        "insert into pending_lookup (upstream_id, instance_id, lookup_id, source_id, once, waits) {rows}",
        &[],
        &[
            Column::text(upstream_ids.iter().copied()),
            Column::i64(upstream_ids.iter().map(|_| instance_id)),
            Column::i64(lookup_ids.iter().copied()),
            Column::i64(upstream_ids.iter().map(|_| source_id)),
            Column::bool(upstream_ids.iter().map(|_| once)),
            Column::bool(upstream_ids.iter().map(|_| true)),
        ],
    )?;
    // Created now, so that failures are retried for as long as those of a post of today.
    let freshness = Freshness {
        refreshed_ms: now_ms - 1,
        ..Freshness::first(Some(now_ms), now_ms, Counts::default())
    };
    let rows = lookup_ids.iter().map(|&lookup_id| {
        let bucket = bucket(instance_id, lookup_id);
        RefreshState::first((bucket, lookup_id), freshness, Due::At(now_ms), None)
    });
    let rows: Vec<_> = rows.collect();
    Ok(freshness::insert(tx, instance_id, &rows, &TakenIds::NONE)?)
}

/// Removes look-ups that have found their posts.
pub(crate) fn remove(tx: &mut Tx<'_>, instance_id: i64, lookup_ids: &[i64]) -> Result<(), DbError> {
    for sql in [
        "delete from pending_lookup where lookup_id {in $1} and instance_id = $2",
        "delete from freshness where post_id {in $1} and instance_id = $2",
    ] {
        let ids = Column::i64(lookup_ids.iter().copied());
        tx.execute_later(sql, &[&ids, &instance_id])?;
    }
    Ok(())
}

/// Marks look-ups as failed, so that they are no longer due.
pub(crate) fn give_up(
    tx: &mut Tx<'_>,
    instance_id: i64,
    lookup_ids: &[i64],
) -> Result<(), DbError> {
    if lookup_ids.is_empty() {
        return Ok(());
    }
    tx.execute_later(
        "update pending_lookup set waits = false where lookup_id {in $1} and instance_id = $2",
        &[&Column::i64(lookup_ids.iter().copied()), &instance_id],
    )
}

/// A pending or failed look-up.
pub(crate) struct PendingLookup {
    pub(crate) upstream_id: String,
    pub(crate) source_id: i64,
    pub(crate) once: bool,
}

/// The look-ups with these IDs, some of which may be IDs of posts.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    instance_id: i64,
    lookup_ids: &[i64],
) -> Result<HashMap<i64, PendingLookup>, DbError> {
    let negative: Vec<i64> = lookup_ids.iter().copied().filter(|id| *id < 0).collect();
    if negative.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(
        "select lookup_id, upstream_id, source_id, once from pending_lookup
         where lookup_id {in $1} and instance_id = $2",
        &[&Column::i64(negative), &instance_id],
        |row| {
            let lookup = PendingLookup {
                upstream_id: row.text("upstream_id")?,
                source_id: row.i64("source_id")?,
                once: row.bool("once")?,
            };
            Ok((row.i64("lookup_id")?, lookup))
        },
    )?;
    Ok(rows.into_iter().collect())
}

/// The state of a look-up.
pub(crate) enum LookupState {
    Waits,
    /// It has failed for good, after this outcome.
    GivenUp(Option<LookupOutcome>),
}

/// The look-ups of upstream IDs, by these.
pub(crate) fn states(
    tx: &mut Tx<'_>,
    instance_id: i64,
    ids: &[&str],
) -> Result<HashMap<String, LookupState>, DbError> {
    let found = of_upstream_ids(tx, instance_id, ids)?;
    let given_up = found.iter().filter(|(.., waits)| !waits);
    let given_up: Vec<i64> = given_up.map(|(_, lookup_id, _)| *lookup_id).collect();
    let last = stored::by_ids(tx, instance_id, &given_up)?;
    let state = |(upstream_id, lookup_id, waits): (String, i64, bool)| {
        let last = last.get(&lookup_id).and_then(|state| state.outcome);
        let state = match waits {
            true => LookupState::Waits,
            false => LookupState::GivenUp(last),
        };
        (upstream_id, state)
    };
    Ok(found.into_iter().map(state).collect())
}

/// The look-up IDs of upstream IDs that have one.
pub(crate) fn ids(
    tx: &mut Tx<'_>,
    instance_id: i64,
    upstream_ids: &[&str],
) -> Result<Vec<i64>, DbError> {
    let found = of_upstream_ids(tx, instance_id, upstream_ids)?.into_iter();
    Ok(found.map(|(_, lookup_id, _)| lookup_id).collect())
}

/// The upstream ID, the look-up ID, and true if it is pending.
fn of_upstream_ids(
    tx: &mut Tx<'_>,
    instance_id: i64,
    upstream_ids: &[&str],
) -> Result<Vec<(String, i64, bool)>, DbError> {
    tx.query_each(
        "select upstream_id, lookup_id, waits from pending_lookup
         where upstream_id = {row 1} and instance_id = $1",
        &[&instance_id],
        &[Column::text(upstream_ids.iter().copied())],
        |row| {
            let (lookup_id, waits) = (row.i64("lookup_id")?, row.bool("waits")?);
            Ok((row.text("upstream_id")?, lookup_id, waits))
        },
    )
}

/// The IDs among these that have a look-up, pending or failed.
pub(crate) fn known(
    tx: &mut Tx<'_>,
    instance_id: i64,
    ids: &[&str],
) -> Result<HashSet<String>, DbError> {
    let found = tx.query_each(
        "select upstream_id from pending_lookup where upstream_id = {row 1} and instance_id = $1",
        &[&instance_id],
        &[Column::text(ids.iter().copied())],
        |row| row.text("upstream_id"),
    )?;
    Ok(found.into_iter().collect())
}
