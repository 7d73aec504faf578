use driftline_core::sync::LibraryDigest;
use driftline_db::Tx;

use super::{
    chunk::chunk,
    cursor::{Cursor, current_cursor},
};
use crate::{error::StoreError, id_types::LocalAccountId};

/// The digest of an account's library, with the cursor of a replica that has all of it.
///
/// # Errors
/// The same as those of [`chunk`].
pub fn library_digest(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<(Cursor, LibraryDigest), StoreError> {
    let mut digest = LibraryDigest::default();
    let mut cursor = None;
    loop {
        let part = chunk(tx, account, cursor.as_ref(), OBJECTS_AT_ONCE, BYTES_AT_ONCE)?;
        let Some(part) = part else { break };
        for object in part.objects {
            digest.add(&object.key, object.usn, &object.value.json());
        }
        if !part.more {
            break;
        }
        cursor = Some(part.cursor);
    }
    Ok((current_cursor(tx, account)?, digest))
}

const OBJECTS_AT_ONCE: u32 = 1_000;
const BYTES_AT_ONCE: usize = 4_000_000;
