//! `migrate`, and stores of another build's schema: nothing uses them.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use driftline_db::{
    Db, Options, Root, Target,
    testing::{dump, postgres_database},
};
use serde_json::Value;
use support::{DataDir, Ended};

const ADD: [&str; 6] = [
    "source",
    "add",
    "https://a.example",
    "--no-check",
    "--name",
    "a",
];

fn with_source() -> (DataDir, Target) {
    let data_dir = DataDir::new();
    assert_eq!(data_dir.run(&ADD).status, 0);
    let path = data_dir.data().join("driftline.db");
    (data_dir, Target::Sqlite { path })
}

/// Makes a store that of another build.
fn age(target: Target) {
    let db = Db::open(Options::new(target, &[])).unwrap();
    let aged = db.write_blocking(Root::none(), |tx| {
        tx.execute("update migration set digest = '0123456789ab'", &[])
    });
    assert_eq!(aged, Ok(1));
    db.close_blocking();
}

fn assert_refused(ended: &Ended) {
    assert_eq!(ended.status, 1, "{ended:?}");
    // A first start says where the operator's token is.
    let lines = ended.stderr.lines();
    let lines: Vec<&str> = lines
        .filter(|line| line.starts_with("driftline: "))
        .collect();
    let [line] = lines[..] else {
        panic!("{ended:?}");
    };
    for part in [
        "another development build of driftline (its schema is 0123456789ab, ",
        "use the build that made it, or begin with an empty data folder or database",
    ] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn there_is_nothing_to_migrate() {
    let (data_dir, target) = with_source();
    let before = dump(&target);
    let ended = data_dir.run(&["migrate"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let nothing = "has the schema of this program: there is nothing else to do";
    assert!(ended.stdout.contains(nothing), "{ended:?}");
    assert_eq!(data_dir.json(&["migrate"])["migrated"], false);
    assert_eq!(dump(&target), before);
}

#[test]
fn without_a_database_nothing_is_made() {
    let data_dir = DataDir::new();
    let refused = data_dir.run(&["migrate"]);
    assert_eq!(refused.status, 10, "{refused:?}");
    assert!(refused.stderr.contains("there is no store"), "{refused:?}");
    assert!(!data_dir.data().join("driftline.db").exists());
}

#[test]
fn a_store_of_another_build_is_refused_and_left_as_it_is() {
    let (data_dir, target) = with_source();
    age(target.clone());
    let before = dump(&target);
    for command in [
        &["source", "list"][..],
        &["--read-only", "source", "list"],
        &["migrate"],
        &["migrate", "--distribute"],
        &["backup", "of-another"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        assert_refused(&data_dir.run(command));
    }
    assert_eq!(dump(&target), before);
    assert!(!data_dir.folder().join("of-another").exists());
}

#[test]
fn a_postgresql_store_of_another_build_is_refused() {
    let data_dir = DataDir::new();
    let url = postgres_database();
    let run =
        |arguments: &[&str]| data_dir.run(&[&["--database-url", &*url][..], arguments].concat());
    assert_eq!(run(&ADD).status, 0);
    assert_eq!(run(&["migrate"]).status, 0);
    age(Target::Postgres {
        url: driftline_db::SecretUrl::new(&url),
        schema: None,
    });
    for command in [
        &["source", "list"][..],
        &["migrate"],
        &["backup", "of-another"],
    ] {
        assert_refused(&run(command));
    }
    assert!(!data_dir.folder().join("of-another").exists());
}

#[test]
fn a_backup_of_another_build_is_not_restored() {
    let (data_dir, _) = with_source();
    assert_eq!(data_dir.run(&["backup", "backup"]).status, 0);
    let backup = data_dir.folder().join("backup");
    let file = backup.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    manifest["migrations"][0]["digest"] = "0123456789ab".into();
    fs::write(&file, manifest.to_string()).unwrap();
    let restored = DataDir::new();
    let backup = backup.to_str().unwrap();
    for command in [
        &["restore", backup][..],
        &["restore", backup, "--verify"],
        &["backup", "check", backup],
    ] {
        assert_refused(&restored.run(command));
    }
    // The form of manifests before they had digests.
    manifest["manifest_version"] = 1.into();
    fs::write(&file, manifest.to_string()).unwrap();
    let refused = restored.run(&["restore", backup]);
    assert_eq!(refused.status, 1, "{refused:?}");
    let line = "is of form 1, and this program reads form 2: use the driftline that wrote it";
    assert!(refused.stderr.contains(line), "{refused:?}");
    assert!(!restored.data().exists());
}
