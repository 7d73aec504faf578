//! The ledgers of credentials' quotas, which processes share.
//!
//! Every write is below [`crate::quota::credential::root`] of the credential, so that processes take quota
//! one after the other. What a process has taken is gone for all others before it sends the
//! request.

use driftline_core::quota::QuotaLedger;
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::{CredentialId, from_sql, sql},
    text::{from_json, to_json},
};

/// A credential's ledger in a scope of its upstream's limits; a new one if it has none.
pub fn load(
    tx: &mut Tx<'_>,
    credential: CredentialId,
    scope: &str,
) -> Result<QuotaLedger, StoreError> {
    let json = tx.query_opt(
        "select ledger from quota where credential_id = $1 and scope = $2",
        &[&sql(credential), &scope],
        |row| row.text("ledger"),
    )?;
    json.map_or_else(|| Ok(QuotaLedger::default()), |json| parse(&json))
}

/// Stores a ledger. To be written below [`crate::quota::credential::root`].
pub fn store(
    tx: &mut Tx<'_>,
    credential: CredentialId,
    scope: &str,
    ledger: &QuotaLedger,
) -> Result<(), StoreError> {
    let json = to_json("a ledger of quotas", ledger)?;
    tx.execute(
        "insert into quota (credential_id, scope, ledger) values ($1, $2, $3)
         on conflict (credential_id, scope) do update set ledger = excluded.ledger",
        &[&sql(credential), &scope, &json],
    )?;
    Ok(())
}

/// Every ledger: of which credential, in which scope.
pub fn all(tx: &mut Tx<'_>) -> Result<Vec<(CredentialId, String, QuotaLedger)>, StoreError> {
    let rows = tx.query(
        "select credential_id, scope, ledger from quota order by credential_id, scope",
        &[],
        |row| {
            Ok((
                from_sql(row.i64("credential_id")?)?,
                row.text("scope")?,
                row.text("ledger")?,
            ))
        },
    )?;
    rows.into_iter()
        .map(|(credential, scope, json)| Ok((credential, scope, parse(&json)?)))
        .collect()
}

fn parse(json: &str) -> Result<QuotaLedger, StoreError> {
    from_json("a ledger of quotas", json)
}
