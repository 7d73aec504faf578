//! Libraries: what one owner keeps and syncs, under one sequence of update sequence numbers (USNs).
//!
//! A library is a row of its own, and its USNs are only taken from it. Today each source owns one,
//! which holds its entries. Whoever takes USNs has locked the owner's row, which is the write's root.
//!
//! Each opening of the store is recorded under a random nonce ([`record_opening`]), and a library
//! names the last one in which it gave a USN, with the first that it gave then. So whoever remembers
//! an opening and a USN can see that a copy of the store went its own way since.

use driftline_db::{DbError, Dialect, Row, Tx};

use crate::{
    database_clock::now_sql,
    id_types::{SourceId, sql},
    local_ids::{self, IdCounter},
};

/// What a library belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A source, whose entries it holds.
    Source(SourceId),
}

/// A library, whose USNs this transaction alone takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    id: i64,
    /// The last USN, this transaction's included.
    pub(crate) update_count: i64,
    /// The last USN before this transaction.
    before: i64,
    /// The opening in which it gave a USN last, and the first USN that it gave then.
    given_in: i64,
    first_usn: i64,
    /// The store's last opening.
    opening: i64,
}

impl Owner {
    fn kind(self) -> &'static str {
        match self {
            Owner::Source(_) => SOURCE,
        }
    }

    fn id(self) -> i64 {
        match self {
            Owner::Source(source) => sql(source),
        }
    }
}

/// Adds the empty library of a new owner. Holds the clock.
pub(crate) fn add(tx: &mut Tx<'_>, owner: Owner) -> Result<(), DbError> {
    let id = local_ids::take_numbers(tx, IdCounter::Library, 1)?;
    tx.execute_later(
        "insert into library (id, owner_kind, owner_id, update_count, opening_id, first_usn)
         values ($1, $2, $3, 0, 0, 1)",
        &[&id, &owner.kind(), &owner.id()],
    )
}

/// Removes an owner's library.
pub(crate) fn remove(tx: &mut Tx<'_>, owner: Owner) -> Result<(), DbError> {
    tx.execute_later(
        "delete from library where owner_id = $1 and owner_kind = $2",
        &[&owner.id(), &owner.kind()],
    )
}

/// The last USN of an owner's library; `None` if there is no such owner.
pub(crate) fn update_count(tx: &mut Tx<'_>, owner: Owner) -> Result<Option<i64>, DbError> {
    tx.query_opt(
        "select update_count from library where owner_id = $1 and owner_kind = $2",
        &[&owner.id(), &owner.kind()],
        |row| row.i64("update_count"),
    )
}

/// The columns that [`Library::from_row`] reads, of a `library l`.
pub(crate) const COLUMNS: &str = "l.id as library_id, l.update_count, l.opening_id, l.first_usn,
    coalesce((select max(id) from opening), 0) as last_opening_id";

/// Joins the libraries `l` of sources `s`.
pub(crate) const OF_SOURCES: &str =
    "join library l on l.owner_id = s.id and l.owner_kind = 'source'";

impl Library {
    /// Of the [`COLUMNS`] of a row whose owner this transaction has locked.
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Library, DbError> {
        let update_count = row.i64("update_count")?;
        Ok(Library {
            id: row.i64("library_id")?,
            update_count,
            before: update_count,
            given_in: row.i64("opening_id")?,
            first_usn: row.i64("first_usn")?,
            opening: row.i64("last_opening_id")?,
        })
    }

    /// Takes the next USN.
    pub(crate) fn next_usn(&mut self) -> i64 {
        self.update_count += 1;
        self.update_count
    }

    /// Stores the USNs that this transaction has taken.
    pub(crate) fn save(&self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        if self.update_count == self.before {
            return Ok(());
        }
        let first_usn = match self.given_in < self.opening {
            true => self.before + 1,
            false => self.first_usn,
        };
        tx.execute_later(
            "update library set update_count = $2, opening_id = $3, first_usn = $4 where id = $1",
            &[&self.id, &self.update_count, &self.opening, &first_usn],
        )
    }
}

/// Records that the store was opened, under a new nonce. To be written below [`local_ids::root`].
pub(crate) fn record_opening(tx: &mut Tx<'_>) -> Result<(), DbError> {
    let (nonce, now) = (random_nonce(tx.dialect()), now_sql(tx.dialect()));
    let sql = format!(
        "insert into opening (id, nonce, opened_at_ms)
         select coalesce(max(id), 0) + 1, {nonce}, {now} from opening"
    );
    tx.execute_later(&sql, &[])
}

/// 32 random hexadecimal digits, in SQL.
pub(crate) fn random_nonce(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "lower(hex(randomblob(16)))",
        Dialect::Postgres => "replace(gen_random_uuid()::text, '-', '')",
    }
}

const SOURCE: &str = "source";
