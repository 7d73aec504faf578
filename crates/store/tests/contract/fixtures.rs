//! Databases of older schemas, as a run filled them, opened with today's code.
//!
//! In `tests/fixtures`, `NN.sqlite.sql` and `NN.postgresql.sql` are databases of schema version NN,
//! and `NN.txt` is what that version's program saw in them. They are never changed. Before a
//! migration is added, those of the version before it are written, with
//! `DRIFTLINE_WRITE_FIXTURES=1 cargo test -p driftline-store --test contract fixtures`.

mod portrait;
mod run;

use std::{
    env, fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    thread,
};

use driftline_db::testing::{Fresh, databases, dump, load, schema};
use driftline_store::{MIGRATIONS, Store, testing};

use crate::refresh::check_schedule;
use portrait::{portrait, public};

#[test]
fn a_run_leaves_the_same_in_both_databases() {
    let writes = env::var_os("DRIFTLINE_WRITE_FIXTURES").is_some();
    let version = MIGRATIONS.last().expect("a schema").version;
    let mut portraits = Vec::new();
    for fresh in databases() {
        let store = testing::open(&fresh);
        run::run(&store);
        portraits.push(portrait(&store) + &public(&store, &[]).join("\n"));
        store.close_blocking();
        if writes {
            let kind = fresh.name.to_lowercase();
            let file = folder().join(format!("{version:02}.{kind}.sql"));
            fs::write(file, dump(&fresh.target)).expect("a fixture");
        }
    }
    assert_eq!(portraits[0], portraits[1]);
    if writes {
        let file = folder().join(format!("{version:02}.txt"));
        fs::write(file, &portraits[0]).expect("a portrait");
    }
}

#[test]
fn older_databases_are_what_they_were_once_they_are_migrated() {
    for version in [4, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 22, 27, 29] {
        let expected = fs::read_to_string(folder().join(format!("{version:02}.txt")));
        let expected = expected.expect("a portrait");
        for fresh in databases() {
            let kind = fresh.name.to_lowercase();
            let file = folder().join(format!("{version:02}.{kind}.sql"));
            load(&fresh.target, &fs::read_to_string(file).expect("a fixture"));
            let store = testing::open(&fresh);
            let passed = catch_unwind(AssertUnwindSafe(|| {
                // Before version 6 posts of history in work were not shown in public.
                let in_work: Vec<u64> = match version {
                    ..6 => (70..=74).chain(194..=204).collect(),
                    _ => Vec::new(),
                };
                let now = portrait(&store) + &public(&store, &in_work).join("\n");
                let shown = public(&store, &[]).len();
                assert!(shown >= public(&store, &in_work).len() + in_work.len());
                for (now, then) in now.lines().zip(expected.lines()) {
                    assert_eq!(now, then);
                }
                assert_eq!(now.len(), expected.len());
                assert!(check_schedule(&store) > 20);
                run::go_on(&store);
            }));
            store.close_blocking();
            assert!(passed.is_ok(), "version {version} on {}", fresh.name);
        }
    }
}

#[test]
fn a_migrated_database_has_the_schema_of_a_new_one() {
    for fresh in databases() {
        let new = fresh.open(MIGRATIONS);
        let expected = new.read_blocking(schema).expect("a schema");
        new.close_blocking();
        for version in [4, 7, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 22, 27, 29] {
            let (older, file) = older(fresh.name, version);
            load(&older.target, &file);
            let db = older.open(MIGRATIONS);
            let found = db.read_blocking(schema).expect("a schema");
            db.close_blocking();
            assert_eq!(found, expected, "version {version} on {}", fresh.name);
        }
    }
}

#[test]
fn processes_that_open_an_older_database_at_once_migrate_it_once() {
    for kind in ["SQLite", "PostgreSQL"] {
        let (older, file) = older(kind, 4);
        load(&older.target, &file);
        let portraits: Vec<String> = thread::scope(|scope| {
            let open = || {
                let store = Store::open(older.target.clone()).expect("a store");
                let portrait = portrait(&store);
                store.close_blocking();
                portrait
            };
            let opened = [(); 4].map(|()| scope.spawn(open));
            opened
                .map(|thread| thread.join().expect("a portrait"))
                .into()
        });
        assert!(portraits.iter().all(|portrait| *portrait == portraits[0]));
        let done = Store::migration_plan(&older.target).expect("a plan");
        assert_eq!((done.version, done.pending.len()), (Some(done.program), 0));
    }
}

#[test]
fn a_file_of_each_migration_is_listed_under_its_version_and_name() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut files: Vec<String> = fs::read_dir(&folder)
        .expect("the folder")
        .map(|file| {
            file.expect("a file")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .collect();
    files.sort();
    let listed = MIGRATIONS.iter().map(|step| {
        let file = format!("{:04}_{}.sql", step.version, step.name.replace(' ', "_"));
        let text = fs::read_to_string(folder.join(&file)).expect("the file");
        assert_eq!(step.sql, text, "{file}");
        assert!((1..=step.version).contains(&step.compat_version), "{file}");
        file
    });
    assert_eq!(files, listed.collect::<Vec<_>>());
}

/// An empty database, and the text of the fixture of that version for it.
fn older(kind: &str, version: i64) -> (Fresh, String) {
    let found = databases().into_iter().find(|fresh| fresh.name == kind);
    let file = folder().join(format!("{version:02}.{}.sql", kind.to_lowercase()));
    (
        found.expect("a database"),
        fs::read_to_string(file).expect("a fixture"),
    )
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}
