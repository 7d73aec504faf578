//! The keys on which the processes of a store agree.

use driftline_db::{DbError, Row, Tx};

use crate::error::StoreError;

/// The keys of a store's processes. A restored store has another name than its original, and so
/// none of its keys.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerKeys {
    /// A fingerprint of the key of sealed texts.
    pub fingerprint: String,
    /// The keys of native tokens, sealed with that key.
    pub sealed_token_keys: String,
}

/// The recorded keys, if there are any.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn load(tx: &mut Tx<'_>) -> Result<Option<ServerKeys>, StoreError> {
    Ok(tx.query_opt(
        "select fingerprint, token_keys from server_keys
         where store_nonce = (select nonce from store_identity where one = 1)",
        &[],
        ServerKeys::from_row,
    )?)
}

/// Records keys, unless some are recorded. Returns the recorded ones.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn record(tx: &mut Tx<'_>, keys: &ServerKeys) -> Result<ServerKeys, StoreError> {
    tx.execute(
        "insert into server_keys (store_nonce, fingerprint, token_keys)
         select nonce, $1, $2 from store_identity where one = 1
         on conflict (store_nonce) do nothing",
        &[&keys.fingerprint, &keys.sealed_token_keys],
    )?;
    Ok(load(tx)?.unwrap_or_else(|| keys.clone()))
}

/// Replaces the sealed keys of native tokens if they still equal `before`. Returns true if it did.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn replace_token_keys(
    tx: &mut Tx<'_>,
    before: &ServerKeys,
    sealed: &str,
) -> Result<bool, StoreError> {
    let replaced = tx.execute(
        "update server_keys set token_keys = $1 where fingerprint = $2 and token_keys = $3",
        &[&sealed, &before.fingerprint, &before.sealed_token_keys],
    )?;
    Ok(replaced > 0)
}

/// Removes the keys, so that the next process brings others. Returns true if there were any.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn forget(tx: &mut Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.execute("delete from server_keys", &[])? > 0)
}

impl ServerKeys {
    fn from_row(row: &Row<'_>) -> Result<ServerKeys, DbError> {
        Ok(ServerKeys {
            fingerprint: row.text("fingerprint")?,
            sealed_token_keys: row.text("token_keys")?,
        })
    }
}

impl std::fmt::Debug for ServerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerKeys(…)")
    }
}
