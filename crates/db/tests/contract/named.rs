//! A server that is named for the tests of a run.

use driftline_db::testing::{
    Cluster, Dropped, NamedServer, NamedServerError, postgres_database, with_parameters,
};
use driftline_db::{Db, DbError, Migration, Options, Root, SecretUrl, Target};

use crate::TABLES;

fn open(url: &str, schema: Option<&str>, migrations: &'static [Migration]) -> Db {
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: schema.map(str::to_owned),
    };
    let mut options = Options::new(target, migrations);
    (options.readers, options.writers) = (1, 1);
    Db::open(options).expect("a database")
}

/// The names of schemas that tests have made in the database.
fn schemas(url: &str) -> Vec<String> {
    let db = open(url, None, &[]);
    let names = db.read_blocking(|tx| {
        let sql = "select cast(nspname as text) as name from pg_namespace
             where nspname like 'test%' order by name";
        tx.query(sql, &[], |row| row.text(0))
    });
    db.close_blocking();
    names.map_err(|error: DbError| error).expect("names")
}

#[test]
fn what_a_run_has_made_is_dropped_and_nothing_else() {
    let url = postgres_database();
    let server = NamedServer::check(&url, "1_2").expect("a server for tests");
    let others = ["test", "test_11_2_a", "test_1_22_a", "test_1x2_a"];
    for schema in others.iter().chain(&["test_1_2_a", "test_1_2_b"]) {
        open(&url, Some(schema), TABLES).close_blocking();
    }
    let dropped = Dropped {
        schemas: 2,
        ..Dropped::default()
    };
    assert_eq!(server.drop_all(), Ok(dropped));
    assert_eq!(
        schemas(&url),
        ["test", "test_11_2_a", "test_1_22_a", "test_1x2_a"]
    );
    assert_eq!(server.drop_all(), Ok(Dropped::default()));
}

#[test]
fn a_server_that_tests_cannot_use_is_refused_without_the_password() {
    let url = postgres_database();
    let refused = |url: &str, run: &str| {
        let error = NamedServer::check(url, run).expect_err("it is refused");
        let text = format!("{error} {error:?}");
        assert!(!text.contains("hunter2"), "{text}");
        error
    };
    let forms = [
        "host=h password=hunter2",
        "postgres://me:hunter2@h",
        "x:hunter2",
    ];
    for form in forms {
        assert!(matches!(refused(form, "1"), NamedServerError::Url));
    }
    for run in ["", "a-b", "a\"b", "A", &"1".repeat(31)] {
        assert!(matches!(refused(&url, run), NamedServerError::Run), "{run}");
    }
    let away = refused("postgres://me:hunter2@127.0.0.1:1/d", "1");
    assert!(matches!(away, NamedServerError::Unusable(_)), "{away}");
    assert!(away.to_string().contains("127.0.0.1:1"), "{away}");
    assert_eq!(schemas(&url), [""; 0]);
}

#[test]
fn a_role_that_may_not_make_what_tests_need_is_refused() {
    // Roles belong to a whole server.
    let cluster = Cluster::start().expect("a cluster");
    let (url, role) = (cluster.url(), "limited");
    let db = open(url, None, &[]);
    let run = |sql: String| {
        let done = db.write_blocking(Root::none(), move |tx| tx.execute(&sql, &[]));
        done.map_err(|error: DbError| error).expect("a change");
    };
    run(format!("create role {role}"));
    let limited = with_parameters(url, &format!("options=-c%20role%3D{role}"));
    let refused = |what: &str| {
        let error = NamedServer::check(&limited, "1").expect_err("it is refused");
        let text = error.to_string();
        assert!(
            text.contains("permission denied") && text.contains(what),
            "{text}"
        );
    };
    refused("create schemas");
    run(format!("grant create on database postgres to {role}"));
    refused("create databases");
    run(format!("alter role {role} createdb"));
    NamedServer::check(&limited, "1").expect("a server for tests");
    db.close_blocking();
}
