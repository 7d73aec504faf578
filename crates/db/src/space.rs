//! The room that a database takes, and what of it is free.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::dialect::Dialect;
use crate::error::DbError;
use crate::tx::Tx;

/// The pages of a SQLite file, as one transaction sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The size of one, bytes.
    pub page_bytes: u64,
    /// All of them.
    pub all: u64,
    /// Those that hold nothing.
    pub free: u64,
    /// Whether free ones can be given back to the file system by and by; else only by
    /// [`Db::vacuum`](crate::Db::vacuum).
    pub is_incremental: bool,
}

/// A table of PostgreSQL, as its statistics show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpace {
    /// Its name.
    pub name: String,
    /// The size of its rows and indexes, bytes.
    pub bytes: u64,
    /// About how many rows it has.
    pub live_rows: u64,
    /// About how many deleted rows take room until the next vacuum.
    pub dead_rows: u64,
    /// When it was vacuumed last, by autovacuum or otherwise, Unix ms.
    pub vacuumed_at_ms: Option<i64>,
}

/// The pages of the file; `None` on PostgreSQL.
pub fn pages(tx: &mut Tx<'_>) -> Result<Option<Pages>, DbError> {
    if tx.dialect() == Dialect::Postgres {
        return Ok(None);
    }
    let mut number = |pragma: &str| {
        let found = tx.query_one(&format!("pragma {pragma}"), &[], |row| row.i64(0));
        found.map(i64::cast_unsigned)
    };
    Ok(Some(Pages {
        page_bytes: number("page_size")?,
        all: number("page_count")?,
        free: number("freelist_count")?,
        is_incremental: number("auto_vacuum")? == INCREMENTAL,
    }))
}

/// The tables with the most bytes first; none on SQLite.
pub fn tables(tx: &mut Tx<'_>) -> Result<Vec<TableSpace>, DbError> {
    if tx.dialect() == Dialect::Sqlite {
        return Ok(Vec::new());
    }
    tx.query(
        "select relname::text as name, pg_total_relation_size(relid) as bytes, n_live_tup, n_dead_tup,
             cast(extract(epoch from greatest(last_vacuum, last_autovacuum)) * 1000 as bigint)
                 as vacuumed_at_ms
         from pg_stat_user_tables where schemaname = current_schema()
         order by bytes desc, name",
        &[],
        |row| {
            Ok(TableSpace {
                name: row.text("name")?,
                bytes: row.i64("bytes")?.cast_unsigned(),
                live_rows: row.i64("n_live_tup")?.cast_unsigned(),
                dead_rows: row.i64("n_dead_tup")?.cast_unsigned(),
                vacuumed_at_ms: row.opt_i64("vacuumed_at_ms")?,
            })
        },
    )
}

/// Gives at most so many free pages back to the file system; returns how many, 0 where none is free
/// or the file cannot do that. The file shrinks with the next checkpoint.
pub fn give_back(tx: &mut Tx<'_>, most: u32) -> Result<u64, DbError> {
    if pages(tx)?.is_none_or(|pages| !pages.is_incremental) {
        return Ok(0);
    }
    // Each step of the statement frees one page, so its rows are read to their end.
    let freed = tx.query(&format!("pragma incremental_vacuum({most})"), &[], |_| {
        Ok(())
    })?;
    Ok(freed.len() as u64)
}

/// A request to the writer of a SQLite file to rewrite all of it.
#[derive(Default)]
pub(crate) struct VacuumRequest(Mutex<Option<oneshot::Sender<Result<(), DbError>>>>);

impl VacuumRequest {
    /// Requests it; the writer looks after its next transaction.
    pub(crate) fn place(&self) -> Result<oneshot::Receiver<Result<(), DbError>>, DbError> {
        let mut placed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if placed.is_some() {
            return Err(DbError::Other(
                "the database is being compacted already".into(),
            ));
        }
        let (sender, receiver) = oneshot::channel();
        *placed = Some(sender);
        Ok(receiver)
    }

    /// Carries a request out, if there is one.
    pub(crate) fn serve(&self, vacuum: impl FnOnce() -> Result<(), DbError>) {
        let placed = |of: &Self| of.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = placed(self) {
            // Whoever asked may be gone.
            let _ = sender.send(vacuum());
        }
    }
}

/// What SQLite calls the mode.
const INCREMENTAL: u64 = 2;
