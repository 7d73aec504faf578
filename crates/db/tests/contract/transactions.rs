use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use driftline_db::{Db, DbError, Dialect, Root};

use crate::{gate, ids, insert, on_postgres, read, write};

on_both!(
    a_closure_that_fails_leaves_nothing,
    a_swallowed_error_still_poisons_the_transaction,
    a_swallowed_row_error_poisons_as_well,
    constraints_are_distinguished,
    a_read_cannot_write,
    a_read_sees_one_snapshot,
    a_missing_root_refuses_the_write,
    a_panic_is_its_callers_only,
    reserved_numbers_are_taken_in_order,
);

/// A domain's own error.
#[derive(Debug, PartialEq)]
enum StoreError {
    Refused,
    Db(DbError),
}

impl From<DbError> for StoreError {
    fn from(error: DbError) -> StoreError {
        StoreError::Db(error)
    }
}

fn a_closure_that_fails_leaves_nothing(db: &Db) {
    let result = db.write_blocking(crate::SOURCE, |tx| {
        insert(tx, 1)?;
        Err::<(), _>(StoreError::Refused)
    });
    assert_eq!(result, Err(StoreError::Refused));
    assert_eq!(ids(db), []);
}

fn a_swallowed_error_still_poisons_the_transaction(db: &Db) {
    let result = write(db, |tx| {
        insert(tx, 1)?;
        let first = insert(tx, 1);
        assert!(matches!(first, Err(DbError::Conflict { .. })), "{first:?}");
        let second = insert(tx, 2);
        assert!(matches!(second, Err(DbError::Poisoned(_))), "{second:?}");
        Ok(())
    });
    assert!(matches!(result, Err(DbError::Poisoned(_))), "{result:?}");
    assert_eq!(ids(db), []);
}

fn a_swallowed_row_error_poisons_as_well(db: &Db) {
    let result = write(db, |tx| {
        insert(tx, 1)?;
        let _ = tx.query("select id from post", &[], |row| row.text(0));
        Ok(())
    });
    assert!(matches!(result, Err(DbError::Poisoned(_))), "{result:?}");
    assert_eq!(ids(db), []);
}

fn constraints_are_distinguished(db: &Db) {
    let conflict = write(db, |tx| insert(tx, 1).and_then(|()| insert(tx, 1)));
    let Err(DbError::Conflict { table, constraint }) = conflict else {
        panic!("{conflict:?}");
    };
    assert_eq!(table, "post");
    assert!(!constraint.is_empty());
    let check = write(db, |tx| {
        tx.execute(
            "insert into post (source_id, id, likes) values (1, 1, -1)",
            &[],
        )
    });
    assert!(matches!(check, Err(DbError::Constraint(_))), "{check:?}");
    let null = write(db, |tx| {
        tx.execute("insert into post (source_id) values (1)", &[])
    });
    assert!(matches!(null, Err(DbError::Constraint(_))), "{null:?}");
}

fn a_read_cannot_write(db: &Db) {
    assert_eq!(read(db, |tx| insert(tx, 1)), Err(DbError::ReadOnly));
    assert_eq!(ids(db), []);
}

fn a_read_sees_one_snapshot(db: &Db) {
    write(db, |tx| insert(tx, 1)).expect("a write");
    let (wait, entered, open) = gate();
    let reader = thread::spawn({
        let db = db.clone();
        move || {
            read(&db, move |tx| {
                let count = |tx: &mut driftline_db::Tx<'_>| {
                    tx.query_one("select count(*) from post", &[], |row| row.i64(0))
                };
                let before = count(tx)?;
                wait()?;
                Ok((before, count(tx)?))
            })
        }
    });
    entered.recv().expect("the read runs");
    write(db, |tx| insert(tx, 2)).expect("a write during the read");
    open.send(()).expect("the read waits");
    assert_eq!(reader.join().expect("no panic"), Ok((1, 1)));
    assert_eq!(ids(db), [1, 2]);
}

fn a_missing_root_refuses_the_write(db: &Db) {
    let result = db.write_blocking(Root::row("source", "id", 9), |tx| insert(tx, 1));
    assert_eq!(result, Err(DbError::RootMissing("source")));
    assert_eq!(ids(db), []);
}

fn a_panic_is_its_callers_only(db: &Db) {
    for _ in 0..10 {
        let result: Result<(), DbError> = write(db, |tx| {
            insert(tx, 1)?;
            panic!("on purpose");
        });
        assert_eq!(result, Err(DbError::Panicked));
        let result: Result<(), DbError> = read(db, |_| panic!("on purpose"));
        assert_eq!(result, Err(DbError::Panicked));
    }
    write(db, |tx| insert(tx, 2)).expect("the writer goes on");
    assert_eq!(ids(db), [2]);
}

#[test]
fn a_deadlock_is_run_again() {
    on_postgres(|db| {
        assert_eq!(db.dialect(), Dialect::Postgres);
        let meet = Arc::new(Barrier::new(2));
        let runs = Arc::new(AtomicU32::new(0));
        let writers = [(1, 2), (2, 1)].map(|(first, second)| {
            let (db, meet, runs) = (db.clone(), Arc::clone(&meet), Arc::clone(&runs));
            thread::spawn(move || {
                let mut again = false;
                db.write_blocking(Root::none(), move |tx| {
                    let add = "update source set cursor = cursor + 1 where id = $1";
                    runs.fetch_add(1, Ordering::Relaxed);
                    tx.execute(add, &[&first])?;
                    if !again {
                        again = true;
                        meet.wait();
                    }
                    // Even a closure that swallows the error is run again.
                    let _ = tx.execute(add, &[&second]);
                    Ok::<_, DbError>(())
                })
            })
        });
        for writer in writers {
            assert_eq!(writer.join().expect("no panic"), Ok(()));
        }
        let cursors = read(db, |tx| {
            tx.query("select cursor from source order by id", &[], |row| {
                row.i64(0)
            })
        });
        assert_eq!(cursors, Ok(vec![2, 2]));
        // The loser may meet the winner once more before that one has ended.
        let retries = db.stats().retries;
        assert!(retries >= 1);
        assert_eq!(u64::from(runs.load(Ordering::Relaxed)), 2 + retries);
    });
}

fn reserved_numbers_are_taken_in_order(db: &Db) {
    let taken = write(db, |tx| {
        let before = tx.take_reserved(1);
        tx.reserve(5..9);
        let taken = [2, 1].map(|count| tx.take_reserved(count));
        // The one that is left is below what the caller gets elsewhere.
        let after = [2, 1].map(|count| tx.take_reserved(count));
        Ok((before, taken, after))
    });
    assert_eq!(taken, Ok((None, [Some(5), Some(7)], [None, None])));
}
