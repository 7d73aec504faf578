//! Copies of a whole database, of one snapshot, with digests that verify a copy.
//!
//! SQLite's file is copied page by page inside a read transaction, so that writers neither wait for
//! the copy nor restart it. PostgreSQL's own programs dump and restore a snapshot that a
//! transaction here exports.

mod digest;
mod dump;
mod file;
mod programs;

use std::path::Path;

pub use digest::TableDigest;

use crate::db::on_own_thread;
use crate::error::DbError;
use crate::migrate::{Migration, applied, fits};
use crate::options::Target;
use crate::tx::Tx;

/// A snapshot of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The copied schema, on PostgreSQL.
    pub schema: Option<String>,
    /// The applied migrations.
    pub migrations: Vec<AppliedMigration>,
    /// The tables, by name.
    pub tables: Vec<TableDigest>,
}

/// A migration that a database has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Its version.
    pub version: i64,
    /// Its name.
    pub name: String,
    /// The oldest schema version whose program may use the database after this migration.
    pub compat_version: i64,
    /// Its [`Migration::digest`].
    pub digest: String,
}

/// The progress of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes are copied.
    Copied {
        /// The bytes so far.
        bytes: u64,
        /// All bytes, if their number is known.
        of: Option<u64>,
    },
    /// Rows are read to verify them.
    Read {
        /// The rows so far.
        rows: u64,
    },
}

/// Receives the progress, and returns true if the work may continue. Otherwise the work ends with
/// [`DbError::Interrupted`].
pub type Watch = dyn FnMut(Progress) -> bool + Send;

/// Works with a transaction on a database of any schema.
pub type Work = dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + Send;

/// The approximate size of a copy in bytes.
///
/// # Errors
/// [`DbError`] if the database cannot be read.
pub fn size(target: &Target) -> Result<u64, DbError> {
    let target = target.clone();
    on_own_thread("driftline-db-backup", move || match &target {
        Target::Sqlite { path } => file::size(path),
        Target::Postgres { url, schema } => dump::size(url, schema.as_deref()),
    })
}

/// Rejects a database whose applied migrations differ from the program's.
///
/// # Errors
/// [`DbError::Newer`], [`DbError::OtherSchema`] or [`DbError::Migration`] if the migrations differ;
/// another [`DbError`] if the database cannot be read.
pub fn check_database(tx: &mut Tx<'_>, migrations: &[Migration]) -> Result<(), DbError> {
    fits(&applied(tx)?, migrations)
}

/// Rejects a copy of a database whose applied migrations differ from the program's.
///
/// # Errors
/// [`DbError::Newer`], [`DbError::OtherSchema`] or [`DbError::Migration`] if the migrations differ.
pub fn check_snapshot(snapshot: &Snapshot, migrations: &[Migration]) -> Result<(), DbError> {
    fits(&snapshot.migrations, migrations)
}

/// Copies the database into a new file, which is durable but not verified yet: see [`read`].
/// `check` may reject the snapshot before it is copied. Blocks.
///
/// # Errors
/// [`DbError`] if the database cannot be read, `check` rejects it, or the file cannot be written.
/// The caller must then remove the file.
pub fn copy(
    target: &Target,
    to: &Path,
    mut check: Box<Work>,
    mut watch: Box<Watch>,
) -> Result<Snapshot, DbError> {
    let (target, to) = (target.clone(), to.to_owned());
    on_own_thread("driftline-db-backup", move || match &target {
        Target::Sqlite { path } => file::copy(path, &to, &mut *check, &mut *watch),
        Target::Postgres { url, schema } => {
            dump::copy(url, schema.as_deref(), &to, &mut *check, &mut *watch)
        }
    })
}

/// The kind of database that was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// A database file.
    File,
    /// An archive of `pg_dump`.
    Dump,
}

/// Reads a whole copy and returns the digests of its tables. Blocks.
///
/// # Errors
/// [`DbError::Damaged`] if the copy is incomplete or invalid, [`DbError::Interrupted`] if `watch`
/// ends the work.
pub fn read(
    kind: CopyKind,
    path: &Path,
    mut watch: Box<Watch>,
) -> Result<Vec<TableDigest>, DbError> {
    let path = path.to_owned();
    on_own_thread("driftline-db-backup", move || match kind {
        CopyKind::File => file::read(&path, &mut *watch),
        CopyKind::Dump => dump::read(&path, &mut *watch),
    })
}

/// Restores a copy into a new file or an empty schema. `finish` is the last work on it, in the
/// transaction that completes it. With `verify`, its tables are first compared with the snapshot.
/// Blocks.
///
/// # Errors
/// [`DbError`] if the copy is damaged, the target is not empty or fails, `finish` fails, or `watch`
/// ends the work. No program accepts the incomplete restore as a database. On PostgreSQL another
/// attempt removes it.
pub fn restore(
    copy: &Path,
    snapshot: &Snapshot,
    target: &Target,
    verify: bool,
    mut finish: Box<Work>,
    mut watch: Box<Watch>,
) -> Result<(), DbError> {
    let (copy, snapshot, target) = (copy.to_owned(), snapshot.clone(), target.clone());
    on_own_thread("driftline-db-restore", move || match &target {
        Target::Sqlite { path } => {
            file::restore(&copy, &snapshot, path, verify, &mut *finish, &mut *watch)
        }
        Target::Postgres { url, schema } => {
            let to = (url, schema.as_deref());
            dump::restore(&copy, &snapshot, to, verify, &mut *finish, &mut *watch)
        }
    })
}

/// True if this user may write to a database file and in its folder. A file without any write
/// permission counts as read-only for root, too.
pub fn may_write(path: &Path) -> bool {
    crate::sqlite::may_write(path)
}

/// The first difference between two sets of tables, in words; `None` if they are equal.
pub fn difference(expected: &[TableDigest], found: &[TableDigest]) -> Option<String> {
    for table in expected {
        let name = &table.name;
        match found.iter().find(|found| found.name == *name) {
            None => return Some(format!("the table {name} is missing")),
            Some(found) if found.rows != table.rows => {
                let (is, was) = (found.rows, table.rows);
                return Some(format!("the table {name} has {is} rows instead of {was}"));
            }
            Some(found) if found.digest != table.digest => {
                return Some(format!("rows of the table {name} have changed"));
            }
            Some(_) => {}
        }
    }
    let is_new = |found: &&TableDigest| !expected.iter().any(|table| table.name == found.name);
    let new = found.iter().find(is_new)?;
    Some(format!("there is a table {} that was not copied", new.name))
}

fn compare(expected: &[TableDigest], found: &[TableDigest]) -> Result<(), DbError> {
    difference(expected, found).map_or(Ok(()), |difference| Err(DbError::Damaged(difference)))
}

fn go_on(watch: &mut Watch, progress: Progress) -> Result<(), DbError> {
    match watch(progress) {
        true => Ok(()),
        false => Err(DbError::Interrupted),
    }
}
