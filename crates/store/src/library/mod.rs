//! Libraries: the synced objects of one owner, with one sequence of update sequence numbers (USNs).
//!
//! A library is a row of its own, the only place from which its USNs are taken. Each source owns
//! one, which contains its entries, and each local account owns one for its own objects. A
//! transaction that takes USNs has locked the owner's row, which is the write's root.
//!
//! Each opening of the store that gives a USN is recorded with the first, under a random nonce. A
//! library names the last opening in which it gave a USN, and the first USN of it. A client that
//! remembers an opening and a USN can therefore detect that a copy of the store has diverged since.

pub(crate) mod object;

use driftline_db::{DbError, PendingRows, Row, Tx};

use crate::{
    database_clock::now_sql,
    id_types::{LocalAccountId, SourceKey, sql},
    local_ids,
};

/// A library whose USNs only this transaction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    id: i64,
    instance_id: i64,
    /// The last USN, including this transaction's.
    pub(crate) update_count: i64,
    /// The last USN before this transaction.
    before: i64,
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
            "select max(id) as id from opening
             where (select id from opening where nonce = $1 order by id desc limit 1) is not null",
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

/// Adds the empty library of a new source. Locks the clock.
pub(crate) fn add(tx: &mut Tx<'_>, source: SourceKey) -> Result<(), DbError> {
    let id = local_ids::take_numbers(tx, "last_library_id", 1)?;
    tx.execute_later(
        "insert into library
             (id, instance_id, owner_kind, owner_id, update_count, opening_id, first_usn)
         values ($1, $3, 'source', $2, 0, 0, 1)",
        &[&id, &source.id(), &source.instance_id()],
    )
}

/// Adds the empty library of a new local account. Locks the clock.
pub(crate) fn add_for_account(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), DbError> {
    let id = local_ids::take_numbers(tx, "last_library_id", 1)?;
    tx.execute_later(
        "insert into library
             (id, instance_id, owner_kind, owner_id, update_count, opening_id, first_usn)
         values ($1, $3, 'account', $2, 0, 0, 1)",
        &[&id, &sql(account), &NO_INSTANCE],
    )
}

/// Removes a local account's library.
pub(crate) fn remove_of_account(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), DbError> {
    tx.execute_later(
        "delete from library where owner_id = $1 and owner_kind = 'account' and instance_id = $2",
        &[&sql(account), &NO_INSTANCE],
    )
}

/// The library of a local account, to take USNs from it; `None` if the account does not exist. The
/// account must be locked.
pub(crate) fn of_account(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<Option<Library>, DbError> {
    let opening = PendingOpening::ask(tx)?;
    let library = tx.query_opt(
        &format!(
            "select {COLUMNS} from library l
             where l.owner_id = $1 and l.owner_kind = 'account' and l.instance_id = $2"
        ),
        &[&sql(account), &NO_INSTANCE],
        Library::from_row,
    )?;
    let last_opening = opening.read(tx)?;
    Ok(library.map(|library| Library {
        last_opening,
        ..library
    }))
}

/// Removes a source's library.
pub(crate) fn remove(tx: &mut Tx<'_>, source: SourceKey) -> Result<(), DbError> {
    tx.execute_later(
        "delete from library where owner_id = $1 and owner_kind = 'source' and instance_id = $2",
        &[&source.id(), &source.instance_id()],
    )
}

/// The last USN of a source's library; `None` if the source does not exist.
pub(crate) fn update_count(tx: &mut Tx<'_>, source: SourceKey) -> Result<Option<i64>, DbError> {
    tx.query_opt(
        "select update_count from library
         where owner_id = $1 and owner_kind = 'source' and instance_id = $2",
        &[&source.id(), &source.instance_id()],
        |row| row.i64("update_count"),
    )
}

/// The last USN of a local account's library; 0 if the account does not exist.
pub(crate) fn update_count_of_account(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<i64, DbError> {
    let pending = update_count_of_account_later(tx, account)?;
    Ok(tx.rows(pending)?.pop().unwrap_or_default())
}

/// [`update_count_of_account`], requested together with the next query. At most one row.
pub(crate) fn update_count_of_account_later(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
) -> Result<PendingRows<'static, i64>, DbError> {
    tx.query_later(
        "select update_count from library
         where owner_id = $1 and owner_kind = 'account' and instance_id = $2",
        &[&sql(account), &NO_INSTANCE],
        |row| row.i64("update_count"),
    )
}

/// The columns of a `library l` that [`Library::from_row`] reads.
pub(crate) const COLUMNS: &str = "l.id as library_id, l.instance_id, l.update_count";

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
            last_opening: None,
        })
    }

    /// Takes the next USN.
    pub(crate) fn next_usn(&mut self) -> i64 {
        self.update_count += 1;
        self.update_count
    }

    /// Stores the USNs that this transaction has taken, and its opening with the first USN.
    pub(crate) fn save(&self, tx: &mut Tx<'_>) -> Result<(), DbError> {
        if self.update_count == self.before {
            return Ok(());
        }
        let opening_id = match self.last_opening {
            Some(known) => known,
            None => record_opening(tx)?,
        };
        tx.execute_later(
            "update library set update_count = $2, opening_id = $4,
                 first_usn = case when opening_id < $4 then $3 else first_usn end
             where id = $1 and instance_id = $5",
            &[
                &self.id,
                &self.update_count,
                &(self.before + 1),
                &opening_id,
                &self.instance_id,
            ],
        )
    }
}

/// Records this opening of the store, unless another transaction has done so meanwhile. Returns the
/// last one's number. Locks the clock, so that no two openings get one number.
fn record_opening(tx: &mut Tx<'_>) -> Result<i64, DbError> {
    let opening = tx.opening();
    match tx.is_distributed() {
        true => tx.apart(|tx| record(tx, &opening)),
        false => record(tx, &opening),
    }
}

fn record(tx: &mut Tx<'_>, opening: &str) -> Result<i64, DbError> {
    local_ids::take_later(tx, 0, 0)?;
    let sql = format!(
        "insert into opening (id, nonce, opened_at_ms)
         select coalesce(max(id), 0) + 1, $1, {} from opening
         having not exists (select 1 from opening where nonce = $1)",
        now_sql(tx.dialect())
    );
    tx.execute_later(&sql, &[&opening])?;
    tx.query_one("select max(id) as id from opening", &[], |row| {
        row.i64("id")
    })
}

/// The placement of libraries without an instance.
const NO_INSTANCE: i64 = 0;
