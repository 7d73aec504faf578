use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};

use crate::backup::AppliedMigration;
use crate::dialect::Dialect;
use crate::error::DbError;
use crate::tx::Tx;

/// One step of the schema's history, in one text for both databases.
///
/// The text may contain several statements and the words of [`crate::Dialect`]. A released step
/// never changes: a database with another text of it is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Ascends from step to step.
    pub version: i64,
    /// Recorded with the version, for people.
    pub name: &'static str,
    /// The oldest schema version whose program may still use the database after this step. It is
    /// `version` itself, unless the step only adds objects that older programs can ignore.
    pub compat_version: i64,
    /// The statements. A line that begins with `-- note: ` is logged when a database that is not
    /// empty is migrated.
    pub sql: &'static str,
}

impl Migration {
    /// The first 12 hexadecimal digits of the SHA-256 of `sql`, recorded with the version.
    pub fn digest(&self) -> String {
        let digest = digest(&SHA256, self.sql.as_bytes());
        let first = digest.as_ref().iter().take(6);
        first.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Repeats `work` while another process keeps the database busy, at most for `max_wait`. When the
/// wait begins, the log says `what` that process does.
pub(crate) fn when_free<T>(
    what: &str,
    max_wait: Duration,
    work: impl FnMut() -> Result<T, DbError>,
) -> Result<T, DbError> {
    let warn = || tracing::warn!("{what}: waiting up to {} s for it", max_wait.as_secs());
    retry_while_busy(max_wait, warn, work)
}

/// Calls `on_wait` once, when the wait becomes long.
fn retry_while_busy<T>(
    max_wait: Duration,
    on_wait: impl FnOnce(),
    mut work: impl FnMut() -> Result<T, DbError>,
) -> Result<T, DbError> {
    let started = Instant::now();
    let mut on_wait = Some(on_wait);
    loop {
        match work() {
            Err(DbError::Busy(_)) if started.elapsed() < max_wait => {
                if started.elapsed() >= BUSY_TIMEOUT.min(max_wait / 2)
                    && let Some(on_wait) = on_wait.take()
                {
                    on_wait();
                }
                thread::sleep(RETRY_EVERY);
            }
            result => return result,
        }
    }
}

/// The wait of one attempt, where the database itself can wait.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_EVERY: Duration = Duration::from_millis(20);
/// The longest wait for a process that migrates the database.
pub(crate) const MAX_OPENING_WAIT: Duration = Duration::from_secs(300);

/// Runs `transact` until every migration is applied. Each call is one transaction, which must
/// commit if its closure succeeds, and must exclude other processes from its beginning.
pub(crate) fn migrate(
    migrations: &[Migration],
    mut transact: impl FnMut(&mut Step<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    if migrations.is_empty() {
        return Ok(());
    }
    let mut first = None;
    let mut done = false;
    while !done {
        transact(&mut |tx| {
            let applied = Applied::read(tx)?;
            let pending = applied.pending(migrations)?;
            let Some(next) = pending.first() else {
                let (database, program) = (applied.version(), newest(migrations));
                if database > program {
                    tracing::warn!(
                        "the database has schema version {database}, newer than this program's \
                         {program}; it can be used by this version too"
                    );
                }
                done = true;
                return Ok(());
            };
            let first = *first.get_or_insert(applied.rows.len());
            let number = applied.rows.len() - first + 1;
            let count = migrations.len() - first;
            let Migration { version, name, .. } = next;
            let what = format!("migrating to schema {version} ({number} of {count}): {name}");
            tracing::info!("{what}");
            while_reporting(
                REPORT_EVERY,
                |elapsed| tracing::warn!("{what}, for {} s so far", elapsed.as_secs()),
                || applied.apply(tx, next),
            )?;
            // Notes on changes do not concern an empty database.
            for note in notes(next.sql).filter(|_| first > 0) {
                tracing::warn!("{note}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The notes of a migration for operators.
fn notes(sql: &str) -> impl Iterator<Item = &str> {
    sql.lines()
        .filter_map(|line| line.strip_prefix("-- note: "))
}

/// The work of one transaction.
pub(crate) type Step<'a> = dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + 'a;

/// Rejects a database whose schema is not exactly the program's. Changes nothing.
pub(crate) fn check(tx: &mut Tx<'_>, migrations: &[Migration]) -> Result<(), DbError> {
    let applied = Applied::read(tx)?;
    if applied.pending(migrations)?.is_empty() {
        return Ok(());
    }
    let program = newest(migrations);
    Err(DbError::Migration(match applied.version() {
        0 => "the database is empty, and nothing is made where nothing is written".into(),
        version => format!(
            "the database has schema version {version} and this program's is {program}, and nothing can \
             be migrated where nothing may be written: copy it to a folder where you may write"
        ),
    }))
}

/// Rejects a database whose applied migrations differ from the program's, or are newer and
/// incompatible.
pub(crate) fn fits(applied: &[AppliedMigration], migrations: &[Migration]) -> Result<(), DbError> {
    let applied = Applied {
        rows: applied.to_vec(),
        has_table: true,
    };
    applied.pending(migrations).map(drop)
}

/// The migrations that a database has recorded, in order.
pub(crate) fn applied(tx: &mut Tx<'_>) -> Result<Vec<AppliedMigration>, DbError> {
    Ok(Applied::read(tx)?.rows)
}

/// The migrations that a database has recorded.
struct Applied {
    rows: Vec<AppliedMigration>,
    /// True if the table of migrations exists.
    has_table: bool,
}

impl Applied {
    /// Only reads, so that a rejected database stays unchanged.
    fn read(tx: &mut Tx<'_>) -> Result<Applied, DbError> {
        let columns = match tx.dialect() {
            Dialect::Sqlite => "select name from pragma_table_info('migration')",
            Dialect::Postgres => {
                "select a.attname as name from pg_attribute a join pg_class c on c.oid = a.attrelid
                 where c.relnamespace = current_schema()::regnamespace
                     and c.relname = 'migration' and a.attnum > 0 and not a.attisdropped"
            }
        };
        let columns = tx.query(columns, &[], |row| row.text("name"))?;
        if columns.is_empty() {
            return Ok(Applied {
                rows: Vec::new(),
                has_table: false,
            });
        }
        let digest = match columns.iter().any(|column| column == "digest") {
            true => "compat_version, digest",
            // Early development builds did not record it.
            false => "version as compat_version, 'unknown' as digest",
        };
        let rows = tx.query(
            &format!("select version, name, {digest} from migration order by version"),
            &[],
            |row| {
                Ok(AppliedMigration {
                    version: row.i64("version")?,
                    name: row.text("name")?,
                    compat_version: row.i64("compat_version")?,
                    digest: row.text("digest")?,
                })
            },
        )?;
        Ok(Applied {
            rows,
            has_table: true,
        })
    }

    fn version(&self) -> i64 {
        self.rows.last().map_or(0, |row| row.version)
    }

    /// The oldest schema version whose program may use the database.
    fn compat_version(&self) -> i64 {
        let compat = self.rows.iter().map(|row| row.compat_version);
        compat.max().unwrap_or(0)
    }

    /// The migrations to apply. Empty if the database is newer and the program may use it.
    fn pending<'m>(&self, migrations: &'m [Migration]) -> Result<&'m [Migration], DbError> {
        if !migrations.is_sorted_by(|a, b| a.version < b.version) {
            return Err(DbError::Migration("versions must ascend".into()));
        }
        if self.has_table && self.rows.is_empty() {
            return Err(DbError::Migration(
                "a restore into this database was not finished: run `driftline restore` again"
                    .into(),
            ));
        }
        let program = newest(migrations);
        let is_known =
            |(row, known): &(&AppliedMigration, &Migration)| known.version == row.version;
        let known = self.rows.iter().zip(migrations).take_while(is_known);
        for (row, known) in known.clone() {
            let (database, program) = (row.digest.clone(), known.digest());
            if database != program {
                return Err(DbError::OtherSchema { database, program });
            }
        }
        let known = known.count();
        if self.version() > program {
            let needed = self.compat_version();
            return match known == migrations.len() && program >= needed {
                true => Ok(&[]),
                false => Err(DbError::Newer {
                    database: self.version(),
                    needed,
                    program,
                }),
            };
        }
        match self.rows.get(known) {
            Some(AppliedMigration { version, name, .. }) => Err(DbError::Migration(format!(
                "the database was migrated by `{name}` (version {version}), which is not in this \
                 program's history: is it another program's database?"
            ))),
            None => Ok(&migrations[known..]),
        }
    }

    fn apply(&self, tx: &mut Tx<'_>, next: &Migration) -> Result<(), DbError> {
        let Migration {
            version,
            name,
            compat_version,
            sql,
        } = next;
        if !self.has_table {
            tx.script(
                "create table migration (
                     version {i64} primary key not null,
                     name text not null,
                     compat_version {i64} not null,
                     digest text not null
                 ) {strict}",
            )?;
        }
        tx.script(sql).map_err(|error| {
            DbError::Migration(format!("`{name}` (version {version}) failed: {error}"))
        })?;
        tx.execute(
            "insert into migration (version, name, compat_version, digest) values ($1, $2, $3, $4)",
            &[version, name, compat_version, &next.digest()],
        )?;
        Ok(())
    }
}

fn newest(migrations: &[Migration]) -> i64 {
    migrations.last().map_or(0, |last| last.version)
}

/// Runs `work`, and reports the elapsed time regularly.
pub(crate) fn while_reporting<T>(
    every: Duration,
    report: impl Fn(Duration) + Send,
    work: impl FnOnce() -> T,
) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let reports = move || {
            let started = Instant::now();
            while is_done.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                report(started.elapsed());
            }
        };
        if let Err(error) = thread::Builder::new().spawn_scoped(scope, reports) {
            tracing::debug!(%error, "work runs without reports");
        }
        let result = work();
        drop(done);
        result
    })
}

const REPORT_EVERY: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_a_line_of_its_own() {
        let sql = "-- Tables.\n-- note: they are new\ncreate table a (b); -- note: not one\n-- note: two\n";
        assert_eq!(notes(sql).collect::<Vec<_>>(), ["they are new", "two"]);
    }

    #[test]
    fn long_work_is_reported_until_it_ends() {
        let (report, reports) = mpsc::channel();
        let report = move |elapsed| report.send(elapsed).expect("the test listens");
        let times = while_reporting(Duration::from_millis(1), report, || {
            [(); 3].map(|()| reports.recv().expect("a report"))
        });
        assert!(times.is_sorted());
    }

    #[test]
    fn a_wait_is_told_once_and_ends() {
        let mut told = 0;
        let busy = || Err(DbError::Busy("end it".into()));
        let max_wait = Duration::from_millis(100);
        let result: Result<(), DbError> = retry_while_busy(max_wait, || told += 1, busy);
        assert_eq!(result, Err(DbError::Busy("end it".into())));
        assert_eq!(told, 1);

        let result = retry_while_busy(max_wait, || told += 1, || Ok(()));
        assert_eq!((result, told), (Ok(()), 1));
    }
}
