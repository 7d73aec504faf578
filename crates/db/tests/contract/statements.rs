use driftline_db::testing::schema;
use driftline_db::{Column, Db, DbError, Tx};

use crate::{insert, migration, on_both_direct, on_postgres, read, write};

on_both!(
    parameters_are_numbered_by_name_not_by_place,
    queries_say_how_many_rows_they_expect,
    execute_counts_the_rows_it_changed,
    a_list_is_a_set_of_keys,
    words_in_quotes_and_comments_are_left_alone,
    text_sorts_by_bytes_where_it_says_so,
);

fn parameters_are_numbered_by_name_not_by_place(db: &Db) {
    let row = read(db, |tx| {
        tx.query_one(
            "select cast($2 as text), cast($1 as bigint), cast($2 as text), cast($3 as bigint)",
            &[&1, &"two", &3],
            |row| Ok((row.text(0)?, row.i64(1)?, row.text(2)?, row.i64(3)?)),
        )
    });
    assert_eq!(row, Ok(("two".to_owned(), 1, "two".to_owned(), 3)));
}

#[test]
fn parameters_must_match_the_statement() {
    on_both_direct(|db| {
        for count in [0, 2] {
            let result = read(db, move |tx| {
                let params: [&dyn driftline_db::ToValue; 2] = [&1, &2];
                tx.query(
                    "select id from post where id = $1",
                    &params[..count],
                    |_| Ok(()),
                )
            });
            let wanted = format!("the statement has 1 parameters, but {count} were given");
            assert_eq!(result, Err(DbError::Type(wanted)));
        }
    });
}

fn queries_say_how_many_rows_they_expect(db: &Db) {
    let all = "select id from post where source_id = 1";
    let opt = read(db, move |tx| tx.query_opt(all, &[], |row| row.i64(0)));
    assert_eq!(opt, Ok(None));
    assert_eq!(
        read(db, move |tx| tx.query_one(all, &[], |row| row.i64(0))),
        Err(DbError::NoRow)
    );
    write(db, |tx| insert(tx, 5)).expect("a write");
    assert_eq!(
        read(db, move |tx| tx.query_one(all, &[], |row| row.i64(0))),
        Ok(5)
    );
    write(db, |tx| insert(tx, 6)).expect("a write");
    let opt = read(db, move |tx| tx.query_opt(all, &[], |row| row.i64(0)));
    assert_eq!(opt, Err(DbError::TooManyRows));
    let execute = write(db, move |tx| tx.execute(all, &[]));
    assert!(matches!(execute, Err(DbError::Type(_))), "{execute:?}");
}

fn execute_counts_the_rows_it_changed(db: &Db) {
    let counts = write(db, |tx| {
        (1..=3).try_for_each(|id| insert(tx, id))?;
        let some = tx.execute("update post set likes = 1 where id > $1", &[&1])?;
        let none = tx.execute("update post set likes = 1 where id > $1", &[&9])?;
        Ok((some, none))
    });
    assert_eq!(counts, Ok((2, 0)));
}

fn a_list_is_a_set_of_keys(db: &Db) {
    write(db, |tx| {
        for (id, body) in [(1, "a"), (2, "b"), (3, "c\"'\\")] {
            tx.execute(
                "insert into post (source_id, id, body) values (1, $1, $2)",
                &[&id, &body],
            )?;
        }
        Ok(())
    })
    .expect("a write");
    let by_id = |ids: Vec<Option<i64>>| {
        read(db, move |tx| {
            let mut among = |list| {
                let sql =
                    format!("select id from post where source_id = $2 and id {list} order by id");
                tx.query(&sql, &[&Column::i64(ids.clone()), &1], |row| row.i64(0))
            };
            let found = among("{in $1}")?;
            assert_eq!(among("{in_long $1}")?, found);
            Ok(found)
        })
    };
    assert_eq!(
        by_id(vec![Some(3), Some(1), Some(3), None, Some(7)]),
        Ok(vec![1, 3])
    );
    assert_eq!(by_id(vec![]), Ok(vec![]));
    let by_body = read(db, |tx| {
        let bodies = Column::text(["c\"'\\", "b"]);
        let sql = "select id from post where body {in $1} order by id";
        tx.query(sql, &[&bodies], |row| row.i64(0))
    });
    assert_eq!(by_body, Ok(vec![2, 3]));
}

fn words_in_quotes_and_comments_are_left_alone(db: &Db) {
    let text = read(db, |tx| {
        tx.query_one(
            "select '{i64} it''s {', 3 - 1, {greatest}(1, 2) as \"{max}\" -- it's {bool}\n",
            &[],
            |row| Ok((row.text(0)?, row.i64(1)?, row.i64(2)?)),
        )
    });
    assert_eq!(text, Ok(("{i64} it's {".to_owned(), 2, 2)));
    let unknown = read(db, |tx| tx.query("select {nothing}", &[], |_| Ok(())));
    assert!(matches!(unknown, Err(DbError::Other(_))), "{unknown:?}");
}

fn text_sorts_by_bytes_where_it_says_so(db: &Db) {
    let sorted = write(db, |tx| {
        for (id, body) in ["b", "A", "a", "B", "é", "Z", "_"].iter().enumerate() {
            tx.execute(
                "insert into post (source_id, id, body) values (1, $1, $2)",
                &[&(id as u32), body],
            )?;
        }
        tx.query("select body from post order by body", &[], |row| {
            row.text(0)
        })
    });
    assert_eq!(
        sorted.map(|bodies| bodies.concat()),
        Ok("ABZ_abé".to_owned())
    );
}

#[test]
fn only_what_follows_a_batch_or_a_list_is_planned_by_keys() {
    on_postgres(|db| {
        let plans = |tx: &mut Tx<'_>| {
            tx.query_one(
                "select concat_ws(' ', current_setting('enable_seqscan'),
                     current_setting('enable_hashjoin'), current_setting('enable_mergejoin'))",
                &[],
                |row| row.text(0),
            )
        };
        for _ in 0..2 {
            let found = write(db, move |tx| {
                let before = plans(tx)?;
                let ids = Column::i64([1, 2]);
                tx.execute(
                    "delete from post where source_id = 1 and id {in $1}",
                    &[&ids],
                )?;
                Ok((before, plans(tx)?))
            });
            assert_eq!(found, Ok(("on on on".into(), "off off off".into())));
        }
        let found = write(db, move |tx| {
            tx.execute_many_later(
                "delete from post where id in (select id from {rows as r(id)})",
                &[],
                &[Column::i64([1])],
            )?;
            plans(tx)
        });
        assert_eq!(found, Ok("off off off".into()));
        let failed = write(db, |tx| {
            tx.execute_later("insert into post (source_id, id) values (1, 1)", &[])?;
            tx.query(
                "select 1 from post where id {in $1}",
                &[&Column::i64([1])],
                |_| Err::<(), _>(DbError::invalid("an error of the closure")),
            )
        });
        assert!(failed.is_err());
        let begun = read(db, |tx| {
            tx.query("select id from post", &[], |row| row.i64(0))
        });
        assert_eq!(begun, Ok(vec![]), "it was rolled back");
        assert_eq!(write(db, plans), Ok("on on on".into()));
    });
}

#[test]
fn the_schema_is_the_same_on_both() {
    let schemas: Vec<_> = driftline_db::testing::databases()
        .iter()
        .map(|fresh| {
            let db = fresh.open(INDEXED);
            let tables = read(&db, schema).expect("a schema");
            db.close_blocking();
            tables
        })
        .collect();
    assert_eq!(schemas[0], schemas[1]);
    assert_eq!(
        schemas[0],
        [
            "entry index id, source_id",
            "entry key source_id, id",
            "entry partial index due_at",
            "entry unique index uri",
            "entry.due_at integer null",
            "entry.gone integer",
            "entry.id integer",
            "entry.raw blob null",
            "entry.source_id integer",
            "entry.uri text",
            "library key id",
            "library.id integer",
            "library.name text null",
        ]
    );
}

static INDEXED: &[driftline_db::Migration] = &[migration(
    1,
    "indexed",
    1,
    "
        create table library (id {i64} primary key not null, name text) {strict};
        create table entry (
            source_id {i64} not null,
            id {i64} not null,
            uri text not null {collate_c} unique,
            raw {blob},
            due_at {i64},
            gone {bool} not null default false,
            primary key (source_id, id)
        ) {clustered};
        create index entry_by_id on entry (id, source_id);
        create index entry_due on entry (due_at) where not gone;",
)];
