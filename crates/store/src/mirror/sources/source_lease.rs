//! Source leases: the assignment of sources to workers that fetch.
//!
//! A lease ends by the database's own clock, so the workers' clocks do not matter. Each claim has a
//! larger fencing number than all earlier ones, and a commit with an older one is rejected
//! ([`StoreError::LeaseLost`]).

use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    database_clock::{is_live_sql, modification_now_sql},
    error::StoreError,
    id_types::{SourceKey, from_sql},
    sharing::change,
};

/// A claim on a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The source.
    pub source: SourceKey,
    /// The fencing number for commits.
    pub fence: i64,
    /// The end of the lease unless it is renewed, in Unix ms by the database's clock.
    pub until_ms: i64,
}

/// The worker that leases a source, or the last one if the time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceHolder {
    /// The worker's name.
    pub holder: String,
    /// Its fencing number.
    pub fence: i64,
    /// The end of its lease, in Unix ms by the database's clock.
    pub until_ms: i64,
}

/// Locks a source's row for this transaction. Returns `false` if another one has locked it, or the
/// source does not exist.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn try_lock(tx: &mut Tx<'_>, source: SourceKey) -> Result<bool, StoreError> {
    let locked = tx.query_opt(
        "select 1 from source where id = $1 and instance_id = $2 {skip_locked}",
        &[&source.id(), &source.instance_id()],
        |_| Ok(()),
    )?;
    Ok(locked.is_some())
}

/// Claims a source, paused or not; `None` if another lease on it has not ended.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn claim(
    tx: &mut Tx<'_>,
    source: SourceKey,
    holder: &str,
    ttl_ms: i64,
) -> Result<Option<Lease>, StoreError> {
    let now = modification_now_sql(tx);
    let is_live = is_live_sql("lease_until_ms", now);
    Ok(tx.query_opt(
        &format!(
            "update source set lease_holder = $2, lease_fence = lease_fence + 1,
                 lease_until_ms = {now} + $3
             where id = $1 and instance_id = $4
                 and (lease_holder is null or not {is_live})
             returning {COLUMNS}"
        ),
        &[&source.id(), &holder, &ttl_ms, &source.instance_id()],
        from_row,
    )?)
}

/// Extends a lease to `ttl_ms` from now; `None` if it is lost. A lease that has ended is not lost
/// until another worker has claimed the source.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn renew(tx: &mut Tx<'_>, lease: &Lease, ttl_ms: i64) -> Result<Option<Lease>, StoreError> {
    Ok(renew_all(tx, &[*lease], ttl_ms)?.pop())
}

/// Extends these leases to `ttl_ms` from now, each like [`renew`], and returns those that are not
/// lost. Must be written below [`driftline_db::Root::none`].
///
/// A holder passes the leases that it still uses. The lease of work that has ended without giving
/// it back then ends by itself, so that any worker can claim the source.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn renew_all(tx: &mut Tx<'_>, leases: &[Lease], ttl_ms: i64) -> Result<Vec<Lease>, StoreError> {
    let now = modification_now_sql(tx);
    let held = columns(leases);
    tx.execute_many_later(
        &format!(
            "update source set lease_until_ms = {now} + $1
             from {{rows as r(source_id, held_in, held_fence)}}
             where id = r.source_id and instance_id = r.held_in and instance_id {{in $2}}
                 and lease_fence = r.held_fence and lease_holder is not null"
        ),
        &[&ttl_ms, &held[1]],
        &held,
    )?;
    let [ids, instances, _] = held;
    let renewed = tx.query(
        &format!(
            "select {COLUMNS} from source
             where id {{in $1}} and instance_id {{in $2}} and lease_holder is not null"
        ),
        &[&ids, &instances],
        from_row,
    )?;
    let is_held = |lease: &Lease| {
        let mut held = leases.iter();
        held.any(|held| (held.source, held.fence) == (lease.source, lease.fence))
    };
    Ok(renewed.into_iter().filter(is_held).collect())
}

/// Extends a holder's leases on these sources to `ttl_ms` from now, in one statement. Returns the
/// number of renewed leases. Rows that other transactions have locked are skipped, so that none
/// waits for another one; a distributed database cannot skip them and waits. The commits of a
/// holder that has lost a lease are rejected, and it finds the new fence when it next reads the
/// source. It passes the sources on which it works, like in [`renew_all`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn renew_held(
    tx: &mut Tx<'_>,
    holder: &str,
    sources: &[SourceKey],
    ttl_ms: i64,
) -> Result<u64, StoreError> {
    let now = modification_now_sql(tx);
    let ids = Column::i64(sources.iter().map(|source| source.id()));
    let instances = Column::i64(sources.iter().map(|source| source.instance_id()));
    let held = "id {in $2} and instance_id {in $4} and lease_holder = $3";
    let unlocked = match tx.is_distributed() {
        true => held.to_owned(),
        false => format!("id in (select id from source where {held} {{skip_locked}})"),
    };
    Ok(tx.execute(
        &format!("update source set lease_until_ms = {now} + $1 where {unlocked}"),
        &[&ttl_ms, &ids, &holder, &instances],
    )?)
}

/// Gives a lease back. Returns `false` if it was lost. All members check again.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn release(tx: &mut Tx<'_>, lease: &Lease) -> Result<bool, StoreError> {
    Ok(release_all(tx, &[*lease])? > 0)
}

/// Gives leases back. Returns the number of those that were not lost. Must be written below
/// [`driftline_db::Root::none`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn release_all(tx: &mut Tx<'_>, leases: &[Lease]) -> Result<u64, StoreError> {
    let held = columns(leases);
    let changed = tx.execute_many(
        "update source set lease_holder = null from {rows as r(source_id, held_in, held_fence)}
         where id = r.source_id and instance_id = r.held_in and instance_id {in $1}
             and lease_fence = r.held_fence and lease_holder is not null",
        &[&held[1]],
        &held,
    )?;
    if changed > 0 {
        change::raise_later(tx)?;
    }
    Ok(changed)
}

fn columns(leases: &[Lease]) -> [Column<'static>; 3] {
    [
        Column::i64(leases.iter().map(|lease| lease.source.id())),
        Column::i64(leases.iter().map(|lease| lease.source.instance_id())),
        Column::i64(leases.iter().map(|lease| lease.fence)),
    ]
}

/// The columns that [`from_row`] reads.
const COLUMNS: &str = "id, instance_id, lease_fence, lease_until_ms";

fn from_row(row: &Row<'_>) -> Result<Lease, DbError> {
    Ok(Lease {
        source: SourceKey {
            id: from_sql(row.i64("id")?)?,
            instance: from_sql(row.i64("instance_id")?)?,
        },
        fence: row.i64("lease_fence")?,
        until_ms: row.i64("lease_until_ms")?,
    })
}
