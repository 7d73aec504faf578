use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, Instant};

use driftline_db::{Db, DbError, Options, SecretUrl, Target};

use crate::TABLES;

fn open_sqlite(path: std::path::PathBuf) -> String {
    match Db::open(Options::new(Target::Sqlite { path }, TABLES)) {
        Err(DbError::Open(message) | DbError::Denied(message)) => message,
        other => panic!("{other:?}"),
    }
}

fn open_postgres(url: &str) -> DbError {
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: None,
    };
    Db::open(Options::new(target, TABLES)).expect_err("no server")
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    fs::write(
        &path,
        "not a database, but a long enough text to look for a header in".repeat(50),
    )
    .expect("a file");
    let message = open_sqlite(path);
    assert!(
        message.contains("notes.txt is not a database file"),
        "{message}"
    );
}

/// The folder may be one that others can read.
#[test]
fn a_new_file_and_its_logs_are_for_their_owner_only() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("a mode");
    let path = folder.path().join("a.db");
    let _db = Db::open(Options::new(Target::Sqlite { path }, TABLES)).expect("a database");
    let files = fs::read_dir(folder.path()).expect("files");
    let modes: Vec<u32> = files
        .map(|file| file.expect("a file").metadata().expect("a mode").mode() & 0o777)
        .collect();
    assert_eq!(modes, [0o600; 3], "the file, its log and the log's index");
}

#[test]
fn the_database_of_another_program_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bookmarks.db");
    let theirs = rusqlite::Connection::open(&path).expect("a database");
    theirs
        .execute_batch("create table bookmark (url text)")
        .expect("a table");
    drop(theirs);
    let before = fs::read(&path).expect("a file");
    let message = open_sqlite(path.clone());
    assert!(message.contains("of another program"), "{message}");
    assert!(fs::read(&path).is_ok_and(|after| after == before));
}

#[test]
fn a_damaged_file_says_how_to_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let target = Target::Sqlite { path: path.clone() };
    Db::open(Options::new(target, TABLES))
        .expect("a database")
        .close_blocking();
    let mut bytes = fs::read(&path).expect("a file");
    // The first page holds the schema, behind a header of 100 bytes.
    bytes[100..4000].fill(0xa5);
    fs::write(&path, &bytes).expect("a file");
    let message = open_sqlite(path.clone());
    assert!(message.contains("restore a backup"), "{message}");
    bytes[..16].fill(0xa5);
    fs::write(&path, &bytes).expect("a file");
    let message = open_sqlite(path);
    assert!(message.contains("its beginning is damaged"), "{message}");
}

#[test]
fn the_error_names_a_missing_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let message = open_sqlite(folder.path().join("nowhere").join("a.db"));
    assert!(message.contains("nowhere/a.db"), "{message}");
    assert!(message.contains("does its folder exist"), "{message}");
    let message = open_sqlite(folder.path().to_owned());
    assert!(message.contains("it is a folder"), "{message}");
}

#[test]
fn an_unreachable_server_fails_fast_and_keeps_the_password() {
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a port")
        .port();
    let begun = Instant::now();
    let error = open_postgres(&format!("postgres://me:hunter2@127.0.0.1:{port}/none"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let message = error.to_string();
    assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
    assert!(
        !format!("{error:?} {message}").contains("hunter2"),
        "{message}"
    );
}

#[test]
fn a_malformed_url_keeps_its_password() {
    for url in [
        "postgres://me:hunter2/x@localhost/db",
        "postgres://me:x?hunter2=1@localhost/db",
        "postgres://me:%zzhunter2@localhost/db",
        "host=localhost hunter2=x",
    ] {
        let error = open_postgres(url);
        assert!(
            !format!("{error:?} {error}").contains("hunter2"),
            "{url}: {error:?}"
        );
    }
    let shown = format!("{:?}", SecretUrl::new("postgres://me:hunter2@localhost"));
    assert!(!shown.contains("hunter2"), "{shown}");
}
