use driftline_core::sync::{LibraryDigest, Usn, object_digest};
use driftline_db::{Column, Tx};

use super::{
    cursor::{Cursor, current_cursor},
    values,
};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
    library::object::{self, KnownObject},
};

/// The digest of an account's library, with the cursor of a replica that has all of it. `None` if
/// too many digests of objects are not stored: [`store_digests`] stores some.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn library_digest(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<Option<(Cursor, LibraryDigest)>, StoreError> {
    let cursor = current_cursor(tx, account)?;
    let missing = object::without_digest(tx, account, COMPUTED_AT_ONCE + 1)?;
    if missing.len() > COMPUTED_AT_ONCE {
        return Ok(None);
    }
    let mut digest = object::stored_digests(tx, account)?;
    for (_, one) in digests(tx, account, &missing)? {
        digest.add(one.cast_unsigned());
    }
    Ok(Some((cursor, digest)))
}

/// Stores digests of objects that have none. Must be written below the account's root.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn store_digests(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    let missing = object::without_digest(tx, account, COMPUTED_AT_ONCE)?;
    let digests = digests(tx, account, &missing)?;
    let (ids, digests): (Vec<i64>, Vec<i64>) = digests.into_iter().unzip();
    Ok(tx.execute_many_later(
        "update library_object set digest = r.digest from {rows as r(id, digest)}
         where account_id = $1 and library_object.id = r.id",
        &[&sql(account)],
        &[Column::i64(ids), Column::i64(digests)],
    )?)
}

/// The digests of living objects, by their IDs. An object without a value, which no replica gets,
/// has none.
fn digests(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    objects: &[KnownObject],
) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut digests = Vec::with_capacity(objects.len());
    for batch in objects.chunks(VALUES_AT_ONCE) {
        let values = values::load(tx, account, batch, None)?;
        digests.extend(batch.iter().filter_map(|object| {
            let value = values.get(&object.key)?.json();
            let digest = object_digest(&object.key, Usn::new(object.usn.cast_unsigned()), &value);
            Some((object.id, digest.cast_signed()))
        }));
    }
    Ok(digests)
}

/// The number of digests that one request computes.
const COMPUTED_AT_ONCE: usize = 2_000;
/// The number of objects whose values are read together.
const VALUES_AT_ONCE: usize = 500;
