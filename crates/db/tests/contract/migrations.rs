use std::thread;

use driftline_db::testing::databases;
use driftline_db::{Db, DbError, Migration};

use crate::read;

static FIRST: Migration = Migration {
    version: 1,
    name: "first",
    sql: "create table a (id {i64} primary key not null) {strict}; insert into a values (1);",
};
static SECOND: Migration = Migration {
    version: 3,
    name: "second",
    sql: "alter table a add column body text;",
};
static BROKEN: Migration = Migration {
    version: 3,
    name: "second",
    sql: "create table b (id {i64} not null) {strict}; insert into nowhere values (1);",
};

static ONE: &[Migration] = &[FIRST];
static TWO: &[Migration] = &[FIRST, SECOND];
static HALF: &[Migration] = &[FIRST, BROKEN];

fn versions(db: &Db) -> Vec<i64> {
    read(db, |tx| {
        tx.query(
            "select version from migration order by version",
            &[],
            |row| row.i64(0),
        )
    })
    .expect("a query")
}

#[test]
fn migrations_run_once_and_in_order() {
    for fresh in databases() {
        for (migrations, expected) in [
            (ONE, vec![1]),
            (ONE, vec![1]),
            (TWO, vec![1, 3]),
            (TWO, vec![1, 3]),
        ] {
            let db = fresh.open(migrations);
            assert_eq!(versions(&db), expected, "{}", fresh.name);
            db.close_blocking();
        }
        let db = fresh.open(&[]);
        let body = read(&db, |tx| {
            tx.query_one("select id, body from a", &[], |row| row.opt_text(1))
        });
        assert_eq!(body, Ok(None));
        db.close_blocking();
    }
}

#[test]
fn a_newer_database_is_refused() {
    for fresh in databases() {
        fresh.open(TWO).close_blocking();
        let error = Db::open(fresh.options(ONE)).expect_err("newer");
        assert_eq!(
            error,
            DbError::Newer {
                database: 3,
                program: 1
            }
        );
    }
}

#[test]
fn another_history_is_refused() {
    static OTHER: &[Migration] = &[
        Migration {
            version: 1,
            name: "other",
            sql: "",
        },
        SECOND,
    ];
    static INSERTED: &[Migration] = &[
        FIRST,
        Migration {
            version: 2,
            name: "new",
            sql: "",
        },
        SECOND,
    ];
    static DESCENDING: &[Migration] = &[SECOND, FIRST];
    for fresh in databases() {
        fresh.open(TWO).close_blocking();
        for migrations in [OTHER, INSERTED, DESCENDING] {
            let error = Db::open(fresh.options(migrations)).expect_err("another history");
            assert!(matches!(error, DbError::Migration(_)), "{error:?}");
        }
    }
}

#[test]
fn a_migration_that_fails_leaves_nothing() {
    for fresh in databases() {
        let error = Db::open(fresh.options(HALF)).expect_err("broken");
        let DbError::Migration(message) = error else {
            panic!("{error:?}")
        };
        assert!(message.contains("second"), "{message}");
        let db = fresh.open(ONE);
        assert_eq!(versions(&db), [1]);
        let tables = read(&db, driftline_db::schema).expect("a schema");
        assert_eq!(tables.len(), 1);
        db.close_blocking();
        fresh.open(TWO).close_blocking();
    }
}

#[test]
fn processes_that_migrate_at_once_do_not_collide() {
    for fresh in databases() {
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| fresh.open(TWO).close_blocking());
            }
        });
        let db = fresh.open(TWO);
        assert_eq!(versions(&db), [1, 3], "{}", fresh.name);
        db.close_blocking();
    }
}
