use std::time::Duration;
use std::{fs::File, io, path::Path};

use rusqlite::{Connection, OpenFlags, config::DbConfig, vtab};

use super::error::classify;
use crate::error::DbError;
use crate::migrate::{BUSY_TIMEOUT, when_free};

/// Opens the connection that writes, and makes the file if it does not exist. Waits at most
/// `max_wait` for another process that holds the file.
pub(crate) fn open_writer(path: &Path, max_wait: Duration) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = open(path, flags)?;
    connection
        .busy_timeout(BUSY_TIMEOUT.min(max_wait))
        .map_err(|error| refused(path, &error))?;
    // Of a new file alone: it gives free pages back from its first table on.
    when_free(HELD, max_wait, || {
        let set = connection.execute_batch("pragma auto_vacuum = incremental");
        set.map_err(|error| match classify(&error) {
            busy @ DbError::Busy(_) => busy,
            _ => refused(path, &error),
        })
    })?;
    // SQLite answers that the file is busy at once where waiting could be a deadlock.
    let mode: String = when_free(HELD, max_wait, || {
        let mode = connection.query_row("pragma journal_mode = wal", [], |row| row.get(0));
        mode.map_err(|error| match classify(&error) {
            busy @ DbError::Busy(_) => busy,
            _ => refused(path, &error),
        })
    })?;
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
    let opened = || {
        // Each connection stays on one thread, so SQLite's own locks are left out.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A plan that hung on bound values would be made again each time that a
        // cached statement, whose values were cleared, is used again.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        vtab::array::load_module(&connection)?;
        Ok(connection)
    };
    opened().map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &rusqlite::Error) -> DbError {
    let shown = path.display();
    DbError::Open(match error.sqlite_error_code() {
        // SQLite does not say why it cannot open a file.
        Some(rusqlite::ErrorCode::CannotOpen) if may_not_open(path) => {
            return DbError::Denied(format!(
                "may not read and write the database file {shown}: check who owns it and its folder"
            ));
        }
        Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::PermissionDenied) => {
            return DbError::Denied(format!(
                "may not write to the database file {shown} or its folder"
            ));
        }
        Some(rusqlite::ErrorCode::NotADatabase) => format!("{shown} is not a database file"),
        Some(rusqlite::ErrorCode::CannotOpen) => format!(
            "cannot open the database file {shown}: does its folder exist, and may this user \
             write in it?"
        ),
        _ => format!("cannot open the database file {shown}: {}", classify(error)),
    })
}

fn may_not_open(path: &Path) -> bool {
    let opened = File::options().read(true).write(true).open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

const STATEMENTS: usize = 256;
/// What keeps the file busy.
pub(crate) const HELD: &str =
    "another process holds the database file, as one does that migrates it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::MAX_OPENING_WAIT;
    use crate::sqlite::command;

    const SHORT: Duration = Duration::from_millis(40);

    /// A new database in the old journal's mode, whose write lock is held.
    fn held() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().expect("a folder");
        let holder = Connection::open(folder.path().join("a.db")).expect("a database");
        holder
            .execute_batch("create table a (id integer); begin exclusive; insert into a values (1)")
            .expect("a lock");
        (folder, holder)
    }

    #[test]
    fn opening_waits_for_one_who_holds_the_file_and_not_for_ever() {
        let (folder, holder) = held();
        let path = folder.path().join("a.db");
        let refused = open_writer(&path, SHORT).expect_err("it is held");
        assert!(matches!(refused, DbError::Busy(_)), "{refused:?}");
        holder.execute_batch("commit").expect("a commit");
        open_writer(&path, SHORT).expect("it is free");
    }

    #[test]
    fn a_migration_begins_once_the_file_is_free() {
        let (folder, holder) = held();
        let waiting = Connection::open(folder.path().join("a.db")).expect("a connection");
        waiting.busy_timeout(Duration::ZERO).expect("no timeout");
        let refused = when_free(HELD, SHORT, || command(&waiting, "begin immediate"));
        assert!(matches!(refused, Err(DbError::Busy(_))), "{refused:?}");
        let mut tries = 0;
        let begun = when_free(HELD, MAX_OPENING_WAIT, || {
            tries += 1;
            if tries == 3 {
                holder.execute_batch("commit").expect("a commit");
            }
            command(&waiting, "begin immediate")
        });
        assert_eq!((begun, tries), (Ok(()), 3));
    }
}
