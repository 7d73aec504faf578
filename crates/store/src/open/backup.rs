//! Backups: verified copies of a store, and stores restored from them.

use std::path::Path;

use driftline_db::{DbError, Dialect, Target, Tx};

pub use driftline_db::backup::{
    AppliedMigration, CopyKind, Progress, Snapshot, TableDigest, Watch, difference, may_write,
    read, size,
};

use crate::{error::StoreError, local_ids, open::schema::MIGRATIONS};

/// Copies the store into a new file; see [`driftline_db::backup::copy`].
///
/// # Errors
/// [`StoreError`] if the store cannot be read, has another schema than this program's, or is
/// distributed: no snapshot spans its nodes.
pub fn copy(target: &Target, to: &Path, watch: Box<Watch>) -> Result<Snapshot, StoreError> {
    let check = Box::new(|tx: &mut Tx<'_>| {
        driftline_db::backup::check_database(tx, MIGRATIONS)?;
        refuse_distributed(tx)
    });
    Ok(driftline_db::backup::copy(target, to, check, watch)?)
}

/// Rejects a copy of a store with another schema than this program's.
///
/// # Errors
/// The same as those of [`crate::Store::open`].
pub fn check(snapshot: &Snapshot) -> Result<(), StoreError> {
    Ok(driftline_db::backup::check_snapshot(snapshot, MIGRATIONS)?)
}

/// Restores a copy, as an independent store from `now_ms` on.
///
/// # Errors
/// The same as those of [`check`] and [`driftline_db::backup::restore`].
pub fn restore(
    copy: &Path,
    snapshot: &Snapshot,
    target: &Target,
    (verify, now_ms): (bool, i64),
    watch: Box<Watch>,
) -> Result<(), StoreError> {
    check(snapshot)?;
    let finish = Box::new(move |tx: &mut Tx<'_>| {
        begin_opening(tx, now_ms)?;
        skip_usns(tx, now_ms)?;
        go_on_above(tx, now_ms)?;
        rename(tx)
    });
    Ok(driftline_db::backup::restore(
        copy, snapshot, target, verify, finish, watch,
    )?)
}

/// Prevents that IDs from after the backup are given again. The clock continues above now, and
/// sources are numbered above all that may have been added since.
fn go_on_above(tx: &mut Tx<'_>, now_ms: i64) -> Result<(), DbError> {
    let floor = local_ids::floor(now_ms).max(local_ids::MIN_LOCAL_ID);
    tx.execute(
        "update local_clock set last_id = {greatest}(last_id, $1),
             last_source_id = last_source_id + $2 where one = 1",
        &[&floor, &SKIPPED_SOURCES],
    )
    .map(|_| ())
}

/// Records a new opening, in which each library continues above the changes of the backup. So a copy
/// of a library with changes from after the backup is recognised, although [`skip_usns`] raises the
/// libraries' counts above these.
fn begin_opening(tx: &mut Tx<'_>, now_ms: i64) -> Result<(), DbError> {
    let record = format!(
        "insert into opening (id, nonce, opened_at_ms)
         select coalesce(max(id), 0) + 1, {}, $1 from opening",
        random_nonce(tx.dialect())
    );
    tx.execute(&record, &[&now_ms])?;
    let opening = tx.query_one("select max(id) as id from opening", &[], |row| {
        row.i64("id")
    })?;
    tx.execute(
        "insert into library_opening (library_id, instance_id, opening_id, first_usn)
         select id, instance_id, $1, update_count + 1 from library",
        &[&opening],
    )?;
    tx.execute("update library set opening_id = $1", &[&opening])
        .map(|_| ())
}

/// Prevents that USNs from after the backup are given again, because a reader that has seen one
/// would miss the change that has it now. Libraries continue above all USNs that fit into the time
/// since the last ID.
fn skip_usns(tx: &mut Tx<'_>, now_ms: i64) -> Result<(), DbError> {
    let last_id = tx.query_one(
        "select last_id from local_clock where one = 1",
        &[],
        |row| row.i64("last_id"),
    )?;
    let ids = i128::from(local_ids::floor(now_ms)) - i128::from(last_id);
    let ids_a_second = i128::from(local_ids::floor(now_ms + 1_000) - local_ids::floor(now_ms));
    let elapsed_ms = ids.max(0) * 1_000 / ids_a_second.max(1);
    let skipped = i64::try_from(elapsed_ms * USNS_A_MS).unwrap_or(i64::MAX >> 1) + SKIPPED_USNS;
    tx.execute(
        "update library set update_count = update_count + $1",
        &[&skipped],
    )
    .map(|_| ())
}

/// Gives the store another name than that of its original.
fn rename(tx: &mut Tx<'_>) -> Result<(), DbError> {
    let nonce = random_nonce(tx.dialect());
    tx.execute(
        &format!("update store_identity set nonce = {nonce} where one = 1"),
        &[],
    )
    .map(|_| ())
}

/// An SQL expression of 32 random hexadecimal digits.
fn random_nonce(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "lower(hex(randomblob(16)))",
        Dialect::Postgres => "replace(gen_random_uuid()::text, '-', '')",
    }
}

fn refuse_distributed(tx: &mut Tx<'_>) -> Result<(), DbError> {
    let column = match tx.dialect() {
        Dialect::Sqlite => return Ok(()),
        Dialect::Postgres => local_ids::LAST_RESERVED,
    };
    let is_distributed = tx.query_opt(
        "select 1 from pg_attribute a join pg_class c on c.oid = a.attrelid
         where c.relnamespace = current_schema()::regnamespace and c.relname = 'local_clock'
             and a.attname = $1 and not a.attisdropped",
        &[&column],
        |_| Ok(()),
    )?;
    match is_distributed {
        None => Ok(()),
        Some(()) => Err(DbError::Open(
            "a distributed store has no snapshot over all its nodes, so this command cannot back it up: \
             use a backup of the whole cluster, such as Citus' consistent restore points"
                .into(),
        )),
    }
}

/// More sources than are added between two backups.
const SKIPPED_SOURCES: i64 = 1_000;
/// Several times the highest measured rate of a library, about 20 (docs/benchmarks.md).
const USNS_A_MS: i128 = 100;
/// More than a commit takes.
const SKIPPED_USNS: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, nonce};

    fn watch() -> Box<Watch> {
        Box::new(|_| true)
    }

    /// The clock stands still, so the store alone ensures it.
    #[test]
    fn no_id_that_was_given_after_the_backup_is_given_again() {
        const BACKUP_MS: i64 = 1_790_000_000_000;
        const RESTORED_MS: i64 = BACKUP_MS + 3_600_000;
        let folder = tempfile::tempdir().expect("a folder");
        let [path, to, second] = ["a.db", "copy", "b.db"].map(|name| folder.path().join(name));
        let target = Target::Sqlite { path };
        let store = Store::open(target.clone()).expect("a store");
        let take = |store: &Store, at_ms| {
            let taken = store.write_blocking(local_ids::root(), move |tx| {
                let id = local_ids::take(tx, at_ms, 1)?;
                let source = local_ids::take_source_id(tx)?;
                Ok::<_, StoreError>((id, source, nonce(tx)?))
            });
            taken.expect("IDs")
        };
        take(&store, BACKUP_MS);
        let library = "insert into library
            (id, instance_id, owner_kind, owner_id, update_count, opening_id, epoch, horizon)
            values (1, 1, 'source', 1, 7, 0, 1, 0)";
        let added = store.write_blocking(local_ids::root(), |tx| {
            Ok::<_, StoreError>(tx.execute(library, &[])?)
        });
        added.expect("a library");
        let snapshot = copy(&target, &to, watch()).expect("a copy");
        let (given, source, name) = take(&store, RESTORED_MS - 1);
        store.close_blocking();
        let target = Target::Sqlite { path: second };
        let way = (true, RESTORED_MS);
        restore(&to, &snapshot, &target, way, watch()).expect("a restore");
        let restored = Store::open(target).expect("a store");
        let (next, next_source, next_name) = take(&restored, BACKUP_MS);
        let usn = restored.write_blocking(local_ids::root(), |tx| {
            let count = "select update_count from library";
            Ok::<_, StoreError>(tx.query_one(count, &[], |row| row.i64("update_count"))?)
        });
        let first = restored.read_blocking(|tx| {
            let first = "select first_usn from library_opening o join opening on id = opening_id";
            Ok::<_, StoreError>(tx.query_one(first, &[], |row| row.i64("first_usn"))?)
        });
        restored.close_blocking();
        assert_eq!(
            first,
            Ok(8),
            "what came after the backup is of another history"
        );
        // The highest measured rate, all the time.
        let taken = 7 + 20 * (RESTORED_MS - BACKUP_MS);
        assert!(usn.expect("a USN") > taken, "{taken} were taken");
        assert!(next > given, "{next} after {given}");
        assert!(next_source > source, "{next_source} after {source}");
        assert_ne!(next_name, name);
    }
}
