//! The columns of a hashed passphrase, which `local_account` and `pending_account` both have.

use driftline_core::social::{HashCost, PassphraseHash};
use driftline_db::Row;

use crate::error::StoreError;

pub(super) const COLUMNS: &str =
    "passphrase_hash, salt, hash_memory_kib, hash_passes, hash_lanes, normalization";

pub(super) fn from_row(row: &Row<'_>) -> Result<PassphraseHash, StoreError> {
    let salt = row.bytes("salt")?;
    let salt = salt.try_into();
    let salt = salt.map_err(|_| StoreError::unreadable(WHAT, &"a salt of another length"))?;
    let cost = |column| -> Result<u32, StoreError> {
        let number = u32::try_from(row.i64(column)?);
        number.map_err(|error| StoreError::unreadable(WHAT, &error))
    };
    Ok(PassphraseHash {
        hash: row.bytes("passphrase_hash")?,
        salt,
        cost: HashCost {
            memory_kib: cost("hash_memory_kib")?,
            passes: cost("hash_passes")?,
            lanes: cost("hash_lanes")?,
        },
        normalization: row.i64("normalization")?,
    })
}

const WHAT: &str = "a passphrase's hash";
