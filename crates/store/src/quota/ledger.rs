//! The ledgers of credentials' quotas, which processes share.
//!
//! Every write is below [`crate::quota::credential::root`] of the credential, so that processes
//! take quota one after the other. Quota that a process has taken is gone for all others before it
//! sends the request.

use driftline_core::quota::QuotaLedger;
use driftline_db::{Row, Tx};

use crate::{
    error::StoreError,
    id_types::{CredentialId, CredentialKey, from_sql},
    text::{from_json, to_json},
};

/// A credential's ledger in a scope of its upstream's limits; a new one if it has none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn load(
    tx: &mut Tx<'_>,
    credential: CredentialKey,
    scope: &str,
) -> Result<QuotaLedger, StoreError> {
    let json = tx.query_opt(
        "select ledger from quota
         where credential_id = $1 and scope = $2 and instance_id = $3",
        &[&credential.id(), &scope, &credential.instance_id()],
        |row| row.text("ledger"),
    )?;
    json.map_or_else(
        || Ok(QuotaLedger::default()),
        |json| from_json(LEDGER, &json),
    )
}

/// Stores a ledger. Must be written below [`crate::quota::credential::root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn store(
    tx: &mut Tx<'_>,
    credential: CredentialKey,
    scope: &str,
    ledger: &QuotaLedger,
) -> Result<(), StoreError> {
    let json = to_json(LEDGER, ledger)?;
    tx.execute(
        "insert into quota (credential_id, scope, ledger, instance_id) values ($1, $2, $3, $4)
         on conflict ({key credential_id, scope + instance_id}) do update set ledger = excluded.ledger",
        &[
            &credential.id(),
            &scope,
            &json,
            &credential.instance_id(),
        ],
    )?;
    Ok(())
}

/// All ledgers, with their credentials and scopes.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all(tx: &mut Tx<'_>) -> Result<Vec<(CredentialId, String, QuotaLedger)>, StoreError> {
    let rows = tx.query(
        "select credential_id, scope, ledger from quota order by credential_id, scope",
        &[],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

fn from_row(row: &Row<'_>) -> Result<(CredentialId, String, QuotaLedger), StoreError> {
    let ledger = from_json(LEDGER, row.str("ledger")?)?;
    let credential = from_sql(row.i64("credential_id")?)?;
    Ok((credential, row.text("scope")?, ledger))
}

const LEDGER: &str = "a ledger of quotas";
