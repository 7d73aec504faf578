use driftline_db::{Column, Db, DbError, Dialect, Root};

use crate::{ids, insert, on_both, on_postgres, read, write};

on_both!(
    what_runs_later_runs_in_order_before_the_next_answer,
    what_runs_later_is_committed,
    a_failure_of_what_runs_later_fails_the_transaction,
    each_row_of_a_batch_is_looked_up,
    rows_of_queries_that_are_read_later_are_as_when_they_were_asked,
    a_query_that_fails_later_fails_the_transaction,
);

const INSERT: &str = "insert into post (source_id, id, body) values ($1, $2, $3)";

fn what_runs_later_runs_in_order_before_the_next_answer(db: &Db) {
    let seen = write(db, |tx| {
        tx.execute_later(INSERT, &[&1, &7, &""])?;
        for letter in ["a", "b", "c"].iter().cycle().take(90) {
            let text = (*letter).to_owned();
            tx.execute_later(
                "update post set body = body || $1 where source_id = 1 and id = 7",
                &[&text],
            )?;
            // What a statement was made from need not outlive its call.
            drop(text);
        }
        tx.query_one("select body from post where id = 7", &[], |row| row.text(0))
    });
    assert_eq!(seen, Ok("abc".repeat(30)));
}

fn what_runs_later_is_committed(db: &Db) {
    write(db, |tx| {
        let insert = "insert into post (source_id, id) {rows}";
        let rows = [Column::i64([1, 1]), Column::i64([5, 6])];
        tx.execute_many_later(insert, &[], &rows)?;
        let none = || Column::i64(std::iter::empty::<i64>());
        tx.execute_many_later(insert, &[], &[none(), none()])
    })
    .expect("a write");
    assert_eq!(ids(db), [5, 6]);
}

fn a_failure_of_what_runs_later_fails_the_transaction(db: &Db) {
    for asks_again in [false, true] {
        let result = write(db, move |tx| {
            insert(tx, 1)?;
            // SQLite reports at once, PostgreSQL with the next answer or the commit.
            let _ = tx.execute_later(INSERT, &[&1, &1, &"again"]);
            let _ = tx.execute_later(INSERT, &[&1, &2, &""]);
            if asks_again {
                let asked = tx.query("select id from post", &[], |row| row.i64(0));
                assert!(asked.is_err(), "{asked:?}");
            }
            Ok(())
        });
        let is_told = matches!(result, Err(DbError::Conflict { .. } | DbError::Poisoned(_)));
        assert!(is_told, "{result:?}");
        assert_eq!(ids(db), []);
    }
}

fn each_row_of_a_batch_is_looked_up(db: &Db) {
    write(db, |tx| {
        for id in 1..=9 {
            insert(tx, id)?;
        }
        Ok(())
    })
    .expect("a write");
    let found = read(db, |tx| {
        tx.query_each(
            "select id, {row 2} from post where source_id = $1 and id = {row 1}",
            &[&1],
            &[
                Column::i64([4, 40, 2]),
                Column::text(["four", "forty", "two"].map(Some)),
            ],
            |row| Ok((row.i64(0)?, row.text(1)?)),
        )
    });
    let mut found = found.expect("a query");
    found.sort();
    assert_eq!(found, [(2, "two".to_owned()), (4, "four".to_owned())]);
    let several = read(db, |tx| {
        let above = "select id from post where source_id = 1 and id > {row 1} order by id";
        tx.query_each(above, &[], &[Column::i64([3, 9])], |row| row.i64(0))
    });
    assert_eq!(several, Ok(vec![4]), "one row at most");
    let none = read(db, |tx| {
        tx.query_each(
            "select 1 from post where id = {row 2}",
            &[],
            &[Column::i64([3])],
            |row| row.i64(0),
        )
    });
    assert!(matches!(none, Err(DbError::Other(_))), "{none:?}");
}

fn rows_of_queries_that_are_read_later_are_as_when_they_were_asked(db: &Db) {
    let read = write(db, |tx| {
        insert(tx, 1)?;
        let one = tx.query_later("select id from post", &[], |row| row.i64(0))?;
        tx.execute_later(INSERT, &[&1, &2, &"two"])?;
        let of_both = "select id, body from post where source_id = $1 and id = {row 1}";
        let asked = [Column::i64([2, 9, 1])];
        let two = tx.query_each_later(of_both, &[&1], &asked, |row| row.i64(0))?;
        let never_read = tx.query_later("select id from post", &[], |row| row.i64(0))?;
        drop(never_read);
        let none = [Column::i64(std::iter::empty::<i64>())];
        let none = tx.query_each_later(of_both, &[&1], &none, |row| row.i64(0))?;
        tx.execute_later("delete from post where id = 1", &[])?;
        // The last that was asked is read first, and what was asked before travels with it.
        let (mut two, one) = (tx.rows(two)?, tx.rows(one)?);
        two.sort_unstable();
        Ok((one, two, tx.rows(none)?))
    });
    assert_eq!(read, Ok((vec![1], vec![1, 2], vec![])));
    assert_eq!(ids(db), [2]);
}

#[test]
fn many_queries_that_are_read_later_cost_one_round_trip() {
    let question = "select id from post where source_id = $1";
    on_both(|db| {
        let ask = move |questions: usize| {
            move |tx: &mut driftline_db::Tx<'_>| {
                let asked: Result<Vec<_>, _> = (0..questions)
                    .map(|_| tx.query_later(question, &[&1], |row| row.i64(0)))
                    .collect();
                let mut found = 0;
                for pending in asked? {
                    found += tx.rows(pending)?.len();
                }
                Ok(found)
            }
        };
        write(db, |tx| insert(tx, 1)).expect("a write");
        // The first prepares the statement.
        assert_eq!(write(db, ask(1)), Ok(1));
        let before = db.stats().round_trips;
        assert_eq!(write(db, ask(20)), Ok(20));
        let trips = db.stats().round_trips - before;
        let expected = match read(db, |tx| Ok(tx.dialect())) {
            Ok(Dialect::Sqlite) => 0,
            _ => 2,
        };
        assert_eq!(trips, expected, "one for the rows, one for the commit");
        // More than may wait is sent before, and its rows are kept.
        assert_eq!(write(db, ask(100)), Ok(100));
    });
}

fn a_query_that_fails_later_fails_the_transaction(db: &Db) {
    let result = write(db, |tx| {
        insert(tx, 1)?;
        let asked = tx.query_later("select 1 / (id - 1) from post", &[], |row| row.i64(0))?;
        let _ = tx.execute_later(INSERT, &[&1, &1, &"again"]);
        let read = tx.rows(asked);
        // SQLite divides by zero without an error, and reports the insert.
        assert!(tx.dialect() == Dialect::Sqlite || read.is_err());
        Ok(())
    });
    assert!(result.is_err(), "{result:?}");
    assert_eq!(ids(db), []);
}

#[test]
fn a_statement_is_prepared_before_a_lock_that_waits_to_be_sent() {
    on_postgres(|db| {
        write(db, |tx| {
            insert(tx, 1)?;
            insert(tx, 2)
        })
        .expect("a write");
        let other = db.clone();
        let done = write(db, move |tx| {
            tx.query_one("select 1 from post where id = 2", &[], |row| row.i64(0))?;
            tx.lock_later(Root::row("source", "id", 2))?;
            // It has not been run before on any connection.
            tx.execute_later(
                "update post set likes = 7 where id = $1 and likes is null",
                &[&1],
            )?;
            // Were the lock sent along, this would wait for it.
            other.write_blocking(Root::row("source", "id", 2), |_| Ok::<_, DbError>(()))
        });
        assert_eq!(done, Ok(()));
    });
}
