//! The history of a library: the openings in which it gave USNs.
//!
//! A database that was restored or copied back lacks changes that clients have seen, and gives their
//! USNs to others. Each opening has a random nonce, so a client that names the opening of its last
//! USN shows which of both it has.

use driftline_db::{DbError, Tx};

use super::{IS_OWNERS, LibraryOwner, object};
use crate::{error::StoreError, id_types::LocalAccountId};

/// A library, as a client's copy of it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LibraryHistory {
    id: i64,
    instance_id: i64,
    /// The last USN of which the transaction reads the change; 0 if there is none.
    pub(crate) update_count: i64,
    /// The last USN that is known to be given.
    last_given: i64,
    /// The number that rises to make all clients start again.
    pub(crate) epoch: i64,
    /// The USN below which tombstones may be missing.
    pub(crate) horizon: i64,
}

impl LibraryHistory {
    /// The library of an owner.
    ///
    /// In a distributed store, an account's library lies on another node than its objects, and the two share no snapshot. So
    /// the objects' rows count for the last USN, too: the last change always has a row. A restored store continues above
    /// the USNs of its rows, so there they end below the library's count until the next change.
    pub(crate) fn load(tx: &mut Tx<'_>, owner: LibraryOwner) -> Result<LibraryHistory, StoreError> {
        let found = tx.query_opt(
            &format!(
                "select id, instance_id, update_count, epoch, horizon from library
                 where {IS_OWNERS}"
            ),
            &[&owner.id(), &owner.kind(), &owner.instance_id()],
            |row| {
                let update_count = row.i64("update_count")?;
                Ok(LibraryHistory {
                    id: row.i64("id")?,
                    instance_id: row.i64("instance_id")?,
                    update_count,
                    last_given: update_count,
                    epoch: row.i64("epoch")?,
                    horizon: row.i64("horizon")?,
                })
            },
        )?;
        let mut library = found.ok_or(match owner {
            LibraryOwner::Account(_) => StoreError::NoAccount,
            LibraryOwner::Source(_) => StoreError::NoSource,
        })?;
        if let LibraryOwner::Account(account) = owner
            && tx.is_distributed()
        {
            let last = object::last_usn(tx, account)?;
            library.last_given = last.max(library.update_count);
            library.update_count = last.min(library.update_count);
        }
        Ok(library)
    }

    /// The nonce of the opening in which a USN was given; empty if no USN was given up to it.
    pub(crate) fn nonce_at(self, tx: &mut Tx<'_>, usn: i64) -> Result<String, DbError> {
        let opening = tx.query_opt(
            "select opening_id from library_opening
             where library_id = $1 and instance_id = $2 and first_usn <= $3
             order by opening_id desc limit 1",
            &[&self.id, &self.instance_id, &usn],
            |row| row.i64("opening_id"),
        )?;
        let Some(opening) = opening else {
            return Ok(String::new());
        };
        tx.query_one(
            "select nonce from opening where id = $1",
            &[&opening],
            |row| row.text("nonce"),
        )
    }

    /// Returns true if the USN was given here, in the opening with this nonce. An empty nonce is
    /// that of a library that has given no USN.
    pub(crate) fn has_given(self, tx: &mut Tx<'_>, nonce: &str, usn: i64) -> Result<bool, DbError> {
        if usn > self.last_given {
            return Ok(false);
        }
        if nonce.is_empty() {
            return Ok(usn == 0);
        }
        let opening = tx.query_one(
            "select max(id) as id from opening where nonce = $1",
            &[&nonce],
            |row| row.opt_i64("id"),
        )?;
        let Some(opening) = opening else {
            return Ok(false);
        };
        let replaced = tx.query_opt(
            "select opening_id from library_opening
             where library_id = $1 and instance_id = $2 and opening_id > $3 and first_usn <= $4
             limit 1",
            &[&self.id, &self.instance_id, &opening, &usn],
            |row| row.i64("opening_id"),
        )?;
        Ok(replaced.is_none())
    }
}

/// Makes every replica of an account's library begin with a full sync. Must be written below the
/// account's root.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn require_full(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    let owner = LibraryOwner::Account(account);
    let raised = tx.execute(
        &format!("update library set epoch = epoch + 1 where {IS_OWNERS}"),
        &[&owner.id(), &owner.kind(), &owner.instance_id()],
    )?;
    match raised {
        0 => Err(StoreError::NoAccount),
        _ => Ok(()),
    }
}
