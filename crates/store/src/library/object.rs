//! Objects of an account's library, and the USNs of their changes.
//!
//! Each creation, change and removal takes exactly the next USN. A removed object keeps its row, so
//! that clients with a copy learn about the removal. All writes happen below the account's root,
//! before another part of the same transaction locks the local clock. In a distributed store, the
//! first USN of an opening locks the clock in another transaction.

use driftline_db::{Column, Tx};
use strum::IntoStaticStr;

use super::{Library, of_account};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
    local_ids,
};

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

/// Adds `count` objects with consecutive IDs; returns the first. Locks the clock.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    kind: ObjectKind,
    count: usize,
    now_ms: i64,
) -> Result<i64, StoreError> {
    let usns = take_usns(tx, account, count)?;
    let first = local_ids::take(tx, now_ms, count)?;
    tx.execute_many_later(
        "insert into library_object (account_id, id, kind, first_usn, usn, removed)
         select $1, r.id, $2, r.usn, r.usn, false from {rows as r(id, usn)}",
        &[&sql(account), &kind.name()],
        &[Column::i64(first..first + count as i64), Column::i64(usns)],
    )?;
    Ok(first)
}

/// Gives the next USN to a changed object.
pub(crate) fn change(tx: &mut Tx<'_>, account: LocalAccountId, id: i64) -> Result<(), StoreError> {
    write(tx, account, &[id], false)
}

/// Gives the next USNs to removed objects, in their order.
pub(crate) fn remove(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<(), StoreError> {
    write(tx, account, ids, true)
}

fn write(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
    removed: bool,
) -> Result<(), StoreError> {
    if ids.is_empty() {
        return Ok(());
    }
    let usns = take_usns(tx, account, ids.len())?;
    Ok(tx.execute_many_later(
        "update library_object set usn = r.usn, removed = $2 from {rows as r(id, usn)}
         where account_id = $1 and library_object.id = r.id",
        &[&sql(account), &removed],
        &[Column::i64(ids.iter().copied()), Column::i64(usns)],
    )?)
}

/// Takes the next USNs of an account's library, in their order.
fn take_usns(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    count: usize,
) -> Result<Vec<i64>, StoreError> {
    let mut library: Library = of_account(tx, account)?.ok_or(StoreError::NoAccount)?;
    let usns = (0..count).map(|_| library.next_usn()).collect();
    library.save(tx)?;
    Ok(usns)
}
