//! PostgreSQL behind a connection pooler that gives each transaction another server connection.

use std::thread;

use driftline_db::testing::{Pooler, postgres_database};
use driftline_db::{Db, Options, Root, SecretUrl, Target, Tx};

use crate::{TABLES, ids, insert, read, write};

fn pooler(connections: usize) -> Pooler {
    Pooler::start(&postgres_database(), connections).unwrap_or_else(|error| panic!("{error}"))
}

fn open(pooler: &Pooler, parameters: &str, schema: Option<&str>) -> Db {
    let target = Target::Postgres {
        url: SecretUrl::new(format!("{}?{parameters}", pooler.url())),
        schema: schema.map(str::to_owned),
    };
    Db::open(Options::new(target, TABLES)).expect("a database")
}

#[test]
fn nothing_stays_on_a_connection_that_others_use() {
    let pooler = pooler(1);
    let other = open(&pooler, "statement_timeout=77s", Some("other"));
    write(&other, |tx| insert(tx, 1)).expect("a write");
    assert_eq!(ids(&other), [1]);

    let db = open(&pooler, "", None);
    let settings = read(&db, |tx| {
        tx.query_one(
            "select concat_ws(' ', current_setting('jit'), current_setting('search_path'),
                 current_setting('default_toast_compression'),
                 (select reset_val from pg_settings where name = 'statement_timeout'),
                 (select count(*) from pg_prepared_statements))",
            &[],
            |row| row.text(0),
        )
    });
    assert_eq!(settings, Ok("off \"$user\", public pglz 0 0".to_owned()));
    assert_eq!(ids(&db), [], "it is the other schema's");
    other.close_blocking();
    db.close_blocking();
}

#[test]
fn a_transaction_brings_its_settings_along() {
    let pooler = pooler(1);
    let db = open(&pooler, "statement_timeout=77s", Some("own"));
    let show = |tx: &mut Tx<'_>| {
        tx.query_one(
            "select concat_ws(' ', current_setting('jit'), current_setting('search_path'),
                 current_setting('statement_timeout'),
                 current_setting('idle_in_transaction_session_timeout'))",
            &[],
            |row| row.text(0),
        )
    };
    for _ in 0..2 {
        assert_eq!(write(&db, show), Ok("off \"own\" 77s 4s".to_owned()));
        assert_eq!(read(&db, show), Ok("off \"own\" 77s 4s".to_owned()));
    }
    db.close_blocking();
}

/// Told that statements are kept, it finds out that they are not.
#[test]
fn lost_statements_are_used_no_more() {
    let pooler = pooler(3);
    for parameters in ["", "prepared_statements=false", "prepared_statements=true"] {
        let db = open(&pooler, parameters, Some("own"));
        let threads = (0..6).map(|thread| {
            let db = db.clone();
            thread::spawn(move || {
                for n in 0..50 {
                    let id = thread * 50 + n;
                    write(&db, move |tx| insert(tx, id)).expect("a write");
                    let found = read(&db, move |tx| {
                        let sql = "select id from post where id = $1";
                        tx.query_one(sql, &[&id], |row| row.i64(0))
                    });
                    assert_eq!(found, Ok(id));
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(ids(&db).len(), 300);
        let retries = db.stats().retries;
        assert_eq!(retries > 0, parameters.ends_with("true"), "{retries}");
        db.write_blocking(Root::none(), |tx| tx.execute("delete from post", &[]))
            .expect("a write");
        db.close_blocking();
    }
}
