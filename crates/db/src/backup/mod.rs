//! Copies of a whole database, of one snapshot, with digests by which a copy is proven.
//!
//! SQLite's file is copied page by page inside a read transaction, so that writers neither wait for
//! the copy nor make it begin again. PostgreSQL's own programs dump and restore a snapshot that a
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
    /// The schema that it is of, on PostgreSQL.
    pub schema: Option<String>,
    /// The migrations that were applied.
    pub migrations: Vec<AppliedMigration>,
    /// Its tables, by name.
    pub tables: Vec<TableDigest>,
}

/// A migration that a database has recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Its version.
    pub version: i64,
    /// Its name.
    pub name: String,
    /// The oldest version whose program may use the database after it.
    pub compat_version: i64,
    /// Its [`Migration::digest`].
    pub digest: String,
}

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Bytes are copied; of how many, where that is known.
    Copied {
        /// Those so far.
        bytes: u64,
        /// All of them.
        of: Option<u64>,
    },
    /// Rows are read to prove them.
    Read {
        /// Those so far.
        rows: u64,
    },
}

/// Is shown the progress, and says whether the work goes on; else it ends with
/// [`DbError::Interrupted`].
pub type Watch = dyn FnMut(Progress) -> bool + Send;

/// Works with a transaction on the database, whatever its schema.
pub type Work = dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + Send;

/// About how many bytes a copy takes.
///
/// # Errors
/// If the database cannot be read.
pub fn size(target: &Target) -> Result<u64, DbError> {
    let target = target.clone();
    on_own_thread("driftline-db-backup", move || match &target {
        Target::Sqlite { path } => file::size(path),
        Target::Postgres { url, schema } => dump::size(url, schema.as_deref()),
    })
}

/// Refuses a database to which other migrations were applied than the program's.
///
/// # Errors
/// As of [`crate::Db::open`].
pub fn check_database(tx: &mut Tx<'_>, migrations: &[Migration]) -> Result<(), DbError> {
    fits(&applied(tx)?, migrations)
}

/// Refuses a copy of such a database.
///
/// # Errors
/// As of [`crate::Db::open`].
pub fn check_snapshot(snapshot: &Snapshot, migrations: &[Migration]) -> Result<(), DbError> {
    fits(&snapshot.migrations, migrations)
}

/// Copies the database into a new file, which is durable and not proven yet: see [`read`]. `check` may
/// refuse the snapshot before it is copied. Blocks.
///
/// # Errors
/// [`DbError`]; the file is to be removed then.
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

/// Which database a copy is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// A database file.
    File,
    /// An archive of `pg_dump`.
    Dump,
}

/// Reads a copy from its beginning to its end, and says what it holds. Blocks.
///
/// # Errors
/// [`DbError::Damaged`] if it is not whole.
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

/// Restores a copy: into a new file, or into an empty schema. `finish` is the last work on it, in the
/// transaction that makes it whole. With `verify` its tables are compared with the snapshot first.
/// Blocks.
///
/// # Errors
/// [`DbError`]: no program takes what was restored so far for whole, and on PostgreSQL another try clears it away.
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

/// Whether this user may write to a database file and in its folder. A file without any write permission
/// counts as read-only for root, too.
pub fn may_write(path: &Path) -> bool {
    crate::sqlite::may_write(path)
}

/// What differs between two sets of tables, in words; `None` if nothing does.
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
