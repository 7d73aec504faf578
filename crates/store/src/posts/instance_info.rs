//! The descriptions that instances give of themselves, and the times at which they are requested
//! again.
//!
//! Each row belongs to an instance from which sources are read. The hosts of authors have no rows:
//! they are known from the names of their accounts ([`super::author_hosts`]).

use std::collections::HashMap;

use driftline_core::social::{InstanceInfo, InstanceSelfDescription};
use driftline_db::{DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, from_sql, sql},
};

/// The longest time until the description of an instance is requested again, ms: a day and a tenth.
pub const MAX_WAIT_MS: i64 = 95_040_000;

/// The description that an instance gave of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInstanceInfo {
    /// The description.
    pub info: InstanceInfo,
    /// The time at which it was fetched, in Unix ms.
    pub fetched_at_ms: i64,
}

/// The time at which the description of an instance is to be requested, in Unix ms; `None` if it
/// never was requested.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn asks_at_ms(tx: &mut Tx<'_>, instance: InstanceId) -> Result<Option<i64>, StoreError> {
    Ok(tx.query_opt(
        "select asks_at_ms from instance_info where instance_id = $1",
        &[&sql(instance)],
        |row| row.i64("asks_at_ms"),
    )?)
}

/// Reserves the request to an instance for the caller, if it is due: nobody else requests the
/// description before this time, in Unix ms. `false` if it is not due, or another process was
/// first. A time more than [`MAX_WAIT_MS`] away was set by a wrong clock, so the request is due
/// now. Must be written below [`super::instance::root`] of the instance, which fails if the
/// instance was forgotten.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn claim(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    next_at_ms: i64,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let claimed = tx.execute(
        "insert into instance_info (instance_id, asks_at_ms) values ($1, $2)
         on conflict (instance_id) do update set asks_at_ms = excluded.asks_at_ms
         where instance_info.asks_at_ms <= $3 or instance_info.asks_at_ms > $4",
        &[
            &sql(instance),
            &next_at_ms,
            &now_ms,
            &now_ms.saturating_add(MAX_WAIT_MS),
        ],
    )?;
    Ok(claimed == 1)
}

/// Stores the description of an instance, if it gave one, and the time of the next request, in Unix
/// ms. Without a new description the old one stays. Must be written below [`super::instance::root`]
/// of the instance, which fails if the instance was forgotten.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn store(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    said: Option<&StoredInstanceInfo>,
    next_at_ms: i64,
) -> Result<(), StoreError> {
    let id = sql(instance);
    let Some(StoredInstanceInfo {
        info,
        fetched_at_ms,
    }) = said
    else {
        let later = "update instance_info set asks_at_ms = $2 where instance_id = $1";
        tx.execute(later, &[&id, &next_at_ms])?;
        return Ok(());
    };
    let extensions = serde_json::to_string(info.extensions());
    let extensions = extensions.map_err(|error| StoreError::unreadable("extensions", &error))?;
    tx.execute(
        "update instance_info set name = $2, description = $3, version = $4, software_name = $5,
             extensions = $6, maintainer_name = $7, fetched_at_ms = $8, asks_at_ms = $9
         where instance_id = $1",
        &[
            &id,
            &info.name(),
            &info.description(),
            &info.version(),
            &info.software_name(),
            &extensions,
            &info.maintainer_name(),
            fetched_at_ms,
            &next_at_ms,
        ],
    )?;
    Ok(())
}

/// The descriptions of all instances that gave one.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all(tx: &mut Tx<'_>) -> Result<HashMap<InstanceId, StoredInstanceInfo>, StoreError> {
    let found = tx.query(
        "select instance_id, name, description, version, software_name, extensions, maintainer_name,
             fetched_at_ms
         from instance_info where fetched_at_ms is not null",
        &[],
        from_row,
    )?;
    Ok(found.into_iter().collect())
}

fn from_row(row: &Row<'_>) -> Result<(InstanceId, StoredInstanceInfo), DbError> {
    let extensions = serde_json::from_str(row.str("extensions")?);
    let said = InstanceSelfDescription {
        name: row.text("name")?,
        description: row.text("description")?,
        version: row.text("version")?,
        software_name: row.text("software_name")?,
        extensions: extensions.map_err(|_| DbError::invalid("extensions that are no list"))?,
        maintainer_name: row.text("maintainer_name")?,
    };
    let said = StoredInstanceInfo {
        info: said.into(),
        fetched_at_ms: row.i64("fetched_at_ms")?,
    };
    Ok((from_sql(row.i64("instance_id")?)?, said))
}
