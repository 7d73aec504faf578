//! Members: processes that share the work, each with a lease that ends by the database's clock.
//!
//! Must be written below [`driftline_db::Root::none`]: each write is one statement on one row, and
//! names the replaced state.

use std::collections::BTreeSet;

use driftline_db::{Row, ToValue, Tx};
use serde::{Deserialize, Serialize};

use super::change::{self, Change};
use crate::{
    database_clock::{is_live_sql, now_sql},
    error::StoreError,
    id_types::{InstanceId, SourceId},
    text::{from_json, to_json, without_nul},
};

/// The work that a member cannot do now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusals {
    /// The sources that it cannot read.
    pub sources: BTreeSet<SourceId>,
    /// The instances whose posts it cannot refresh.
    pub instances: BTreeSet<InstanceId>,
    /// True if it refreshes nothing.
    pub refreshing: bool,
}

/// The row of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// Its name, which its process also uses on leases.
    pub name: String,
    /// The nonce of one run of the process.
    pub nonce: String,
    /// The program's version.
    pub version: String,
    /// Its weight.
    pub share: u32,
    /// True if it must give up all work.
    pub is_draining: bool,
    /// The work that it cannot do.
    pub refusals: Refusals,
    /// The number of sources that it reads.
    pub sources: i64,
    /// The number of its own buckets of due times.
    pub buckets: i64,
    /// The time at which it joined, in Unix ms. This and the other times are by the database's
    /// clock.
    pub since_ms: i64,
    /// The time at which it last renewed its lease, in Unix ms.
    pub seen_ms: i64,
    /// The end of its lease, in Unix ms.
    pub lease_until_ms: i64,
    /// The time at which it left properly, in Unix ms.
    pub left_ms: Option<i64>,
}

/// A member's report at the renewal of its lease.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Its name.
    pub name: String,
    /// The nonce of this run of the process.
    pub nonce: String,
    /// The program's version.
    pub version: String,
    /// Its weight.
    pub share: u32,
    /// True if it was draining at its last check. The request to drain survives the loss of its
    /// row.
    pub was_draining: bool,
    /// The work that it cannot do.
    pub refusals: Refusals,
    /// The number of sources that it reads.
    pub sources: i64,
    /// The number of its own buckets of due times.
    pub buckets: i64,
    /// The length of its lease from now, in ms.
    pub ttl_ms: i64,
}

/// The result of a [`Beat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beaten {
    /// Its lease is renewed.
    Renewed {
        /// True if it must give up all work.
        is_draining: bool,
        /// The state of [`change::current`] just before.
        change: Change,
    },
    /// It has joined, possibly again after its row was removed.
    Joined {
        /// True if it must give up all work.
        is_draining: bool,
    },
    /// Another run of a process has the name, and its lease has not ended.
    NameTaken,
}

/// Renews a member's lease, or lets it join. In the second case, and if `is_news`, all members must
/// check again.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn beat(tx: &mut Tx<'_>, beat: &Beat, is_news: bool) -> Result<Beaten, StoreError> {
    let now = now_sql(tx.dialect());
    let is_live = is_live_sql("member.lease_until_ms", now);
    let refusals = to_json(REFUSALS, &beat.refusals)?;
    let share = i64::from(beat.share);
    let mut values: Vec<&dyn ToValue> = vec![
        &beat.name,
        &beat.nonce,
        &beat.version,
        &share,
        &refusals,
        &beat.sources,
        &beat.buckets,
        &beat.ttl_ms,
    ];
    let renewed = tx.query_opt(
        &format!(
            "update member set version = $3, share = $4, refusals = $5, sources = $6, buckets = $7,
                 seen_ms = {now}, lease_until_ms = {now} + $8, left_ms = null
             where name = $1 and nonce = $2 returning draining, {}",
            change::columns(tx)
        ),
        &values,
        |row| Ok((row.bool("draining")?, Change::from_row(row)?)),
    )?;
    if let Some((is_draining, change)) = renewed {
        if is_news {
            change::raise_later(tx)?;
        }
        return Ok(Beaten::Renewed {
            is_draining,
            change,
        });
    }
    values.push(&beat.was_draining);
    let joined = tx.query_opt(
        &format!(
            "insert into member (name, nonce, version, share, draining, refusals, sources, buckets,
                 since_ms, seen_ms, lease_until_ms, left_ms)
             values ($1, $2, $3, $4, $9, $5, $6, $7, {now}, {now}, {now} + $8, null)
             on conflict (name) do update set nonce = $2, version = $3, share = $4, draining = $9,
                 refusals = $5, sources = $6, buckets = $7, since_ms = {now}, seen_ms = {now},
                 lease_until_ms = {now} + $8, left_ms = null
             where not {is_live}
             returning draining"
        ),
        &values,
        |row| row.bool("draining"),
    )?;
    let Some(is_draining) = joined else {
        return Ok(Beaten::NameTaken);
    };
    sweep(tx)?;
    change::raise_later(tx)?;
    Ok(Beaten::Joined { is_draining })
}

/// Ends a member's lease properly. Others take over from now on.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn leave(tx: &mut Tx<'_>, name: &str, nonce: &str) -> Result<(), StoreError> {
    let now = now_sql(tx.dialect());
    tx.execute(
        &format!(
            "update member set left_ms = {now}, lease_until_ms = {now}, sources = 0, buckets = 0
             where name = $1 and nonce = $2"
        ),
        &[&name, &nonce],
    )?;
    Ok(change::raise_later(tx)?)
}

/// Asks a member to give up all work, or to take its share again. `None` if its row does not exist;
/// otherwise true if that changed it. The request lasts as long as the process runs, independent of
/// its lease.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn set_draining(
    tx: &mut Tx<'_>,
    name: &str,
    is_draining: bool,
) -> Result<Option<bool>, StoreError> {
    let name = without_nul(name);
    let before = tx.query_opt(
        "select draining from member where name = $1",
        &[&&*name],
        |row| row.bool("draining"),
    )?;
    let Some(before) = before else {
        return Ok(None);
    };
    tx.execute(
        "update member set draining = $2 where name = $1",
        &[&&*name, &is_draining],
    )?;
    change::raise_later(tx)?;
    Ok(Some(before != is_draining))
}

/// All rows, in order of names, including those whose lease has ended and that are not removed yet.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<MemberRow>, StoreError> {
    let rows = tx.query(
        "select name, nonce, version, share, draining, refusals, sources, buckets, since_ms,
             seen_ms, lease_until_ms, left_ms
         from member order by name",
        &[],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// Removes rows of members that ended long ago. A request to drain is kept for much longer: the
/// process may be stopped, and has not seen it.
fn sweep(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let now = now_sql(tx.dialect());
    tx.execute(
        &format!(
            "delete from member where lease_until_ms < {now} - $1
                 and (left_ms is not null or not draining or lease_until_ms < {now} - $2)"
        ),
        &[&SWEPT_AFTER_MS, &DRAINING_SWEPT_AFTER_MS],
    )?;
    Ok(())
}

fn from_row(row: &Row<'_>) -> Result<MemberRow, StoreError> {
    Ok(MemberRow {
        name: row.text("name")?,
        nonce: row.text("nonce")?,
        version: row.text("version")?,
        share: u32::try_from(row.i64("share")?).unwrap_or(0),
        is_draining: row.bool("draining")?,
        refusals: from_json(REFUSALS, row.str("refusals")?)?,
        sources: row.i64("sources")?,
        buckets: row.i64("buckets")?,
        since_ms: row.i64("since_ms")?,
        seen_ms: row.i64("seen_ms")?,
        lease_until_ms: row.i64("lease_until_ms")?,
        left_ms: row.opt_i64("left_ms")?,
    })
}

const REFUSALS: &str = "what a member cannot do";
const SWEPT_AFTER_MS: i64 = 3_600_000;
const DRAINING_SWEPT_AFTER_MS: i64 = 7 * 86_400_000;
