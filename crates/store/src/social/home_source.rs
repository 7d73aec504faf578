//! Sources whose posts are part of an account's home timeline. Must be written below the account's
//! root.

use driftline_db::{PendingRows, Tx};

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, SourceId, from_sql, sql},
};

/// Adds a source to an account's home timeline. The account's right to read it is checked at each
/// reading of the timeline.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more).
pub fn add(tx: &mut Tx<'_>, account: LocalAccountId, source: SourceId) -> Result<(), StoreError> {
    local_account::require(tx, account)?;
    Ok(tx.execute_later(
        "insert into home_source (account_id, source_id) values ($1, $2)
         on conflict (account_id, source_id) do nothing",
        &[&sql(account), &sql(source)],
    )?)
}

/// Removes a source from it. Returns `false` if it was not part of it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    source: SourceId,
) -> Result<bool, StoreError> {
    let removed = tx.execute(
        "delete from home_source where account_id = $1 and source_id = $2",
        &[&sql(account), &sql(source)],
    )?;
    Ok(removed > 0)
}

/// The sources of an account's home timeline, by their IDs. Some may be gone.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<SourceId>, StoreError> {
    let pending = all_later(tx, account)?;
    Ok(tx.rows(pending)?)
}

/// [`all`], requested together with the next query.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<PendingRows<'static, SourceId>, StoreError> {
    Ok(tx.query_later(
        "select source_id from home_source where account_id = $1 order by source_id",
        &[&sql(account)],
        |row| from_sql(row.i64("source_id")?),
    )?)
}

pub(super) fn remove_all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    Ok(tx.execute_later(
        "delete from home_source where account_id = $1",
        &[&sql(account)],
    )?)
}
