use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind::PermissionDenied};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rusqlite::{Connection, OpenFlags, config::DbConfig, vtab};

use super::error::classify;
use crate::error::DbError;
use crate::migrate::{BUSY_TIMEOUT, when_free};

/// Opens the connection that writes, and makes the file if it does not exist. Waits at most
/// `max_wait` for another process that holds the file.
pub(crate) fn open_writer(path: &Path, max_wait: Duration) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    // For its owner only, with any mode of the folder. SQLite gives its logs the mode of the file.
    // If it cannot be made, SQLite reports the reason.
    let _ = create_private(path);
    let connection = open(path, flags)?;
    connection
        .busy_timeout(BUSY_TIMEOUT.min(max_wait))
        .map_err(|error| refused(path, &error))?;
    when_free(HELD, max_wait, || check_owner(&connection, path))?;
    // For a new file only. It can return free pages from its first table on.
    when_free(HELD, max_wait, || {
        let set = connection.execute_batch("pragma auto_vacuum = incremental");
        set.map_err(|error| match classify(&error) {
            busy @ DbError::Busy(_) => busy,
            _ => refused(path, &error),
        })
    })?;
    // SQLite reports a busy file at once if waiting could be a deadlock.
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

/// Opens a connection that reads. The writer's connection is already open.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // Pages cached here need no system call. In KiB if negative.
    connection
        .execute_batch(
            "pragma query_only = on; pragma temp_store = memory; pragma cache_size = -8192;",
        )
        .map_err(|error| refused(path, &error))?;
    Ok(connection)
}

/// Opens a connection that reads while any process may write, and changes nothing. Works even if
/// neither the file nor its folder is writable.
pub(crate) fn open_to_read(path: &Path) -> Result<Connection, DbError> {
    if !path.exists() {
        return Err(DbError::Open(format!("{} does not exist", path.display())));
    }
    if File::open(path).is_err_and(|error| error.kind() == PermissionDenied) {
        return Err(may_not_read(path));
    }
    if may_write(path) {
        return open_reader(path);
    }
    let [log, index] = ["wal", "shm"].map(|ending| beside(path, ending));
    let has_log = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    // A writer has both files, and the index says which part of the log is valid.
    if has_log && !index.exists() {
        return Err(DbError::Denied(format!(
            "the write-ahead log {} holds changes, and this user may not write in its folder, which \
             reading it takes: copy both files to a folder where you may write",
            log.display()
        )));
    }
    match has_log {
        true => open_reader(path),
        false => open_immutable(path),
    }
}

/// Opens a connection that reads an immutable file.
pub(crate) fn open_immutable(path: &Path) -> Result<Connection, DbError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let bytes = absolute.as_os_str().as_bytes();
    let name = percent_encode(bytes, PATH);
    let uri = format!("file:{name}?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let connection = open(Path::new(&uri), flags)?;
    connection
        .execute_batch("pragma query_only = on; pragma temp_store = memory;")
        .map_err(|error| refused(path, &error))?;
    Ok(connection)
}

/// True if this user may write to the file and in its folder. A file without any write permission
/// counts as read-only for root, too.
pub(crate) fn may_write(path: &Path) -> bool {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let is_writable = |path: &Path| {
        let has_right = std::fs::metadata(path).is_ok_and(|found| found.mode() & 0o222 != 0);
        has_right && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
    };
    is_writable(path) && is_writable(folder)
}

/// Makes a file that only its owner may read and write.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{ending}"));
    name.into()
}

/// Rejects a file with tables of another program, before anything in it is changed.
fn check_owner(connection: &Connection, path: &Path) -> Result<(), DbError> {
    let is_others = connection.query_row(
        "select count(*) > 0 and count(*) filter (where name = 'migration') = 0
         from sqlite_schema where type = 'table' and name not like 'sqlite!_%' escape '!'",
        [],
        |row| row.get(0),
    );
    match is_others.map_err(|error| (classify(&error), error)) {
        Ok(false) => Ok(()),
        Ok(true) => Err(DbError::Open(format!(
            "{} is the database of another program, and was left as it is: move it away, or name \
             another folder or file",
            path.display()
        ))),
        Err((busy @ DbError::Busy(_), _)) => Err(busy),
        Err((_, error)) => Err(refused(path, &error)),
    }
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, DbError> {
    let opened = || {
        // Each connection stays on one thread, so SQLite's own locks are unnecessary.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // A plan that depends on bound values would be made again at each use of a cached
        // statement, whose values were cleared.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        vtab::array::load_module(&connection)?;
        Ok(connection)
    };
    opened().map_err(|error| refused(path, &error))
}

fn refused(path: &Path, error: &rusqlite::Error) -> DbError {
    let is_folder = path.is_dir();
    let is_unreadable = File::open(path).is_err_and(|error| error.kind() == PermissionDenied);
    let (file, path) = (path, path.display());
    DbError::Open(match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::PermissionDenied) => {
            return DbError::Denied(format!(
                "may not write to the database file {path} or its folder: run as their owner, or change \
                 their modes"
            ));
        }
        Some(rusqlite::ErrorCode::NotADatabase) => format!(
            "{path} is not a database file, or its beginning is damaged: move it away, or restore a \
             backup"
        ),
        Some(rusqlite::ErrorCode::CannotOpen) if is_folder => {
            format!("cannot open the database file {path}: it is a folder")
        }
        Some(rusqlite::ErrorCode::CannotOpen) if is_unreadable => return may_not_read(file),
        Some(rusqlite::ErrorCode::CannotOpen) => format!(
            "cannot open the database file {path}: does its folder exist, and may this user \
             write in it?"
        ),
        _ => format!("cannot open the database file {path}: {}", classify(error)),
    })
}

fn may_not_read(path: &Path) -> DbError {
    DbError::Denied(format!(
        "may not read the database file {}: run as its owner, or change its mode",
        path.display()
    ))
}

/// The characters that are not encoded in a URI's path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_');
const STATEMENTS: usize = 256;
/// The reason for a busy file.
pub(crate) const HELD: &str =
    "another process holds the database file, as one does that migrates it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::MAX_OPENING_WAIT;
    use crate::sqlite::command;

    const SHORT: Duration = Duration::from_millis(40);

    /// A new database in the old journal mode, with a held write lock.
    fn held() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().expect("a folder");
        let holder = Connection::open(folder.path().join("a.db")).expect("a database");
        holder
            .execute_batch(
                "create table migration (id integer); begin exclusive; insert into migration values (1)",
            )
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
