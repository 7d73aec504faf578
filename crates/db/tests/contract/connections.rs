//! Connections to PostgreSQL: opened when needed, bounded, closed when idle.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use driftline_db::testing::{postgres_database, with_parameters};
use driftline_db::{Db, DbError, Options, SecretUrl, Target, Tx};

use crate::{TABLES, ids, read};

fn open(url: &str, max_idle: Duration) -> Db {
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: None,
    };
    let mut options = Options::new(target, TABLES).with_connections(5);
    assert_eq!((options.writers, options.readers), (3, 2));
    options.max_idle = max_idle;
    Db::open(options).expect("a database")
}

/// How many connections have that name, as a connection with another one sees it.
fn connections(watcher: &Db) -> i64 {
    read(watcher, |tx| {
        let sql = "select count(*) from pg_stat_activity
             where application_name = 'watched' and datname = current_database()";
        tx.query_one(sql, &[], |row| row.i64(0))
    })
    .expect("an answer")
}

/// Waits until there are so many: the server takes a moment to end a connection.
fn wait_for(watcher: &Db, count: i64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let found = connections(watcher);
        if found == count {
            return;
        }
        assert!(Instant::now() < deadline, "{found} and not {count}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn they_are_opened_when_needed_and_closed_when_idle() {
    let url = postgres_database();
    let watched = with_parameters(&url, "application_name=watched");
    let watcher = open(&url, Duration::from_secs(60));
    let db = open(&watched, Duration::from_secs(60));
    wait_for(&watcher, 0);
    for _ in 0..10 {
        assert_eq!(ids(&db), []);
    }
    assert_eq!(connections(&watcher), 1, "the last one is used again");

    // Both readers are at work at once.
    let both = Arc::new(Barrier::new(2));
    let readers = (0..2).map(|_| {
        let (db, both) = (db.clone(), Arc::clone(&both));
        thread::spawn(move || {
            let job = move |tx: &mut Tx<'_>| {
                tx.query("select 1", &[], |_| Ok(()))?;
                both.wait();
                Ok::<_, DbError>(())
            };
            db.read_blocking(job)
        })
    });
    let readers: Vec<_> = readers.collect();
    for reader in readers {
        assert_eq!(reader.join().expect("no panic"), Ok(()));
    }
    assert_eq!(connections(&watcher), 2);
    db.close_blocking();
    wait_for(&watcher, 0);

    let brief = open(&watched, Duration::from_millis(100));
    assert_eq!(ids(&brief), []);
    wait_for(&watcher, 0);
    assert_eq!(ids(&brief), []);
    assert_eq!(brief.stats().reconnects, 0, "{:?}", brief.stats());
    brief.close_blocking();
    watcher.close_blocking();
}

#[test]
fn a_read_leaves_no_transaction_open() {
    let url = postgres_database();
    let watched = with_parameters(&url, "application_name=watched");
    let watcher = open(&url, Duration::from_secs(60));
    let db = open(&watched, Duration::from_secs(60));
    for _ in 0..20 {
        assert_eq!(ids(&db), []);
        let deadline = Instant::now() + Duration::from_secs(20);
        let is_idle = || {
            let sql = "select state = 'idle' as is_idle from pg_stat_activity
                 where application_name = 'watched' and datname = current_database()";
            read(&watcher, |tx| {
                tx.query_one(sql, &[], |row| row.bool("is_idle"))
            })
        };
        // Nobody has waited for its end.
        while is_idle() != Ok(true) {
            assert!(Instant::now() < deadline, "the transaction stays open");
            thread::sleep(Duration::from_millis(1));
        }
    }
    db.close_blocking();
    watcher.close_blocking();
}
