//! `migrate`: what would run, and what has run.
#![allow(clippy::unwrap_used)]

mod support;

use std::{fs, path::Path};

use driftline_db::testing::{dump, load};
use driftline_store::Target;
use support::DataDir;

/// A data folder with a database of schema version 4.
fn older() -> (DataDir, Target) {
    let data_dir = DataDir::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures");
    let text = fs::read_to_string(fixtures.join("04.sqlite.sql")).unwrap();
    fs::create_dir_all(data_dir.data()).unwrap();
    let path = data_dir.data().join("driftline.db");
    let target = Target::Sqlite { path };
    load(&target, &text);
    (data_dir, target)
}

#[test]
fn a_dry_run_shows_what_would_run_and_changes_nothing() {
    let (data_dir, target) = older();
    let before = dump(&target);
    let planned = data_dir.run(&["migrate", "--dry-run"]);
    assert_eq!(planned.status, 0, "{planned:?}");
    let first = planned.stdout.lines().next().unwrap();
    assert!(
        first.contains("would be migrated from schema version 4 to "),
        "{first}"
    );
    assert!(
        planned.stdout.contains("\n  5 returns  entry: "),
        "{planned:?}"
    );
    let json = data_dir.json(&["migrate", "--dry-run"]);
    assert_eq!(
        (&json["version"], &json["migrated"]),
        (&4.into(), &false.into())
    );
    assert_eq!(json["migrations"][1]["name"], "history in work");
    assert!(json["migrations"][1]["tables"]["post"].as_i64() > Some(10));
    assert_eq!(dump(&target), before);
}

#[test]
fn what_has_run_is_said_and_runs_once() {
    let (data_dir, _) = older();
    let json = data_dir.json(&["migrate"]);
    assert_eq!(
        (&json["version"], &json["migrated"]),
        (&4.into(), &true.into())
    );
    let again = data_dir.run(&["migrate"]);
    assert_eq!(again.status, 0, "{again:?}");
    assert!(
        again.stdout.contains("there is nothing to migrate"),
        "{again:?}"
    );
    assert_eq!(data_dir.run(&["source", "list"]).status, 0);
}

#[test]
fn without_a_database_nothing_is_made() {
    let data_dir = DataDir::new();
    for more in [&["migrate"][..], &["migrate", "--dry-run"]] {
        let refused = data_dir.run(more);
        assert_eq!(refused.status, 10, "{refused:?}");
        assert!(refused.stderr.contains("there is no store"), "{refused:?}");
    }
    assert!(!data_dir.data().join("driftline.db").exists());
}
