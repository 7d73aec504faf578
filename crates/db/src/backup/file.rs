//! Copies of a SQLite file.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::digest::RowsDigest;
use super::{Progress, Snapshot, TableDigest, Watch, Work, applied, compare, go_on};
use crate::error::DbError;
use crate::sqlite::{self, classify, create_private};
use crate::tx::Tx;

pub(super) fn size(path: &Path) -> Result<u64, DbError> {
    pages(&sqlite::open_to_read(path)?)
}

/// Copies the file in steps inside a read transaction. A commit of another process neither restarts
/// the copy nor waits for it.
pub(super) fn copy(
    from: &Path,
    to: &Path,
    check: &mut Work,
    watch: &mut Watch,
) -> Result<Snapshot, DbError> {
    let source = sqlite::open_to_read(from)?;
    sqlite::command(&source, "begin deferred")?;
    // The first read sets the snapshot.
    let migrations = applied(&mut Tx::sqlite(&source))?;
    check(&mut Tx::sqlite(&source))?;
    copy_pages(&source, to, watch)?;
    let tables = digests(&source, watch)?;
    Ok(Snapshot {
        schema: None,
        migrations,
        tables,
    })
}

fn copy_pages(source: &Connection, to: &Path, watch: &mut Watch) -> Result<(), DbError> {
    let bytes = pages(source)?;
    // Neither a journal nor flushes: an incomplete file never gets its final name.
    let unsafely = "pragma journal_mode = off; pragma synchronous = off";
    let mut target = open_new(to, unsafely)?;
    let file = File::open(to).map_err(|error| of_io(to, &error))?;
    let backup = Backup::new(source, &mut target).map_err(|error| classify(&error))?;
    let mut unsynced = 0;
    loop {
        let step = backup.step(PAGES).map_err(|error| classify(&error))?;
        let at = backup.progress();
        let [all, left] =
            [at.pagecount, at.remaining].map(|count| u64::try_from(count).unwrap_or(0));
        let copied = bytes * (all - left.min(all)) / all.max(1);
        // In parts, so that no writer's flush waits for the whole copy.
        if copied >= unsynced + UNSYNCED_BYTES {
            unsynced = copied;
            file.sync_data().map_err(|error| of_io(to, &error))?;
        }
        let of = Some(bytes);
        go_on(watch, Progress::Copied { bytes: copied, of })?;
        match step {
            StepResult::Done => break,
            StepResult::More => {}
            // The snapshot is locked, and the target belongs to this process.
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    drop(backup);
    // A file on its own has no write-ahead log: any program reads it, in any folder.
    run(&target, "pragma journal_mode = delete")?;
    target.close().map_err(|(_, error)| classify(&error))?;
    file.sync_all().map_err(|error| of_io(to, &error))
}

pub(super) fn read(path: &Path, watch: &mut Watch) -> Result<Vec<TableDigest>, DbError> {
    let connection = sqlite::open_immutable(path)?;
    prove(&connection)?;
    digests(&connection, watch).map_err(damaged)
}

pub(super) fn restore(
    copy: &Path,
    snapshot: &Snapshot,
    to: &Path,
    verify: bool,
    finish: &mut Work,
    watch: &mut Watch,
) -> Result<(), DbError> {
    copy_bytes(copy, to, watch)?;
    let connection = open_existing(to)?;
    if verify {
        prove(&connection)?;
        let found = digests(&connection, watch).map_err(damaged)?;
        compare(&snapshot.tables, &found)?;
    }
    sqlite::command(&connection, "begin immediate")?;
    finish(&mut Tx::sqlite(&connection))?;
    sqlite::command(&connection, "commit")?;
    connection.close().map_err(|(_, error)| classify(&error))?;
    let synced = File::open(to).and_then(|file| file.sync_all());
    synced.map_err(|error| of_io(to, &error))
}

fn copy_bytes(from: &Path, to: &Path, watch: &mut Watch) -> Result<(), DbError> {
    use std::io::{Read as _, Write as _};
    let mut source = File::open(from).map_err(|error| of_io(from, &error))?;
    let of = fs::metadata(from).ok().map(|metadata| metadata.len());
    let mut target = create_private(to).map_err(|error| of_io(to, &error))?;
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        match source
            .read(&mut buffer)
            .map_err(|error| of_io(from, &error))?
        {
            0 => return target.sync_all().map_err(|error| of_io(to, &error)),
            count => {
                let written = target.write_all(&buffer[..count]);
                written.map_err(|error| of_io(to, &error))?;
                bytes += count as u64;
            }
        }
        go_on(watch, Progress::Copied { bytes, of })?;
    }
}

/// Runs SQLite's own check of a file's structure.
fn prove(connection: &Connection) -> Result<(), DbError> {
    let mut statement = connection
        .prepare("pragma quick_check(1)")
        .map_err(|error| damaged(classify(&error)))?;
    let found: Result<String, _> = statement.query_row([], |row| row.get(0));
    match found {
        Ok(found) if found == "ok" => Ok(()),
        Ok(found) => Err(DbError::Damaged(found)),
        Err(error) => Err(damaged(classify(&error))),
    }
}

/// The digests of all tables, and of the schema, which is also a table.
fn digests(connection: &Connection, watch: &mut Watch) -> Result<Vec<TableDigest>, DbError> {
    let names = "select name from sqlite_schema where type = 'table' and name not like 'sqlite~_%' \
        escape '~' union all select 'sqlite_schema' order by 1";
    let mut names = connection
        .prepare(names)
        .map_err(|error| classify(&error))?;
    let names = names
        .query_map([], |row| row.get(0))
        .and_then(|names| names.collect::<Result<Vec<String>, _>>())
        .map_err(|error| classify(&error))?;
    let mut rows = 0;
    let mut found = Vec::new();
    for name in names {
        found.push(digest(connection, name, rows, watch)?);
        rows += found.last().map_or(0, |table| table.rows);
    }
    Ok(found)
}

fn digest(
    connection: &Connection,
    name: String,
    before: u64,
    watch: &mut Watch,
) -> Result<TableDigest, DbError> {
    let quoted = name.replace('"', "\"\"");
    // The positions of pages are not part of the schema.
    let columns = match name == "sqlite_schema" {
        true => "type, name, tbl_name, sql",
        false => "*",
    };
    let sql = format!("select {columns} from \"{quoted}\"");
    let mut statement = connection.prepare(&sql).map_err(|error| classify(&error))?;
    let columns = statement.column_count();
    let mut found = statement.query([]).map_err(|error| classify(&error))?;
    let mut digest = RowsDigest::default();
    let mut form = Vec::new();
    while let Some(row) = found.next().map_err(|error| classify(&error))? {
        form.clear();
        for column in 0..columns {
            let value = row.get_ref(column).map_err(|error| classify(&error))?;
            write_value(&mut form, value);
        }
        digest.add(&form);
        if digest.rows().is_multiple_of(ROWS) {
            let rows = before + digest.rows();
            go_on(watch, Progress::Read { rows })?;
        }
    }
    Ok(digest.end(name))
}

/// Writes each value as its type, its length and its bytes, so that no other row has the same form.
fn write_value(form: &mut Vec<u8>, value: ValueRef<'_>) {
    let mut write = |kind: u8, bytes: &[u8]| {
        form.push(kind);
        form.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        form.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => write(b'n', &[]),
        ValueRef::Integer(number) => write(b'i', &number.to_be_bytes()),
        ValueRef::Real(number) => write(b'r', &number.to_bits().to_be_bytes()),
        ValueRef::Text(text) => write(b't', text),
        ValueRef::Blob(bytes) => write(b'b', bytes),
    }
}

fn pages(connection: &Connection) -> Result<u64, DbError> {
    let number = |pragma: &str| {
        let found: Result<i64, _> = connection.query_row(pragma, [], |row| row.get(0));
        let found = found.map_err(|error| classify(&error))?;
        Ok::<_, DbError>(found.cast_unsigned())
    };
    Ok(number("pragma page_count")? * number("pragma page_size")?)
}

fn open_new(path: &Path, settings: &str) -> Result<Connection, DbError> {
    create_private(path).map_err(|error| of_io(path, &error))?;
    let connection = open_existing(path)?;
    run(&connection, settings)?;
    Ok(connection)
}

fn open_existing(path: &Path) -> Result<Connection, DbError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).map_err(|error| classify(&error))?;
    run(
        &opened,
        "pragma synchronous = full; pragma temp_store = memory",
    )?;
    Ok(opened)
}

fn run(connection: &Connection, sql: &str) -> Result<(), DbError> {
    let done = connection.execute_batch(sql);
    done.map_err(|error| classify(&error))
}

/// An error while a copy is read is a fault of the copy.
fn damaged(error: DbError) -> DbError {
    match error {
        DbError::Other(message) => DbError::Damaged(message),
        error => error,
    }
}

fn of_io(path: &Path, error: &std::io::Error) -> DbError {
    DbError::Other(format!("{}: {error}", path.display()))
}

/// A step of 2 MiB is short enough to be interrupted, and leaves the disk to writers in between.
const PAGES: i32 = 512;
/// The bytes that may wait for the disk.
const UNSYNCED_BYTES: u64 = 8 << 20;
/// The number of rows between two calls of the watch.
const ROWS: u64 = 10_000;
