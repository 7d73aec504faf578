use driftline_core::sync::{LibraryDigest, object_digest};
use driftline_db::Tx;

use super::{
    cursor::{Cursor, current_cursor},
    values,
};
use crate::{
    error::StoreError,
    id_types::LocalAccountId,
    library::object::{self, KnownObject, NO_VALUE_DIGEST, ObjectDigest},
};

/// The digest of a library, or digests of objects that must be stored before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DigestReading {
    /// The digest, with the cursor of a replica that has all of the library.
    Whole(Cursor, LibraryDigest),
    /// Too many digests of objects are not stored. These are some of them, for [`super::store_digests`].
    Missing(Vec<ObjectDigest>),
}

/// Reads the digest of an account's library.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn library_digest(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<DigestReading, StoreError> {
    let cursor = current_cursor(tx, account)?;
    let mut missing = object::without_digest(tx, account, COMPUTED_AT_ONCE + 1)?;
    let is_too_many = missing.len() > COMPUTED_AT_ONCE;
    missing.truncate(COMPUTED_AT_ONCE);
    let digests = digests(tx, account, &missing)?;
    if is_too_many {
        return Ok(DigestReading::Missing(digests));
    }
    let mut digest = object::stored_digests(tx, account)?;
    for one in digests.iter().filter(|of| of.digest != NO_VALUE_DIGEST) {
        digest.add(one.digest.cast_unsigned());
    }
    Ok(DigestReading::Whole(cursor, digest))
}

/// The digests of living objects.
fn digests(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    objects: &[KnownObject],
) -> Result<Vec<ObjectDigest>, StoreError> {
    let mut digests = Vec::with_capacity(objects.len());
    for batch in objects.chunks(VALUES_AT_ONCE) {
        let values = values::load(tx, account, batch, None)?;
        digests.extend(batch.iter().map(|object| {
            let value = values.get(&object.key);
            let digest = value.map(|value| object_digest(&object.key, object.usn(), &value.json()));
            ObjectDigest {
                id: object.id,
                usn: object.usn,
                digest: digest.map_or(NO_VALUE_DIGEST, u64::cast_signed),
            }
        }));
    }
    Ok(digests)
}

/// The number of digests that one read computes.
const COMPUTED_AT_ONCE: usize = 2_000;
/// The number of objects whose values are read together.
const VALUES_AT_ONCE: usize = 500;
