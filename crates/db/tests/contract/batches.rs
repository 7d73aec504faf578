use driftline_db::{Column, Db, DbError, Dialect};
use proptest::prelude::*;

use crate::{ids, on_both, read, write};

on_both!(
    a_column_of_nulls_has_a_type,
    plain_rows_are_inserted,
    a_batch_updates_joins_and_deletes,
    a_failing_row_undoes_the_batch,
    a_malformed_batch_is_refused,
);

type Post = (i64, Option<String>, Option<bool>, Option<i64>);

fn columns(posts: &[Post]) -> [Column<'_>; 4] {
    [
        Column::i64(posts.iter().map(|post| post.0)),
        Column::text(posts.iter().map(|post| post.1.as_deref())),
        Column::bool(posts.iter().map(|post| post.2)),
        Column::i64(posts.iter().map(|post| post.3)),
    ]
}

fn insert_all(db: &Db, posts: Vec<Post>) -> Result<u64, DbError> {
    write(db, move |tx| {
        tx.execute_many(
            "insert into post (source_id, id, body, hidden, likes)
             select $1, r.id, r.body, r.hidden, r.likes
             from {rows as r(id, body, hidden, likes)} where true
             on conflict (source_id, id) do update
             set body = excluded.body, hidden = excluded.hidden, likes = excluded.likes",
            &[&1],
            &columns(&posts),
        )
    })
}

fn all(db: &Db) -> Vec<Post> {
    read(db, |tx| {
        let sql = "select id, body, hidden, likes from post order by id";
        tx.query(sql, &[], |row| {
            Ok((
                row.i64(0)?,
                row.opt_text(1)?,
                row.opt_bool(2)?,
                row.opt_i64(3)?,
            ))
        })
    })
    .expect("a query")
}

#[test]
fn every_value_comes_back_as_it_went_in() {
    let post = |id| {
        (
            Just(id),
            proptest::option::of("[^\0]{0,12}"),
            any::<Option<bool>>(),
            proptest::option::of(0..=i64::MAX),
        )
    };
    let posts = prop::collection::btree_set(any::<i64>(), 0..30)
        .prop_flat_map(move |ids| ids.into_iter().map(post).collect::<Vec<_>>());
    on_both(|db| {
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
            cases: 40,
            failure_persistence: None,
            ..ProptestConfig::default()
        });
        let checked = runner.run(&posts, |posts| {
            let count = insert_all(db, posts.clone());
            prop_assert_eq!(count, Ok(posts.len() as u64));
            // Once more as an update.
            prop_assert_eq!(insert_all(db, posts.clone()), Ok(posts.len() as u64));
            prop_assert_eq!(all(db), posts);
            write(db, |tx| tx.execute("delete from post", &[])).expect("a write");
            Ok(())
        });
        checked.expect("values survive");
    });
}

fn a_column_of_nulls_has_a_type(db: &Db) {
    let posts: Vec<Post> = (1..=3).map(|id| (id, None, None, None)).collect();
    assert_eq!(insert_all(db, posts.clone()), Ok(3));
    assert_eq!(all(db), posts);
}

fn plain_rows_are_inserted(db: &Db) {
    let insert = |ids: &'static [i64]| {
        write(db, move |tx| {
            tx.execute_many(
                "insert into post (source_id, id) {rows} on conflict (source_id, id) do nothing",
                &[],
                &[
                    Column::i64(ids.iter().map(|_| 1)),
                    Column::i64(ids.iter().copied()),
                ],
            )
        })
    };
    assert_eq!(insert(&[3, 1]), Ok(2));
    assert_eq!(insert(&[1, 2, 3, 4]), Ok(2));
    assert_eq!(insert(&[]), Ok(0));
    assert_eq!(ids(db), [1, 2, 3, 4]);
}

fn a_batch_updates_joins_and_deletes(db: &Db) {
    insert_all(
        db,
        (1..=4).map(|id| (id, None, None, Some(id * 10))).collect(),
    )
    .expect("a write");
    let updated = write(db, |tx| {
        tx.execute_many(
            "update post set likes = r.likes + $1
                 from {rows as r(id, likes)} where post.source_id = $2 and post.id = r.id",
            &[&100, &1],
            &[Column::i64([2, 3, 9]), Column::i64([5, 6, 7])],
        )
    });
    assert_eq!(updated, Ok(2));
    let likes = read(db, |tx| {
        tx.query("select likes from post order by id", &[], |row| row.i64(0))
    });
    assert_eq!(likes, Ok(vec![10, 105, 106, 40]));
    let deleted = write(db, |tx| {
        tx.execute_many(
            "delete from post where (source_id, id) in (select a, b from {rows as r(a, b)})",
            &[],
            &[Column::i64([1, 1, 2]), Column::i64([1, 4, 2])],
        )
    });
    assert_eq!(deleted, Ok(2));
    assert_eq!(ids(db), [2, 3]);
}

fn a_failing_row_undoes_the_batch(db: &Db) {
    let failed = write(db, |tx| {
        tx.execute_many(
            "insert into post (source_id, id, likes) select 1, r.id, r.likes
                 from {rows as r(id, likes)}",
            &[],
            &[Column::i64([1, 2, 3]), Column::i64([0, -1, 0])],
        )
    });
    assert!(matches!(failed, Err(DbError::Constraint(_))), "{failed:?}");
    assert_eq!(ids(db), []);
}

fn a_malformed_batch_is_refused(db: &Db) {
    let refused = |sql: &'static str, columns: Vec<Column<'static>>| {
        let result = write(db, move |tx| tx.execute_many(sql, &[], &columns));
        assert!(matches!(result, Err(DbError::Type(_))), "{sql}: {result:?}");
    };
    let insert = "insert into post (source_id, id) {rows}";
    refused(insert, vec![]);
    refused(insert, vec![Column::i64([1, 2]), Column::i64([1])]);
    refused("delete from post", vec![Column::i64([1])]);
    let misnamed = write(db, |tx| {
        let sql = "delete from post where id in (select a from {rows as r(a, b)})";
        tx.execute_many(sql, &[], &[Column::i64([1])])
    });
    assert!(misnamed.is_err());
    refused(
        "insert into post (source_id, id) {rows} returning id",
        vec![Column::i64([1]), Column::i64([1])],
    );
    assert_eq!(ids(db), []);
}

#[test]
fn numbers_may_count_from_what_the_same_transaction_wrote() {
    const CURSOR: &str = "select cursor from source where id = 1";
    on_both(|db| {
        let counted = |rows: &'static str| {
            write(db, move |tx| {
                tx.execute_later("update source set cursor = cursor + 10 where id = 1", &[])?;
                let ids = Column::counted([Some(-9), Some(1000), Some(0)], CURSOR);
                tx.execute_many_later(rows, &[], &[Column::i64([1, 1, 1]), ids])
            })
        };
        let as_they_are = counted("insert into post (source_id, id) {rows}");
        let named = counted(
            "insert into post (source_id, id) select r.source_id, r.id + 5000
             from {rows as r(source_id, id)} where true on conflict (source_id, id) do nothing",
        );
        match db.dialect() {
            Dialect::Postgres => assert_eq!(ids(db), [1, 10, 1000, 5011, 5020, 6000]),
            Dialect::Sqlite => {
                assert!(
                    matches!(as_they_are, Err(DbError::Type(_))),
                    "{as_they_are:?}"
                );
                assert!(matches!(named, Err(DbError::Type(_))), "{named:?}");
                let known = write(db, |tx| {
                    let ids = Column::counted([7, 8], CURSOR);
                    tx.execute_many(
                        "insert into post (source_id, id) {rows}",
                        &[],
                        &[Column::i64([1, 1]), ids],
                    )
                });
                assert_eq!((known, ids(db)), (Ok(2), vec![7, 8]));
            }
        }
    });
}
