use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, config::DbConfig, vtab};

use super::error::classify;
use crate::error::DbError;

/// Opens the connection that writes, and makes the file if it does not exist.
pub(crate) fn open_writer(path: &Path) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(path, flags)?;
    let mode: String = connection
        .query_row("pragma journal_mode = wal", [], |row| row.get(0))
        .map_err(|error| refused(path, &error))?;
    if mode != "wal" {
        return Err(DbError::Open(format!(
            "{} is on a file system that cannot hold a live database (no write-ahead log)",
            path.display()
        )));
    }
    // Full: a commit that was answered survives a power cut.
    connection
        .execute_batch(
            "pragma synchronous = full;
             pragma foreign_keys = off;
             pragma journal_size_limit = 67108864;
             pragma temp_store = memory;",
        )
        .map_err(|error| refused(path, &error))?;
    Ok(connection)
}

/// Opens a connection that reads; the writer's has been opened before.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection
        .execute_batch("pragma query_only = on; pragma temp_store = memory;")
        .map_err(|error| refused(path, &error))?;
    Ok(connection)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, DbError> {
    // Each connection stays on one thread, so SQLite's own locks are left out.
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| refused(path, &error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection
        .busy_timeout(BUSY_TIMEOUT)
        .map_err(|error| refused(path, &error))?;
    // A plan that hung on bound values would be made again each time that a
    // cached statement, whose values were cleared, is used again.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(|error| refused(path, &error))?;
    vtab::array::load_module(&connection).map_err(|error| refused(path, &error))?;
    Ok(connection)
}

fn refused(path: &Path, error: &rusqlite::Error) -> DbError {
    let path = path.display();
    DbError::Open(match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => format!("{path} is not a database file"),
        Some(rusqlite::ErrorCode::CannotOpen) => format!(
            "cannot open the database file {path}: does its folder exist, and may this user \
             write in it?"
        ),
        Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::PermissionDenied) => {
            format!("may not write to the database file {path} or its folder")
        }
        _ => format!("cannot open the database file {path}: {}", classify(error)),
    })
}

const STATEMENTS: usize = 256;
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
