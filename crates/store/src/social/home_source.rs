//! Sources whose posts an account has in its home timeline. To be written below the account's root.

use driftline_db::{PendingRows, Tx};

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, SourceId, from_sql, sql},
};

/// Takes a source into an account's home timeline. Whether the account may read it is asked whenever the
/// timeline is read.
///
/// # Errors
/// [`StoreError::NoAccount`] if there is no such account (any more).
pub fn add(tx: &mut Tx<'_>, account: LocalAccountId, source: SourceId) -> Result<(), StoreError> {
    local_account::require(tx, account)?;
    Ok(tx.execute_later(
        "insert into home_source (account_id, source_id) values ($1, $2)
         on conflict (account_id, source_id) do nothing",
        &[&sql(account), &sql(source)],
    )?)
}

/// Leaves a source out of it; `false` if it was not there.
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

/// The sources of an account's home timeline, by their IDs; some may be gone.
pub fn all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<SourceId>, StoreError> {
    let pending = all_later(tx, account)?;
    Ok(tx.rows(pending)?)
}

/// [`all`], along with what is asked next.
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
