//! Objects of an account's library, and the USNs of their changes.
//!
//! Each creation, change and removal takes exactly the next USN. A removed object keeps its row, so
//! that clients with a copy learn about the removal. All writes happen below the account's root,
//! before another part of the same transaction locks the local clock. In a distributed store, the
//! first USN of an opening locks the clock in another transaction.

use driftline_db::{Column, DbError, Tx};
use strum::IntoStaticStr;

use super::{COLUMNS, IS_OWNERS, Library, LibraryOwner, PendingOpening};
use crate::{error::StoreError, id_types::LocalAccountId, local_ids};

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum ObjectKind {
    Bookmark,
    Favourite,
    List,
    ListMember,
    Marker,
    Filter,
}

impl ObjectKind {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// The library of a local account, for one or several changes of its objects. Each change stores
/// its USNs at once: the library's row is written before the clock is locked.
pub(crate) struct AccountLibrary {
    account: i64,
    library: Library,
}

impl AccountLibrary {
    /// Loads the library of an account that this transaction has locked.
    pub(crate) fn load(
        tx: &mut Tx<'_>,
        account: LocalAccountId,
    ) -> Result<AccountLibrary, StoreError> {
        let owner = LibraryOwner::Account(account);
        let opening = PendingOpening::ask(tx)?;
        let library = tx.query_opt(
            &format!("select {COLUMNS} from library l where {IS_OWNERS}"),
            &[&owner.id(), &owner.kind(), &owner.instance_id()],
            Library::from_row,
        )?;
        let last_opening = opening.read(tx)?;
        let mut library = library.ok_or(StoreError::NoAccount)?;
        library.last_opening = last_opening;
        let account = owner.id();
        Ok(AccountLibrary { account, library })
    }

    /// Adds `count` objects with consecutive IDs; returns the first. Locks the clock.
    pub(crate) fn add(
        &mut self,
        tx: &mut Tx<'_>,
        kind: ObjectKind,
        count: usize,
        now_ms: i64,
    ) -> Result<i64, DbError> {
        let usns = self.take_usns(tx, count)?;
        let first = local_ids::take(tx, now_ms, count)?;
        tx.execute_many_later(
            "insert into library_object (account_id, id, kind, first_usn, usn, removed)
             select $1, r.id, $2, r.usn, r.usn, false from {rows as r(id, usn)}",
            &[&self.account, &kind.name()],
            &[Column::i64(first..first + count as i64), Column::i64(usns)],
        )?;
        Ok(first)
    }

    /// Gives the next USN to a changed object.
    pub(crate) fn change(&mut self, tx: &mut Tx<'_>, id: i64) -> Result<(), DbError> {
        self.write(tx, &[id], false)
    }

    /// Gives the next USNs to removed objects, in their order. There must be one at least.
    pub(crate) fn remove(&mut self, tx: &mut Tx<'_>, ids: &[i64]) -> Result<(), DbError> {
        self.write(tx, ids, true)
    }

    fn write(&mut self, tx: &mut Tx<'_>, ids: &[i64], removed: bool) -> Result<(), DbError> {
        let usns = self.take_usns(tx, ids.len())?;
        tx.execute_many_later(
            "update library_object set usn = r.usn, removed = $2 from {rows as r(id, usn)}
             where account_id = $1 and library_object.id = r.id",
            &[&self.account, &removed],
            &[Column::i64(ids.iter().copied()), Column::i64(usns)],
        )
    }

    /// Takes the next USNs, in their order, and stores them. Only the first call may record the
    /// opening, because the clock may be locked later.
    fn take_usns(&mut self, tx: &mut Tx<'_>, count: usize) -> Result<Vec<i64>, DbError> {
        self.library.last_opening = Some(self.library.opening(tx)?);
        let usns = (0..count).map(|_| self.library.next_usn()).collect();
        self.library.save(tx)?;
        Ok(usns)
    }
}
