//! What both databases promise, tested on both.

/// Makes each of these functions a test that runs on a fresh database of each kind.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_both {
            $(
                #[test]
                fn $test() {
                    $crate::on_both(super::$test);
                }
            )+
        }
    };
}

mod backup;
mod batches;
mod closing;
mod concurrency;
mod connections;
mod groups;
mod later;
mod migration_kills;
mod migrations;
mod named;
mod opening;
mod pooler;
mod reconnects;
mod space;
mod statements;
mod timeouts;
mod tls;
mod transactions;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use driftline_db::testing::{Fresh, databases};
use driftline_db::{Db, DbError, Migration, Root, Tx};

const fn migration(
    version: i64,
    name: &'static str,
    compat_version: i64,
    sql: &'static str,
) -> Migration {
    Migration {
        version,
        name,
        compat_version,
        sql,
    }
}

/// Tables that most tests share.
static TABLES: &[Migration] = &[migration(
    1,
    "tables",
    1,
    "
        create table source (id {i64} primary key not null, cursor {i64} not null) {strict};
        create table post (
            source_id {i64} not null,
            id {i64} not null,
            body text {collate_c},
            hidden {bool},
            likes {i64} check (likes >= 0),
            raw {blob},
            primary key (source_id, id)
        ) {clustered} {fillfactor 80};
        insert into source (id, cursor) values (1, 0), (2, 0);",
)];

const SOURCE: Root = Root::row("source", "id", 1);

/// Runs a test on a fresh database of each kind, and on one behind a pooler, with [`TABLES`].
fn on_both(test: impl Fn(&Db)) {
    on_both_direct(&test);
    test_on(&Fresh::pooled(), test);
}

/// Only where a statement's parameters are known before it runs, which they are not behind a pooler.
fn on_both_direct(test: impl Fn(&Db)) {
    for fresh in databases() {
        test_on(&fresh, &test);
    }
}

fn on_postgres(test: impl Fn(&Db)) {
    test_on(&Fresh::postgres(), test);
}

fn test_on(fresh: &Fresh, test: impl Fn(&Db)) {
    let db = fresh.open(TABLES);
    let passed = catch_unwind(AssertUnwindSafe(|| test(&db)));
    assert!(passed.is_ok(), "on {}", fresh.name);
    db.close_blocking();
}

/// A write below source 1 with this crate's own error.
fn write<T: Send + 'static>(
    db: &Db,
    job: impl FnMut(&mut Tx<'_>) -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    db.write_blocking(SOURCE, job)
}

fn read<T: Send + 'static>(
    db: &Db,
    job: impl FnMut(&mut Tx<'_>) -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    db.read_blocking(job)
}

fn insert(tx: &mut Tx<'_>, id: i64) -> Result<(), DbError> {
    tx.execute("insert into post (source_id, id) values (1, $1)", &[&id])
        .map(|_| ())
}

fn ids(db: &Db) -> Vec<i64> {
    read(db, |tx| {
        tx.query("select id from post order by id", &[], |row| row.i64(0))
    })
    .expect("a query")
}

/// A gate in a job: the test learns that the job runs, and lets it go on.
fn gate() -> (
    impl Fn() -> Result<(), DbError> + Send + 'static,
    mpsc::Receiver<()>,
    mpsc::Sender<()>,
) {
    let (enter, entered) = mpsc::channel();
    let (open, opened) = mpsc::channel();
    let wait = move || {
        enter.send(()).expect("the test listens");
        opened.recv().expect("the test opens the gate");
        Ok(())
    };
    (wait, entered, open)
}

/// Lets other threads run until it is so.
fn until(what: &str, mut true_by_now: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !true_by_now() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::yield_now();
    }
}
