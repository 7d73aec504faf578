use std::collections::BTreeSet;
use std::thread;

use driftline_db::{Column, Db, DbError, Root};

use crate::{read, write};

on_both!(
    no_update_is_lost_below_a_root,
    each_job_is_claimed_once,
    a_row_that_is_locked_later_is_held_to_the_commit,
);

fn no_update_is_lost_below_a_root(db: &Db) {
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let db = db.clone();
            thread::spawn(move || {
                for _ in 0..25 {
                    write(&db, |tx| {
                        let cursor =
                            tx.query_one("select cursor from source where id = 1", &[], |row| {
                                row.i64(0)
                            })?;
                        tx.execute(
                            "update source set cursor = $1 where id = 1",
                            &[&(cursor + 1)],
                        )
                    })
                    .expect("a write");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().expect("no panic");
    }
    let cursor = read(db, |tx| {
        tx.query_one("select cursor from source where id = 1", &[], |row| {
            row.i64(0)
        })
    });
    assert_eq!(cursor, Ok(200));
}

fn each_job_is_claimed_once(db: &Db) {
    write(db, |tx| {
        tx.execute_many(
            "insert into post (source_id, id) select 1, r.id from {rows as r(id)}",
            &[],
            &[Column::i64(0..100)],
        )
    })
    .expect("a write");
    let claimers: Vec<_> = (0..8)
        .map(|_| {
            let db = db.clone();
            thread::spawn(move || {
                let mut claimed = Vec::new();
                loop {
                    let some = db.write_blocking(Root::none(), |tx| {
                        tx.query(
                            "delete from post where source_id = $1 and id in (
                                     select id from post where source_id = $1
                                     order by id limit $2 {skip_locked})
                                 returning id",
                            &[&1, &3],
                            |row| row.i64(0),
                        )
                    });
                    match some {
                        Ok(ids) if ids.is_empty() => return Ok(claimed),
                        Ok(ids) => claimed.extend(ids),
                        Err(error) => return Err::<_, DbError>(error),
                    }
                }
            })
        })
        .collect();
    let claimed: Vec<i64> = claimers
        .into_iter()
        .flat_map(|claimer| claimer.join().expect("no panic").expect("no error"))
        .collect();
    assert_eq!(claimed.len(), 100);
    assert_eq!(
        claimed.into_iter().collect::<BTreeSet<_>>(),
        (0..100).collect()
    );
}

fn a_row_that_is_locked_later_is_held_to_the_commit(db: &Db) {
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let db = db.clone();
            thread::spawn(move || {
                for _ in 0..10 {
                    let counted = db.write_blocking(Root::none(), |tx| {
                        tx.lock_later(Root::row("source", "id", 2))?;
                        let sql = "select cursor from source where id = 2";
                        let cursor = tx.query_one(sql, &[], |row| row.i64(0))?;
                        let sql = "update source set cursor = $1 where id = 2";
                        tx.execute(sql, &[&(cursor + 1)])
                    });
                    counted.expect("a write");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().expect("no panic");
    }
    let cursor = read(db, |tx| {
        tx.query_one("select cursor from source where id = 2", &[], |row| {
            row.i64(0)
        })
    });
    assert_eq!(cursor, Ok(80));
    let missing = db.write_blocking(Root::none(), |tx| {
        tx.lock_later(Root::row("source", "id", 9))?;
        tx.query_one("select 1", &[], |_| Ok(()))
    });
    assert_eq!(missing, Err(DbError::RootMissing("source")));
}
