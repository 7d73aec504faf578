//! What instances say of themselves, and when they are to be asked again.
//!
//! Each row is of one instance that sources are read from. The hosts of authors have none: they are known by
//! their accounts' names ([`super::author_hosts`]).

use std::collections::HashMap;

use driftline_core::social::{InstanceInfo, InstanceSelfDescription};
use driftline_db::{DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, from_sql, sql},
};

/// The longest time until an instance is asked again, ms: a day and a tenth.
pub const MAX_WAIT_MS: i64 = 95_040_000;

/// What an instance said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredInstanceInfo {
    /// What it said.
    pub info: InstanceInfo,
    /// When, Unix ms.
    pub fetched_at_ms: i64,
}

/// When an instance is to be asked for what it says of itself, Unix ms; `None` if it never was.
pub fn asks_at_ms(tx: &mut Tx<'_>, instance: InstanceId) -> Result<Option<i64>, StoreError> {
    Ok(tx.query_opt(
        "select asks_at_ms from instance_info where instance_id = $1",
        &[&sql(instance)],
        |row| row.i64("asks_at_ms"),
    )?)
}

/// Takes it upon the caller to ask an instance, if that is due: nobody else is to ask it before that time, Unix ms.
/// `false` if it is not due, or another process was first. What is due after [`MAX_WAIT_MS`] a wrong clock set: it is
/// due now. To be written below
/// [`super::instance::root`] of it, which fails for one that was forgotten.
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

/// Stores what an instance said of itself, if it did, and when it is to be asked again, Unix ms; what it said before
/// stays otherwise. To be written below [`super::instance::root`] of it, which fails for one that was forgotten.
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

/// What instances said of themselves, as far as they did.
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
