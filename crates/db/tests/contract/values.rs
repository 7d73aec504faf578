use driftline_db::{Column, Db, DbError, Row, ToValue};

use crate::{insert, on_both, on_both_direct, read, write};

on_both!(
    text_with_nul_is_refused_alike,
    values_of_every_type_are_bound_and_read,
    bytes_come_back_as_they_went_in,
    columns_are_read_by_name,
    a_value_of_the_wrong_type_is_not_stored,
);

fn text_with_nul_is_refused_alike(db: &Db) {
    let param = write(db, |tx| {
        tx.execute(
            "insert into post (source_id, id, body) values (1, 1, $1)",
            &[&"a\0b"],
        )
    });
    assert_eq!(param, Err(DbError::NulInText));
    let owned = write(db, |tx| {
        let body = Some("a\0b".to_owned());
        tx.execute(
            "insert into post (source_id, id, body) values (1, 1, $1)",
            &[&body],
        )
    });
    assert_eq!(owned, Err(DbError::NulInText));
    let batch = write(db, |tx| {
        tx.execute_many(
            "insert into post (source_id, id, body) {rows}",
            &[],
            &[Column::i64([1]), Column::i64([1]), Column::text(["a\0b"])],
        )
    });
    assert_eq!(batch, Err(DbError::NulInText));
    let list = read(db, |tx| {
        let bodies = Column::text(["a\0b"]);
        tx.query("select id from post where body {in $1}", &[&bodies], |_| {
            Ok(())
        })
    });
    assert_eq!(list, Err(DbError::NulInText));
}

fn values_of_every_type_are_bound_and_read(db: &Db) {
    let row = write(db, |tx| {
        tx.execute(
            "insert into post (source_id, id, body, hidden, likes)
                 values ($1, $2, $3, $4, $5)",
            &[&1, &i64::MIN, &"é\u{1f30a}", &true, &i64::MAX],
        )?;
        tx.query_one(
            "select id, body, hidden, likes, cast(sum(likes) as bigint) from post
                 where hidden and hidden = true group by id, source_id, body, hidden, likes",
            &[],
            |row| {
                assert_eq!(row.str(1)?, "é\u{1f30a}");
                Ok((row.i64(0)?, row.bool(2)?, row.i64(3)?, row.i64(4)?))
            },
        )
    });
    assert_eq!(row, Ok((i64::MIN, true, i64::MAX, i64::MAX)));
}

fn bytes_come_back_as_they_went_in(db: &Db) {
    let all: Vec<u8> = (0..=u8::MAX).collect();
    for bytes in [
        Vec::new(),
        vec![0],
        b"\xff'\\\0\"".to_vec(),
        all.repeat(1000),
    ] {
        let expected = bytes.clone();
        let read = write(db, move |tx| {
            tx.execute(
                "insert into post (source_id, id, raw) values (1, 1, $1)
                     on conflict (source_id, id) do update set raw = excluded.raw",
                &[&bytes],
            )?;
            let row = "select raw, body from post where raw = $1";
            tx.query_one(row, &[&bytes], |row| {
                assert!(matches!(row.text("raw"), Err(DbError::Type(_))));
                assert!(matches!(row.bytes("body"), Err(DbError::Type(_))));
                row.bytes("raw")
            })
        });
        assert_eq!(read, Ok(expected));
    }
}

#[test]
fn bytes_are_no_text() {
    on_both_direct(|db| {
        write(db, |tx| insert(tx, 1)).expect("a write");
        let text = write(db, |tx| {
            tx.execute("update post set body = $1", &[&vec![1_u8]])
        });
        let refused = matches!(text, Err(DbError::Type(_) | DbError::Constraint(_)));
        assert!(refused, "{text:?}");
    });
}

fn columns_are_read_by_name(db: &Db) {
    write(db, |tx| insert(tx, 7)).expect("a write");
    let row = read(db, |tx| {
        tx.query_one(
            "select p.source_id, p.id, p.body, count(*) as number from post p
                 group by p.source_id, p.id, p.body",
            &[],
            |row| {
                let unknown = row.i64("likes");
                assert!(matches!(&unknown, Err(DbError::Type(text)) if text.contains("likes")));
                let null = row.text("body");
                assert!(matches!(&null, Err(DbError::Type(text)) if text.contains("body")));
                Ok((row.i64("id")?, row.opt_text("body")?, row.i64("number")?))
            },
        )
    });
    assert_eq!(row, Ok((7, None, 1)));
}

#[test]
fn a_wrong_type_is_an_error_not_a_guess() {
    type Read = fn(&Row<'_>) -> Result<(), DbError>;
    let wrong: [Read; 8] = [
        |row| row.i64(0).map(|_| ()),
        |row| row.bool(0).map(|_| ()),
        |row| row.text(1).map(|_| ()),
        |row| row.text(2).map(|_| ()),
        |row| row.bool(3).map(|_| ()),
        |row| row.i64(3).map(|_| ()),
        |row| row.bool(1).map(|_| ()),
        |row| row.opt_text(9).map(|_| ()),
    ];
    on_both(|db| {
        write(db, |tx| {
            tx.execute(
                "insert into post (source_id, id, body, hidden) values (1, 7, 'text', $1)",
                &[&true],
            )
        })
        .expect("a write");
        for (n, wrong) in wrong.into_iter().enumerate() {
            let result = read(db, move |tx| {
                tx.query_one("select body, id, hidden, likes from post", &[], wrong)
            });
            assert!(matches!(result, Err(DbError::Type(_))), "{n}: {result:?}");
        }
    });
}

fn a_value_of_the_wrong_type_is_not_stored(db: &Db) {
    let wrong: [(&str, &'static (dyn ToValue + Sync)); 3] =
        [("likes", &"many"), ("hidden", &"text"), ("id", &"1x")];
    for (column, value) in wrong {
        let sql = format!("update post set {column} = $1");
        write(db, |tx| {
            let sql = "insert into post (source_id, id) values (1, 1) on conflict do nothing";
            tx.execute(sql, &[])
        })
        .expect("a write");
        let result = write(db, move |tx| tx.execute(&sql, &[value]));
        assert!(
            matches!(result, Err(DbError::Type(_) | DbError::Constraint(_))),
            "{column}: {result:?}"
        );
    }
}
