use std::thread;

use driftline_db::testing::{Fresh, databases, dump, schema};
use driftline_db::{Db, DbError, Migration, Root};

use crate::{migration, read};

static FIRST: Migration = migration(
    1,
    "first",
    1,
    "create table a (id {i64} primary key not null) {strict}; insert into a values (1);",
);
static SECOND: Migration = migration(3, "second", 3, "alter table a add column body text;");
static BROKEN: Migration = migration(
    3,
    "second",
    3,
    "create table b (id {i64} not null) {strict}; insert into nowhere values (1);",
);

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
                needed: 3,
                program: 1
            }
        );
        let message = error.to_string();
        for part in [
            "has schema version 3",
            "this program's is 1",
            "start a newer version",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
}

/// A step that programs of version 3 need not know.
static ADDITIVE: Migration = migration(5, "additive", 3, "create index a_body on a (body);");
/// A step that they cannot live with.
static BREAKING: Migration = migration(
    6,
    "breaking",
    6,
    "alter table a rename column body to text;",
);
static THREE: &[Migration] = &[FIRST, SECOND, ADDITIVE];
static FOUR: &[Migration] = &[FIRST, SECOND, ADDITIVE, BREAKING];
/// An additive step after a breaking one does not make old programs fit again.
static FIVE: &[Migration] = &[
    FIRST,
    SECOND,
    ADDITIVE,
    BREAKING,
    migration(7, "additive again", 6, "create index a_text on a (text);"),
];

#[test]
fn a_newer_database_opens_with_a_program_that_it_still_fits() {
    for fresh in databases() {
        fresh.open(THREE).close_blocking();
        let older = fresh.open(TWO);
        let written = older.write_blocking(Root::none(), |tx| {
            tx.execute("insert into a (id, body) values (2, 'old')", &[])
        });
        assert_eq!(written, Ok(1));
        assert_eq!(versions(&older), [1, 3, 5]);
        older.close_blocking();
        let error = Db::open(fresh.options(ONE)).expect_err("too old");
        let (database, needed) = (5, 3);
        assert_eq!(error, newer(database, needed, 1), "{}", fresh.name);
        fresh.open(THREE).close_blocking();
    }
}

#[test]
fn a_newer_database_that_no_longer_fits_is_refused_and_left_as_it_is() {
    for fresh in databases() {
        for (migrations, database) in [(FOUR, 6), (FIVE, 7)] {
            fresh.open(migrations).close_blocking();
            let before = dump(&fresh.target);
            for program in [TWO, THREE] {
                let version = program[program.len() - 1].version;
                let error = Db::open(fresh.options(program)).expect_err("too old");
                assert_eq!(error, newer(database, 6, version), "{}", fresh.name);
                let error = Db::check(&fresh.target, program).expect_err("too old");
                assert_eq!(error, newer(database, 6, version), "{}", fresh.name);
            }
            assert_eq!(dump(&fresh.target), before);
        }
    }
}

fn newer(database: i64, needed: i64, program: i64) -> DbError {
    DbError::Newer {
        database,
        needed,
        program,
    }
}

#[test]
fn another_history_is_refused() {
    static OTHER: &[Migration] = &[migration(1, "other", 1, ""), SECOND];
    static INSERTED: &[Migration] = &[FIRST, migration(2, "new", 2, ""), SECOND];
    static DESCENDING: &[Migration] = &[SECOND, FIRST];
    for fresh in databases() {
        fresh.open(TWO).close_blocking();
        for migrations in [INSERTED, DESCENDING] {
            let error = Db::open(fresh.options(migrations)).expect_err("another history");
            assert!(matches!(error, DbError::Migration(_)), "{error:?}");
        }
        let before = dump(&fresh.target);
        let (database, program) = (FIRST.digest(), OTHER[0].digest());
        let other = Err(DbError::OtherSchema { database, program });
        assert_eq!(Db::open(fresh.options(OTHER)).map(drop), other);
        assert_eq!(Db::check(&fresh.target, OTHER), other);
        assert_eq!(Db::check(&fresh.target, TWO), Ok(()));
        let older = Db::check(&fresh.target, THREE);
        assert!(matches!(older, Err(DbError::Migration(_))), "{older:?}");
        assert_eq!(dump(&fresh.target), before, "{}", fresh.name);
    }
}

/// Development builds recorded no digests once, and programs of other texts than theirs must not take theirs.
#[test]
fn a_database_without_digests_is_refused() {
    for fresh in databases() {
        let db = fresh.open(TWO);
        let altered = db.write_blocking(Root::none(), |tx| {
            tx.execute("alter table migration drop column digest", &[])
        });
        assert!(altered.is_ok(), "{altered:?}");
        db.close_blocking();
        for program in [ONE, TWO, THREE] {
            let refused = Db::open(fresh.options(program)).expect_err("another build");
            let is_other =
                matches!(&refused, DbError::OtherSchema { database, .. } if database == "unknown");
            assert!(is_other, "{refused:?}");
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
        let schema = read(&db, schema).expect("a schema");
        assert_eq!(schema, ["a key id", "a.id integer"]);
        db.close_blocking();
        fresh.open(TWO).close_blocking();
    }
}

#[test]
fn what_ended_a_migration_is_said_where_sqlite_has_rolled_back_itself() {
    // As it does when the disk is full.
    static ENDED: &[Migration] = &[
        FIRST,
        Migration {
            sql: "insert or rollback into a values (1);",
            ..SECOND
        },
    ];
    let fresh = Fresh::sqlite();
    let error = Db::open(fresh.options(ENDED)).expect_err("a number twice");
    assert!(error.to_string().contains("the same key"), "{error}");
    fresh.open(TWO).close_blocking();
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
