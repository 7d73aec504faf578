//! Objects of an account's library, and the USNs of their changes.
//!
//! Each creation, change and removal takes exactly the next USN. A removed object keeps its row, so
//! that clients with a copy learn about the removal. If an object with its key comes again, it gets
//! the same row, under a new ID. All writes happen below the account's root, before another part of
//! the same transaction locks the local clock. In a distributed store, the first USN of an opening
//! locks the clock in another transaction.

use driftline_core::sync::{LibraryDigest, ObjectKey, ObjectKind, Usn, VALUE_FORM};
use driftline_db::{Column, DbError, Row, Tx};

use super::{COLUMNS, IS_OWNERS, Library, LibraryOwner, PendingOpening};
use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
    local_ids,
};

/// An object that an account has, or had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownObject {
    pub(crate) id: i64,
    pub(crate) key: ObjectKey,
    /// The USN of its last change.
    pub(crate) usn: i64,
    pub(crate) is_removed: bool,
}

impl KnownObject {
    /// The USN, as messages have it.
    pub(crate) fn usn(&self) -> Usn {
        Usn::new(self.usn.cast_unsigned())
    }

    /// Reads the [`OBJECT_COLUMNS`] of a row.
    pub(crate) fn from_row(row: &Row<'_>) -> Result<KnownObject, DbError> {
        let key = ObjectKey::parse(row.str("key")?);
        Ok(KnownObject {
            id: row.i64("id")?,
            key: key.map_err(|error| DbError::invalid(error.to_string()))?,
            usn: row.i64("usn")?,
            is_removed: row.bool("removed")?,
        })
    }
}

/// The columns that [`KnownObject::from_row`] reads.
pub(crate) const OBJECT_COLUMNS: &str = "id, key, usn, removed";

/// The object with a key; `None` if the account never had it.
pub(crate) fn find(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    key: &ObjectKey,
) -> Result<Option<KnownObject>, DbError> {
    tx.query_opt(
        &format!("select {OBJECT_COLUMNS} from library_object where account_id = $1 and key = $2"),
        &[&sql(account), &key.as_str()],
        KnownObject::from_row,
    )
}

/// The USN of the last change of an account's objects; 0 if there was none.
pub(crate) fn last_usn(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<i64, DbError> {
    tx.query_one(
        "select coalesce(max(usn), 0) as usn from library_object where account_id = $1",
        &[&sql(account)],
        |row| row.i64("usn"),
    )
}

/// The key of an object; `None` if the account does not have it.
pub(crate) fn key_by_id(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: i64,
) -> Result<Option<ObjectKey>, DbError> {
    let found = tx.query_opt(
        &format!("select {OBJECT_COLUMNS} from library_object where account_id = $1 and id = $2"),
        &[&sql(account), &id],
        KnownObject::from_row,
    )?;
    let living = found.filter(|object| !object.is_removed);
    Ok(living.map(|object| object.key))
}

/// Returns true if the account has an object with one of these keys.
pub(crate) fn has_any(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    keys: &[ObjectKey],
) -> Result<bool, DbError> {
    let found = tx.query_opt(
        "select id from library_object where account_id = $1 and key {in $2} and not removed limit 1",
        &[
            &sql(account),
            &Column::text(keys.iter().map(ObjectKey::as_str)),
        ],
        |row| row.i64("id"),
    )?;
    Ok(found.is_some())
}

/// The digest of the living objects whose digests are stored, without those that have no value.
pub(crate) fn stored_digests(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<LibraryDigest, DbError> {
    // A sum of the whole numbers would be too large for the database.
    tx.query_one(
        "select count(*) as objects, coalesce(cast(sum(digest >> 32) as {i64}), 0) as upper,
             coalesce(cast(sum(digest & 4294967295) as {i64}), 0) as lower
         from library_object
         where account_id = $1 and not removed and digest <> $2 and digest_form = $3",
        &[&sql(account), &NO_VALUE_DIGEST, &VALUE_FORM],
        |row| {
            let objects = row.i64("objects")?.cast_unsigned();
            let (upper, lower) = (row.i64("upper")?, row.i64("lower")?);
            Ok(LibraryDigest::from_sums(objects, upper, lower))
        },
    )
}

/// Living objects whose digests are not stored, or are those of values in another form.
pub(crate) fn without_digest(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    limit: usize,
) -> Result<Vec<KnownObject>, DbError> {
    tx.query(
        &format!(
            "select {OBJECT_COLUMNS} from library_object
             where account_id = $1 and not removed and (digest is null or digest_form <> $2)
             limit $3"
        ),
        &[&sql(account), &VALUE_FORM, &(limit as i64)],
        KnownObject::from_row,
    )
}

/// An object's digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectDigest {
    pub(crate) id: i64,
    /// The USN of the version to which the digest belongs.
    pub(crate) usn: i64,
    pub(crate) digest: i64,
}

/// Stores digests of objects, except for objects that have changed since they were read. Returns the number of those that were
/// stored. Must be written below the account's root.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn store_digests(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    digests: &[ObjectDigest],
) -> Result<u64, StoreError> {
    Ok(tx.execute_many(
        "update library_object set digest = r.digest, digest_form = $2
         from {rows as r(id, usn, digest)}
         where account_id = $1 and library_object.id = r.id and library_object.usn = r.usn",
        &[&sql(account), &VALUE_FORM],
        &[
            Column::i64(digests.iter().map(|of| of.id)),
            Column::i64(digests.iter().map(|of| of.usn)),
            Column::i64(digests.iter().map(|of| of.digest)),
        ],
    )?)
}

/// Removes an object of an account, and its row in the table of its kind.
pub(crate) fn remove_with_row(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    table: &str,
    id: i64,
) -> Result<(), StoreError> {
    AccountLibrary::load(tx, account)?.remove(tx, &[id])?;
    Ok(tx.execute_later(
        &format!("delete from {table} where account_id = $1 and id = $2"),
        &[&sql(account), &id],
    )?)
}

/// The number of an account's rows in the table of a kind.
pub(crate) fn count_rows(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    table: &str,
) -> Result<i64, DbError> {
    tx.query_one(
        &format!("select count(*) as objects from {table} where account_id = $1"),
        &[&sql(account)],
        |row| row.i64("objects"),
    )
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
        if tx.is_distributed() {
            // The library's node may not show the last commit yet.
            library.update_count = library.update_count.max(last_usn(tx, account)?);
            library.before = library.update_count;
        }
        let account = owner.id();
        Ok(AccountLibrary { account, library })
    }

    /// Adds objects with these keys, and gives them consecutive IDs in the order of the keys; returns
    /// the first. Keys of removed objects name these again. An object that exists is changed, and has
    /// a new ID. Locks the clock.
    pub(crate) fn add(
        &mut self,
        tx: &mut Tx<'_>,
        kind: ObjectKind,
        keys: &[ObjectKey],
        now_ms: i64,
    ) -> Result<i64, DbError> {
        let usns = self.take_usns(tx, keys.len())?;
        let first = local_ids::take(tx, now_ms, keys.len())?;
        tx.execute_many_later(
            "insert into library_object (account_id, id, key, kind, first_usn, usn, removed)
             select $1, r.id, r.key, $2, r.usn, r.usn, false from {rows as r(id, key, usn)}
             where true
             on conflict (account_id, key) do update
                 set id = excluded.id, usn = excluded.usn, removed = excluded.removed,
                     digest = null",
            &[&self.account, &kind.name()],
            &[
                Column::i64(first..first + keys.len() as i64),
                Column::text(keys.iter().map(ObjectKey::as_str)),
                Column::i64(usns),
            ],
        )?;
        Ok(first)
    }

    /// Gives the next USN to a changed object.
    pub(crate) fn change(&mut self, tx: &mut Tx<'_>, id: i64) -> Result<(), DbError> {
        self.change_all(tx, &[id])
    }

    /// Gives the next USNs to changed objects, in their order. There must be one at least.
    pub(crate) fn change_all(&mut self, tx: &mut Tx<'_>, ids: &[i64]) -> Result<(), DbError> {
        self.write(tx, ids, false)
    }

    /// Gives the next USNs to removed objects, in their order. There must be one at least.
    pub(crate) fn remove(&mut self, tx: &mut Tx<'_>, ids: &[i64]) -> Result<(), DbError> {
        self.write(tx, ids, true)
    }

    /// Deletes the oldest tombstones, but none of the newest. The horizon moves in the same transaction, so a client
    /// that may lack one of them starts again.
    fn collect(&mut self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        let last = tx.query_opt(
            "select usn from library_object where account_id = $1 and removed
             order by usn desc limit 1 offset $2",
            &[&self.account, &MAX_TOMBSTONES],
            |row| row.i64("usn"),
        )?;
        let Some(last) = last else { return Ok(()) };
        let last_at_once = tx.query_opt(
            "select usn from library_object where account_id = $1 and removed
             order by usn limit 1 offset $2",
            &[&self.account, &(COLLECTED_AT_ONCE - 1)],
            |row| row.i64("usn"),
        )?;
        let last = last_at_once.map_or(last, |usn| usn.min(last));
        tx.execute_later(
            "delete from library_object where account_id = $1 and removed and usn <= $2",
            &[&self.account, &last],
        )?;
        self.library.raise_horizon(tx, last)
    }

    fn write(&mut self, tx: &mut Tx<'_>, ids: &[i64], removed: bool) -> Result<(), DbError> {
        let usns = self.take_usns(tx, ids.len())?;
        tx.execute_many_later(
            "update library_object set usn = r.usn, removed = $2, digest = null
             from {rows as r(id, usn)} where account_id = $1 and library_object.id = r.id",
            &[&self.account, &removed],
            &[Column::i64(ids.iter().copied()), Column::i64(usns)],
        )
    }

    /// Takes the next USNs, in their order, and stores them. Only the first call may record the
    /// opening, because the clock may be locked later. Old tombstones are collected every [`COLLECT_EVERY`] USNs.
    fn take_usns(&mut self, tx: &mut Tx<'_>, count: usize) -> Result<Vec<i64>, DbError> {
        let collections = self.library.update_count / COLLECT_EVERY;
        let opening = self.library.opening(tx)?;
        self.library.last_opening = Some(opening);
        let usns = (0..count).map(|_| self.library.next_usn()).collect();
        self.library.save(tx)?;
        self.library.opening_id = opening;
        if self.library.update_count / COLLECT_EVERY > collections {
            self.collect(tx)?;
        }
        Ok(usns)
    }
}

/// The digest of a living object without a value, which no replica gets.
pub(crate) const NO_VALUE_DIGEST: i64 = 0;

/// The number of tombstones that collections leave.
const MAX_TOMBSTONES: i64 = 10_000;
/// The largest number of tombstones that a collection deletes.
const COLLECTED_AT_ONCE: i64 = 5_000;
/// The number of USNs from one collection to the next.
const COLLECT_EVERY: i64 = 1_000;
