use driftline_db::Tx;

use super::cursor::Cursor;
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, SourceKey},
    library::{LibraryOwner, history::LibraryHistory},
};

/// The way in which a replica is brought up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// By a full sync.
    Full {
        /// The place at which it begins or continues.
        cursor: Cursor,
    },
    /// By the changes above its cursor.
    Changes,
    /// The replica has everything.
    Current,
    /// The replica has changes that this store does not have.
    Diverged,
}

/// Decides how a replica with this cursor is brought up to date. A full sync continues at its
/// cursor, whatever the epoch and the horizon are by now: a replica would not notice that it began again.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn start(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    cursor: Option<&Cursor>,
) -> Result<Start, StoreError> {
    let library = LibraryHistory::load(tx, LibraryOwner::Account(account))?;
    decide(tx, library, cursor)
}

/// [`start`] for the library of a source.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn source_start(
    tx: &mut Tx<'_>,
    source: SourceKey,
    cursor: Option<&Cursor>,
) -> Result<Start, StoreError> {
    let library = LibraryHistory::load(tx, LibraryOwner::Source(source))?;
    decide(tx, library, cursor)
}

/// [`start`] for a library that was read in the same snapshot.
pub(super) fn decide(
    tx: &mut Tx<'_>,
    library: LibraryHistory,
    cursor: Option<&Cursor>,
) -> Result<Start, StoreError> {
    if let Some(cursor) = cursor {
        // First, since a full sync would remove what this store has lost.
        if !library.has_given(tx, &cursor.nonce, cursor.usn)? {
            return Ok(Start::Diverged);
        }
        if cursor.below.is_some() {
            return Ok(Start::Full {
                cursor: cursor.clone(),
            });
        }
        if cursor.epoch == library.epoch && cursor.position() >= library.horizon {
            // A cursor may be above the changes that a distributed store shows at this moment.
            return Ok(match cursor.position() >= library.update_count {
                true => Start::Current,
                false => Start::Changes,
            });
        }
    }
    let newest = Cursor::at(tx, library, library.update_count)?;
    let cursor = Cursor {
        below: Some(library.update_count.saturating_add(1)),
        ..newest
    };
    Ok(Start::Full { cursor })
}
