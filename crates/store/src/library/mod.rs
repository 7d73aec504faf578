//! Libraries: the synced objects of one owner, with one sequence of update sequence numbers (USNs).
//!
//! A library is a row of its own, the only place from which its USNs are taken. Each source owns
//! one, which contains its entries, and each local account owns one for its own objects. A
//! transaction that takes USNs has locked the owner's row, which is the write's root.
//!
//! Each opening of the store that gives a USN is recorded with the first, under a random nonce. For
//! each library, `library_opening` has the openings in which it gave USNs, each with the first of
//! them. A cursor of a client contains an opening and a USN, so it shows whether the client has
//! changes of another history: see [`history`].

pub(crate) mod history;
pub(crate) mod object;

use driftline_db::{DbError, Dialect, PendingRows, Row, Tx};

use crate::{
    database_clock::now_sql,
    id_types::{LocalAccountId, SourceKey, sql},
    local_ids,
};

/// The owner of a library.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LibraryOwner {
    Source(SourceKey),
    Account(LocalAccountId),
}

impl LibraryOwner {
    fn kind(self) -> &'static str {
        match self {
            LibraryOwner::Source(_) => "source",
            LibraryOwner::Account(_) => "account",
        }
    }

    fn id(self) -> i64 {
        match self {
            LibraryOwner::Source(source) => source.id(),
            LibraryOwner::Account(account) => sql(account),
        }
    }

    /// The instance with which the library is stored; 0 if the owner has none.
    fn instance_id(self) -> i64 {
        match self {
            LibraryOwner::Source(source) => source.instance_id(),
            LibraryOwner::Account(_) => 0,
        }
    }
}

/// A library whose USNs only this transaction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    id: i64,
    instance_id: i64,
    /// The last USN, including this transaction's.
    pub(crate) update_count: i64,
    /// The last USN before this transaction.
    before: i64,
    /// The last opening in which it gave a USN; 0 if it never gave one.
    opening_id: i64,
    /// The last opening of the store, if this one is recorded.
    pub(crate) last_opening: Option<i64>,
}

/// The last opening of the store, requested together with the next query.
pub(crate) struct PendingOpening(PendingRows<'static, Option<i64>>);

impl PendingOpening {
    pub(crate) fn ask(tx: &mut Tx<'_>) -> Result<PendingOpening, DbError> {
        let opening = tx.opening();
        // There are few openings, so the last ones are checked first.
        let asked = tx.query_later(
            &format!(
                "select max(id) as id from opening
                 where (select id from opening where nonce = {} order by id desc limit 1) is not null",
                own_nonce(tx.dialect())
            ),
            &[&&*opening],
            |row| row.opt_i64("id"),
        )?;
        Ok(PendingOpening(asked))
    }

    /// Reads the last opening; `None` if this one is not recorded.
    pub(crate) fn read(self, tx: &mut Tx<'_>) -> Result<Option<i64>, DbError> {
        Ok(tx.rows(self.0)?.pop().flatten())
    }
}

/// Adds the empty library of a new owner. Locks the clock.
pub(crate) fn add(tx: &mut Tx<'_>, owner: LibraryOwner) -> Result<(), DbError> {
    let id = local_ids::take_numbers(tx, "last_library_id", 1)?;
    tx.execute_later(
        "insert into library
             (id, instance_id, owner_kind, owner_id, update_count, opening_id, epoch, horizon)
         values ($1, $2, $3, $4, 0, 0, 1, 0)",
        &[&id, &owner.instance_id(), &owner.kind(), &owner.id()],
    )
}

/// Removes the library of an owner.
pub(crate) fn remove(tx: &mut Tx<'_>, owner: LibraryOwner) -> Result<(), DbError> {
    for delete in [
        &format!(
            "delete from library_opening where instance_id = $3
                 and library_id in (select id from library where {IS_OWNERS})"
        ),
        &format!("delete from library where {IS_OWNERS}"),
    ] {
        tx.execute_later(delete, &[&owner.id(), &owner.kind(), &owner.instance_id()])?;
    }
    Ok(())
}

/// The last USN of an owner's library; `None` if the owner does not exist.
pub(crate) fn update_count(tx: &mut Tx<'_>, owner: LibraryOwner) -> Result<Option<i64>, DbError> {
    let pending = update_count_later(tx, owner)?;
    Ok(tx.rows(pending)?.pop())
}

/// [`update_count`], requested together with the next query. At most one row.
pub(crate) fn update_count_later(
    tx: &mut Tx<'_>,
    owner: LibraryOwner,
) -> Result<PendingRows<'static, i64>, DbError> {
    tx.query_later(
        &format!("select update_count from library where {IS_OWNERS}"),
        &[&owner.id(), &owner.kind(), &owner.instance_id()],
        |row| row.i64("update_count"),
    )
}

/// The condition for an owner's library. The parameters are the owner's ID, kind and instance.
const IS_OWNERS: &str = "owner_id = $1 and owner_kind = $2 and instance_id = $3";

/// The columns of a `library l` that [`Library::from_row`] reads.
pub(crate) const COLUMNS: &str = "l.id as library_id, l.instance_id, l.update_count, l.opening_id";

/// Joins the libraries `l` of sources `s`.
pub(crate) const OF_SOURCES: &str =
    "join library l on l.owner_id = s.id and l.owner_kind = 'source'
         and l.instance_id = s.instance_id";

impl Library {
    /// Reads the [`COLUMNS`] of a row whose owner this transaction has locked. The caller must set
    /// the opening.
    pub(crate) fn from_row(row: &Row<'_>) -> Result<Library, DbError> {
        let update_count = row.i64("update_count")?;
        Ok(Library {
            id: row.i64("library_id")?,
            instance_id: row.i64("instance_id")?,
            update_count,
            before: update_count,
            opening_id: row.i64("opening_id")?,
            last_opening: None,
        })
    }

    /// Takes the next USN.
    pub(crate) fn next_usn(&mut self) -> i64 {
        self.update_count += 1;
        self.update_count
    }

    /// Stores the USN below which tombstones may be missing.
    pub(crate) fn raise_horizon(&self, tx: &mut Tx<'_>, usn: i64) -> Result<(), DbError> {
        tx.execute_later(
            "update library set horizon = $3 where id = $1 and instance_id = $2 and horizon < $3",
            &[&self.id, &self.instance_id, &usn],
        )
    }

    /// Stores the USNs that this transaction has taken, and its opening with the first USN.
    pub(crate) fn save(&self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        if self.update_count == self.before {
            return Ok(());
        }
        let opening_id = self.opening(tx)?;
        tx.execute_later(
            "update library set update_count = $2, opening_id = $3
             where id = $1 and instance_id = $4",
            &[&self.id, &self.update_count, &opening_id, &self.instance_id],
        )?;
        if opening_id == self.opening_id {
            return Ok(());
        }
        tx.execute_later(
            "insert into library_opening (library_id, instance_id, opening_id, first_usn)
             values ($1, $2, $3, $4)
             on conflict ({key library_id, opening_id + instance_id}) do nothing",
            &[&self.id, &self.instance_id, &opening_id, &(self.before + 1)],
        )
    }

    /// Returns the number of the last opening, after recording this one if it is new.
    fn opening(&self, tx: &mut Tx<'_>) -> Result<i64, DbError> {
        let opening = tx.opening();
        match self.last_opening {
            Some(known) => Ok(known),
            None if tx.is_distributed() => tx.apart(|tx| record_opening(tx, &opening)),
            None => record_opening(tx, &opening),
        }
    }
}

/// Records this opening of a distributed store if it is new. A transaction that takes USNs after it has locked
/// the clock must call this before: the first USN of an opening waits for the clock in another transaction.
pub(crate) fn ensure_opening(tx: &mut Tx<'_>) -> Result<(), DbError> {
    if tx.is_distributed() && PendingOpening::ask(tx)?.read(tx)?.is_none() {
        let opening = tx.opening();
        tx.apart(|tx| record_opening(tx, &opening))?;
    }
    Ok(())
}

/// Records this opening of the store, unless another transaction has done so meanwhile. Returns the
/// last one's number. Locks the clock, so that no two openings get one number.
fn record_opening(tx: &mut Tx<'_>, opening: &str) -> Result<i64, DbError> {
    local_ids::take_later(tx, 0, 0)?;
    let nonce = own_nonce(tx.dialect());
    let sql = format!(
        "insert into opening (id, nonce, opened_at_ms)
         select coalesce(max(id), 0) + 1, {nonce}, {} from opening
         having not exists (select 1 from opening where nonce = {nonce})",
        now_sql(tx.dialect())
    );
    tx.execute_later(&sql, &[&opening])?;
    tx.query_one("select max(id) as id from opening", &[], |row| {
        row.i64("id")
    })
}

/// The nonce of this opening, whose random name is `$1`. A PostgreSQL server that has taken over is on another timeline and
/// may lack changes of the one before, so what this process does there is another opening.
fn own_nonce(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "$1",
        Dialect::Postgres => "$1 || lower(left(pg_walfile_name(pg_current_wal_lsn()), 8))",
    }
}
