use driftline_db::testing::Fresh;
use driftline_db::{Db, DbError, Root, Tx};

use crate::{TABLES, ids, insert, read, write};

/// A database with one writing and one reading connection.
fn open_single(fresh: &Fresh) -> Db {
    let mut options = fresh.options(TABLES);
    options.writers = 1;
    options.readers = 1;
    Db::open(options).expect("a database")
}

fn backend(tx: &mut Tx<'_>) -> Result<i64, DbError> {
    tx.query_one("select pg_backend_pid()", &[], |row| row.i64(0))
}

/// Ends a connection from another one.
fn kill(killer: &Db, backend: i64) {
    let killed = read(killer, move |tx| {
        // Citus has another function of the name, for wider numbers.
        let sql = "select pg_terminate_backend(cast($1 as integer), cast(10000 as bigint))";
        tx.query_one(sql, &[&backend], |row| row.bool(0))
    });
    assert_eq!(killed, Ok(true));
}

#[test]
fn a_killed_idle_connection_is_replaced() {
    let fresh = Fresh::postgres();
    let (db, killer) = (open_single(&fresh), open_single(&fresh));
    for id in 0..3 {
        let writer = write(&db, move |tx| {
            insert(tx, id)?;
            backend(tx)
        })
        .expect("a write");
        let reader = read(&db, backend).expect("a read");
        kill(&killer, writer);
        kill(&killer, reader);
    }
    assert_eq!(ids(&db), [0, 1, 2]);
    assert!(db.stats().reconnects >= 4, "{:?}", db.stats());
    db.close_blocking();
    killer.close_blocking();
}

#[test]
fn a_transaction_whose_connection_is_killed_is_run_again() {
    let fresh = Fresh::postgres();
    let (db, killer) = (open_single(&fresh), open_single(&fresh));
    let mut runs = 0;
    let killing = killer.clone();
    let result = write(&db, move |tx| {
        runs += 1;
        insert(tx, runs)?;
        if runs == 1 {
            kill(&killing, backend(tx)?);
        }
        insert(tx, 10 + runs)?;
        Ok(runs)
    });
    assert_eq!(result, Ok(2));
    assert_eq!(ids(&db), [2, 12]);
    db.close_blocking();
    killer.close_blocking();
}

#[test]
fn a_connection_lost_at_the_commit_is_an_unknown_outcome() {
    let fresh = Fresh::postgres();
    let (db, killer) = (open_single(&fresh), open_single(&fresh));
    let killing = killer.clone();
    let result = write(&db, move |tx| {
        insert(tx, 1)?;
        kill(&killing, backend(tx)?);
        Ok(())
    });
    assert_eq!(result, Err(DbError::CommitUnknown));
    assert_eq!(ids(&db), []);
    db.close_blocking();
    killer.close_blocking();
}

#[test]
fn a_schema_change_does_not_break_cached_statements() {
    let fresh = Fresh::postgres();
    let (db, other) = (open_single(&fresh), open_single(&fresh));
    let all =
        |tx: &mut Tx<'_>| tx.query("select * from source where id = 1", &[], |row| row.i64(1));
    for _ in 0..2 {
        assert_eq!(db.write_blocking(Root::none(), all), Ok(vec![0]));
    }
    let alter = "alter table source add column name text";
    other
        .write_blocking(Root::none(), move |tx| tx.execute(alter, &[]))
        .expect("a write");
    assert_eq!(db.write_blocking(Root::none(), all), Ok(vec![0]));
    assert_eq!(db.stats().retries, 1);
    db.close_blocking();
    other.close_blocking();
}

#[test]
fn the_statement_cache_is_bounded() {
    let db = open_single(&Fresh::postgres());
    let kept = read(&db, |tx| {
        for n in 0..600 {
            tx.query_one(&format!("select {n}"), &[], |row| row.i64(0))?;
        }
        tx.query_one("select count(*) from pg_prepared_statements", &[], |row| {
            row.i64(0)
        })
    });
    let kept = kept.expect("a query");
    assert!((1..=256).contains(&kept), "{kept}");
    db.close_blocking();
}
