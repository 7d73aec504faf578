use driftline_core::sync::{ObjectKey, RawJson, SyncedObject};
use driftline_db::{Column, Tx};

use super::values::{self, ShownPosts};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
    library::object::{KnownObject, OBJECT_COLUMNS},
};

/// The objects of an account with these keys, as they are now. Bookmarks have copies of their posts.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database fails; the errors of the
/// writer.
pub fn current_objects(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    keys: &[ObjectKey],
    shown: ShownPosts<'_>,
) -> Result<Vec<SyncedObject>, StoreError> {
    let objects = tx.query(
        &format!(
            "select {OBJECT_COLUMNS} from library_object
             where account_id = $1 and key {{in $2}} and not removed"
        ),
        &[
            &sql(account),
            &Column::text(keys.iter().map(ObjectKey::as_str)),
        ],
        KnownObject::from_row,
    )?;
    let mut values = values::load(tx, account, &objects, Some(shown))?;
    let objects = objects.into_iter().filter_map(|object| {
        Some(SyncedObject {
            value: RawJson::from(&values.remove(&object.key)?.json()),
            usn: object.usn(),
            key: object.key,
        })
    });
    Ok(objects.collect())
}
