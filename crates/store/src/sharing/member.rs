//! Members: processes that share the work, each under a lease that ends by the database's clock.
//!
//! To be written below [`driftline_db::Root::none`]: each write is one statement on one row, and says
//! what it replaces.

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

/// What a member cannot do now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refusals {
    /// Sources that it cannot read.
    pub sources: BTreeSet<SourceId>,
    /// Instances whose posts it cannot refresh.
    pub instances: BTreeSet<InstanceId>,
    /// It refreshes nothing.
    pub refreshing: bool,
}

/// A member as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// Its name: its process's on leases.
    pub name: String,
    /// Of one run of the process.
    pub nonce: String,
    /// The program's version.
    pub version: String,
    /// Its weight.
    pub share: u32,
    /// Whether it is to give up all work.
    pub is_draining: bool,
    /// What it cannot do.
    pub refusals: Refusals,
    /// How many sources it reads.
    pub sources: i64,
    /// How many buckets of due times are its own.
    pub buckets: i64,
    /// When it joined, Unix ms; this and the other times are by the database's clock.
    pub since_ms: i64,
    /// When it last renewed its lease, Unix ms.
    pub seen_ms: i64,
    /// When its lease ends or ended, Unix ms.
    pub lease_until_ms: i64,
    /// When it left in order, Unix ms.
    pub left_ms: Option<i64>,
}

/// What a member says of itself as it renews its lease.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Its name.
    pub name: String,
    /// Of this run of the process.
    pub nonce: String,
    /// The program's version.
    pub version: String,
    /// Its weight.
    pub share: u32,
    /// Whether it was draining when it last looked: should its row be gone, the wish is not.
    pub was_draining: bool,
    /// What it cannot do.
    pub refusals: Refusals,
    /// How many sources it reads.
    pub sources: i64,
    /// How many buckets of due times are its own.
    pub buckets: i64,
    /// How long its lease lasts from now, ms.
    pub ttl_ms: i64,
}

/// What came of a [`Beat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beaten {
    /// Its lease is renewed.
    Renewed {
        /// Whether it is to give up all work.
        is_draining: bool,
        /// What [`change::current`] would have said just before.
        change: Change,
    },
    /// It has joined, or has joined again since its row was swept.
    Joined {
        /// Whether it is to give up all work.
        is_draining: bool,
    },
    /// Another run of a process has the name, and its lease has not ended.
    NameTaken,
}

/// Renews a member's lease, or lets it join: then, and if `is_news`, all members are to look again.
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

/// Ends a member's lease, in order: others take over from now on.
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

/// Asks a member to give up all work, or to take its share again. `None` if there is no such row, else
/// whether that changed it. The wish lasts as long as the process runs, whatever becomes of its lease.
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

/// Every row, in order of names: also of those whose lease has ended and that are not swept yet.
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

/// Removes rows of members that are long gone. A wish to drain is kept for much longer: the process may
/// be stopped, and has not seen it.
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
