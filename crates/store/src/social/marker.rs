//! Read markers: the positions up to which an account has read timelines, as reported by apps. They
//! are objects of its library. Must be written below the account's root.

use driftline_core::{
    social::MarkedTimeline,
    sync::{ObjectKey, ObjectKind},
};
use driftline_db::{Row, Tx};

use super::{local_account, parsed};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    library::object::AccountLibrary,
};

/// A read marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The timeline.
    pub timeline: MarkedTimeline,
    /// The last ID that was read.
    pub last_read_id: LocalId,
    /// The number of its changes.
    pub version: i64,
    /// The time of its last change, in Unix ms.
    pub updated_at_ms: i64,
}

/// The marker has changed since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Conflict during update, please try again")]
pub struct MarkerConflict;

/// The markers of an account, in no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<Marker>, StoreError> {
    let rows = tx.query(
        "select timeline, last_read_id, version, updated_at_ms from marker where account_id = $1",
        &[&sql(account)],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// Sets a marker whose version was `version`, or 0 for a new one. An equal one is not changed.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more).
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    timeline: MarkedTimeline,
    last_read_id: LocalId,
    version: i64,
    now_ms: i64,
) -> Result<Result<Marker, MarkerConflict>, StoreError> {
    local_account::require(tx, account)?;
    let known = tx.query_opt(
        "select id, timeline, last_read_id, version, updated_at_ms from marker
         where account_id = $1 and timeline = $2",
        &[&sql(account), &timeline.name()],
        |row| Ok((row.i64("id")?, from_row(row))),
    )?;
    let known = known
        .map(|(id, marker)| Ok::<_, StoreError>((id, marker?)))
        .transpose()?;
    if known.map_or(0, |(_, marker)| marker.version) != version {
        return Ok(Err(MarkerConflict));
    }
    let marker = Marker {
        timeline,
        last_read_id,
        version: version + 1,
        updated_at_ms: now_ms,
    };
    let id = match known {
        Some((_, known)) if known.last_read_id == last_read_id => return Ok(Ok(known)),
        Some((id, _)) => {
            AccountLibrary::load(tx, account)?.change(tx, id)?;
            id
        }
        None => {
            let keys = [ObjectKey::marker(timeline)];
            AccountLibrary::load(tx, account)?.add(tx, ObjectKind::Marker, &keys, now_ms)?
        }
    };
    tx.execute_later(
        "insert into marker (account_id, timeline, id, last_read_id, version, updated_at_ms)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (account_id, timeline) do update
             set last_read_id = $4, version = $5, updated_at_ms = $6",
        &[
            &sql(account),
            &timeline.name(),
            &id,
            &sql(last_read_id),
            &marker.version,
            &now_ms,
        ],
    )?;
    Ok(Ok(marker))
}

fn from_row(row: &Row<'_>) -> Result<Marker, StoreError> {
    Ok(Marker {
        timeline: parsed("a marked timeline", row.str("timeline")?)?,
        last_read_id: from_sql(row.i64("last_read_id")?)?,
        version: row.i64("version")?,
        updated_at_ms: row.i64("updated_at_ms")?,
    })
}
