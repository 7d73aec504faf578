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
};

use driftline_db::testing::{databases, dump, load};
use driftline_store::{MIGRATIONS, Store};

use crate::refresh::check_schedule;
use portrait::{portrait, public};

#[test]
fn a_run_leaves_the_same_in_both_databases() {
    let writes = env::var_os("DRIFTLINE_WRITE_FIXTURES").is_some();
    let version = MIGRATIONS.last().expect("a schema").version;
    let mut portraits = Vec::new();
    for fresh in databases() {
        let store = Store::open(fresh.target.clone()).expect("a store");
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
    for version in [4, 7, 8] {
        let expected = fs::read_to_string(folder().join(format!("{version:02}.txt")));
        let expected = expected.expect("a portrait");
        for fresh in databases() {
            let kind = fresh.name.to_lowercase();
            let file = folder().join(format!("{version:02}.{kind}.sql"));
            load(&fresh.target, &fs::read_to_string(file).expect("a fixture"));
            let store = Store::open(fresh.target.clone()).expect("a store");
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

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}
