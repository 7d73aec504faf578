//! The size of a database, and the free part of it.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::dialect::Dialect;
use crate::error::DbError;
use crate::tx::Tx;

/// The pages of a SQLite file, as one transaction sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The number of all pages.
    pub all: u64,
    /// The number of empty pages.
    pub free: u64,
    /// True if free pages can be returned to the file system gradually. Otherwise only
    /// [`Db::vacuum`](crate::Db::vacuum) returns them.
    pub is_incremental: bool,
}

/// A table of PostgreSQL, according to its statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpace {
    /// Its name.
    pub name: String,
    /// The size of its rows and indexes in bytes.
    pub bytes: u64,
    /// The approximate number of rows.
    pub live_rows: u64,
    /// The approximate number of deleted rows that take room until the next vacuum.
    pub dead_rows: u64,
    /// The time of the last vacuum, automatic or not, in Unix ms.
    pub vacuumed_at_ms: Option<i64>,
}

/// The pages of the file; `None` on PostgreSQL.
///
/// # Errors
/// [`DbError`] if the database cannot be read.
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
///
/// # Errors
/// [`DbError`] if the database cannot be read.
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

/// Returns at most `most` free pages to the file system. Returns their number, which is 0 if no
/// page is free or the file cannot shrink. The file shrinks with the next checkpoint.
///
/// # Errors
/// [`DbError`] if the statement fails.
pub fn give_back(tx: &mut Tx<'_>, most: u32) -> Result<u64, DbError> {
    if pages(tx)?.is_none_or(|pages| !pages.is_incremental) {
        return Ok(0);
    }
    // Each step of the statement frees one page, so all its rows are read.
    let freed = tx.query(&format!("pragma incremental_vacuum({most})"), &[], |_| {
        Ok(())
    })?;
    Ok(freed.len() as u64)
}

/// A request to the writer of a SQLite file to rewrite the whole file.
#[derive(Default)]
pub(crate) struct VacuumRequest(Mutex<Option<oneshot::Sender<Result<(), DbError>>>>);

impl VacuumRequest {
    /// Places the request. The writer checks for it after its next transaction.
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

    /// Fulfils the request, if there is one.
    pub(crate) fn serve(&self, vacuum: impl FnOnce() -> Result<(), DbError>) {
        let placed = |of: &Self| of.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = placed(self) {
            // The caller may have gone away.
            let _ = sender.send(vacuum());
        }
    }
}

/// SQLite's number for the mode.
const INCREMENTAL: u64 = 2;
