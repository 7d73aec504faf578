//! Statements and transactions that take too long, and transactions that exclude each other.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use driftline_db::testing::Fresh;
use driftline_db::{Db, DbError, Migration, Options, Root, Tx};

use crate::{TABLES, ids, insert, migration, read, write};

/// [`Fresh::postgres`] with further parameters in its URL, and one connection of each kind.
fn with(parameters: &str) -> (Fresh, Options) {
    let fresh = Fresh::postgres();
    let mut options = Options::new(fresh.with_parameters(parameters), TABLES);
    (options.readers, options.writers) = (1, 1);
    (fresh, options)
}

fn text(db: &Db, sql: &'static str) -> String {
    read(db, move |tx| tx.query_one(sql, &[], |row| row.text(0))).expect("an answer")
}

fn backend(tx: &mut Tx<'_>) -> Result<i64, DbError> {
    tx.query_one("select pg_backend_pid()", &[], |row| row.i64(0))
}

#[test]
fn sessions_have_their_bounds() {
    for (parameters, statement, idle) in [
        ("", "5min", "4s"),
        ("statement_timeout=7s", "7s", "4s"),
        (
            "idle_in_transaction_session_timeout=9s&statement_timeout=0",
            "0",
            "9s",
        ),
        ("options=-c%20statement_timeout%3D11s", "11s", "4s"),
    ] {
        let (_fresh, options) = with(parameters);
        let db = Db::open(options).expect("a database");
        let show = "select current_setting('statement_timeout') || ' '
            || current_setting('idle_in_transaction_session_timeout')";
        let expected = format!("{statement} {idle}");
        assert_eq!(text(&db, show), expected, "{parameters}");
        let written = write(&db, move |tx| tx.query_one(show, &[], |row| row.text(0)));
        assert_eq!(written, Ok(expected));
        db.close_blocking();
    }
}

/// A machine that is gone is noticed within 2 s, by sessions that wait for a row too, unless the URL says otherwise.
#[test]
fn sessions_end_with_their_machine() {
    let cases = [
        ("", "1000ms 1 1s 1s 2000ms"),
        (
            "options=-c%20tcp_user_timeout%3D9000",
            "1000ms 1 1s 1s 9000ms",
        ),
    ];
    for (parameters, expected) in cases {
        let (_fresh, options) = with(parameters);
        let db = Db::open(options).expect("a database");
        let shown =
            "select string_agg(setting || coalesce(unit, ''), ' ' order by name) from pg_settings
            where name in ('client_connection_check_interval', 'tcp_keepalives_idle',
                'tcp_keepalives_interval', 'tcp_keepalives_count', 'tcp_user_timeout')";
        assert_eq!(text(&db, shown), expected, "{parameters}");
        let written = write(&db, move |tx| tx.query_one(shown, &[], |row| row.text(0)));
        assert_eq!(written, Ok(expected.to_owned()), "{parameters}");
        db.close_blocking();
    }
}

#[test]
fn a_statement_that_takes_too_long_fails_and_the_session_goes_on() {
    let (_fresh, options) = with("statement_timeout=200ms");
    let db = Db::open(options).expect("a database");
    let before = (read(&db, backend), write(&db, backend));
    let slow = |tx: &mut Tx<'_>| {
        insert(tx, 1)?;
        tx.query_one("select pg_sleep(60)", &[], |_| Ok(()))
    };
    for _ in 0..2 {
        let cancelled = write(&db, slow);
        assert!(
            matches!(cancelled, Err(DbError::Cancelled(_))),
            "{cancelled:?}"
        );
        let text = cancelled
            .map_err(|error| error.to_string())
            .expect_err("an error");
        assert!(text.contains("statement timeout"), "{text}");
        write(&db, |tx| {
            insert(tx, 2).and_then(|()| tx.execute("delete from post", &[]))
        })
        .expect("a write");
    }
    let waits = "select pg_sleep(60)";
    let cancelled = read(&db, move |tx| tx.query_one(waits, &[], |_| Ok(())));
    assert!(
        matches!(cancelled, Err(DbError::Cancelled(_))),
        "{cancelled:?}"
    );
    assert_eq!(ids(&db), []);
    assert_eq!((read(&db, backend), write(&db, backend)), before);
    assert_eq!((db.stats().reconnects, db.stats().retries), (0, 0));
    db.close_blocking();
}

#[test]
fn a_migration_may_take_longer() {
    static SLOW: &[Migration] = &[migration(
        1,
        "slow",
        1,
        "create table slow (id {i64} primary key not null); select pg_sleep(0.5)",
    )];
    let (_fresh, options) = with("statement_timeout=100ms");
    let migrations = SLOW;
    let db = Db::open(Options {
        migrations,
        ..options
    })
    .expect("a database");
    db.close_blocking();
}

#[test]
fn a_transaction_that_stands_still_is_ended_and_run_again() {
    let (fresh, options) = with("idle_in_transaction_session_timeout=100ms");
    let db = Db::open(options).expect("a database");
    let watcher = fresh.open(&[]);
    let watching = watcher.clone();
    let mut runs = 0;
    let result = write(&db, move |tx| {
        runs += 1;
        insert(tx, runs)?;
        if runs == 1 {
            let stands = backend(tx)?;
            wait_for(&watching, move |tx| {
                let sql = "select not exists (select 1 from pg_stat_activity where pid = $1)";
                tx.query_one(sql, &[&stands], |row| row.bool(0))
            });
        }
        insert(tx, 10 + runs)?;
        Ok(runs)
    });
    assert_eq!(result, Ok(2));
    assert_eq!(ids(&db), [2, 12]);
    db.close_blocking();
    watcher.close_blocking();
}

#[test]
fn a_transaction_that_cannot_be_serialized_is_run_again() {
    let (fresh, options) = with("");
    let db = Db::open(options).expect("a database");
    let other = fresh.open(&[]);
    let between = other.clone();
    let mut runs = 0;
    let result = db.write_blocking(Root::none(), move |tx| {
        runs += 1;
        tx.execute("set transaction isolation level repeatable read", &[])?;
        let sql = "select cursor from source where id = 1";
        let cursor = tx.query_one(sql, &[], |row| row.i64(0))?;
        if runs == 1 {
            let add = "update source set cursor = cursor + 10 where id = 1";
            write(&between, move |tx| tx.execute(add, &[]))?;
        }
        let set = "update source set cursor = $1 where id = 1";
        tx.execute_later(set, &[&(cursor + 1)])?;
        Ok::<_, DbError>(runs)
    });
    assert_eq!(result, Ok(2));
    assert_eq!(db.stats().retries, 1);
    assert_eq!(
        text(
            &other,
            "select cast(cursor as text) from source where id = 1"
        ),
        "11"
    );
    db.close_blocking();
    other.close_blocking();
}

/// The migration holds one table and waits for another, whose holder waits for the first.
static LOCKS: &[Migration] = &[
    TABLES[0],
    migration(
        2,
        "locks",
        2,
        "
            lock table post;
            do $$ begin
                for n in 1..200 loop
                    exit when exists (select 1 from pg_locks
                        where not granted and relation = 'post'::regclass);
                    perform pg_sleep(0.01);
                end loop;
            end $$;
            lock table source;
            alter table source add column name text",
    ),
];

#[test]
fn a_migration_that_is_deadlocked_is_run_again() {
    let (fresh, options) = with("");
    let writer = fresh.open(TABLES);
    let (begun, begins) = mpsc::channel();
    let locking = writer.clone();
    let write = thread::spawn(move || {
        locking.write_blocking(Root::none(), move |tx| {
            // The longer waiter finds the deadlock: with a server's own time of 1 s it does so anyway,
            // where only a superuser may set another.
            let patient = "do $$ begin set local deadlock_timeout = '30s';
                exception when insufficient_privilege then null; end $$";
            tx.execute(patient, &[])?;
            tx.execute("lock table source", &[])?;
            let _ = begun.send(());
            poll(|| {
                let sql = "select exists (select 1 from pg_locks where granted
                    and mode = 'AccessExclusiveLock' and relation = 'post'::regclass)";
                tx.query_one(sql, &[], |row| row.bool(0))
            })?;
            tx.execute("lock table post", &[])?;
            Ok::<_, DbError>(())
        })
    });
    begins.recv().expect("it begins");
    let migrations = LOCKS;
    let db = Db::open(Options {
        migrations,
        ..options
    })
    .expect("a migrated database");
    assert_eq!(write.join().expect("no panic"), Ok(()));
    read(&db, |tx| {
        tx.query("select name from source", &[], |_| Ok(()))
    })
    .expect("the column");
    db.close_blocking();
    writer.close_blocking();
}

/// Asks until the answer is yes.
fn wait_for(
    db: &Db,
    is_so: impl FnMut(&mut Tx<'_>) -> Result<bool, DbError> + Send + Clone + 'static,
) {
    poll(|| read(db, is_so.clone())).expect("an answer");
}

fn poll(mut is_so: impl FnMut() -> Result<bool, DbError>) -> Result<(), DbError> {
    for _ in 0..1_000 {
        if is_so()? {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it did not come")
}
