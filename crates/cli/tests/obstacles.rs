//! What stands in the way of a start is named with its file and the way out.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::Path,
    process::{Command, Stdio},
};

use driftline_db::testing::Cluster;
use support::{DataDir, Ended};

/// Checks that it ends with that status and says all of these.
fn says(ended: &Ended, status: i32, words: &[&str]) {
    assert_eq!(ended.status, status, "{ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "no {word:?} in {ended:?}");
    }
}

/// A data folder with a store in it.
fn filled() -> DataDir {
    let data_dir = DataDir::new();
    let url = "http://127.0.0.1:1";
    data_dir.json(&["source", "add", url, "--name", "a", "--no-check"]);
    data_dir
}

#[test]
fn a_damaged_or_foreign_database_file() {
    let data_dir = filled();
    let file = data_dir.data().join("driftline.db");
    let good = fs::read(&file).unwrap();
    let list = || data_dir.run(&["source", "list"]);
    let write = |at: std::ops::Range<usize>| {
        let mut bytes = good.clone();
        bytes[at].fill(0xa5);
        fs::write(&file, bytes).unwrap();
    };
    write(0..100);
    says(
        &list(),
        1,
        &["driftline.db is not a database file", "restore a backup"],
    );
    // All but the first page, which has the beginning of the schema.
    write(4096..good.len());
    says(
        &list(),
        1,
        &["driftline.db", "is damaged", "restore a backup", ".recover"],
    );
    fs::write(&file, "a text\n".repeat(1_000)).unwrap();
    says(
        &list(),
        1,
        &["driftline.db is not a database file", "move it away"],
    );
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    says(&list(), 1, &["driftline.db: it is a folder"]);
}

#[test]
fn folders_and_files_without_permission() {
    let data_dir = filled();
    let data = data_dir.data();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let root = fs::metadata(data_dir.folder()).unwrap().uid() == 0;
    mode(data_dir.folder(), 0o755);
    // Root may do everything, so that somebody else tries.
    let program = data_dir.folder().join("program");
    fs::copy(env!("CARGO_BIN_EXE_driftline"), &program).unwrap();
    let run = |data: &Path| {
        let arguments = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = match root {
            true => Command::new("setpriv"),
            false => Command::new(&program),
        };
        if root {
            command.args(arguments).arg(&program);
        }
        let source = ["source", "add", "http://127.0.0.1:2", "--no-check"];
        let output = command.arg("--data").arg(data).args(source);
        let output = output.stdin(Stdio::null()).output().unwrap();
        Ended::of(output)
    };
    let (lock, file) = (data.join("lock"), data.join("driftline.db"));
    // It is made for its owner only.
    mode(&file, 0o644);
    mode(&lock, 0o444);
    mode(&data, 0o555);
    says(
        &run(&data),
        12,
        &["driftline.db", "read-only", "run as its owner"],
    );
    mode(&lock, 0o666);
    mode(&data, 0o777);
    if root {
        chown(&lock, Some(65_534), None).unwrap();
    }
    mode(&file, 0o444);
    says(
        &run(&data),
        12,
        &["driftline.db", "read-only", "run as its owner"],
    );
    mode(&file, 0o000);
    says(
        &run(&data),
        12,
        &["may not read the database file", "run as its owner"],
    );
    mode(data_dir.folder(), 0o555);
    says(
        &run(&data_dir.folder().join("new")),
        12,
        &["new cannot be made", "--data"],
    );
    mode(data_dir.folder(), 0o755);
    let in_the_way = data_dir.file("file", "");
    says(&run(Path::new(&in_the_way)), 1, &["it is a file", "--data"]);
}

#[test]
fn a_port_that_is_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = DataDir::new().run(&["serve", "--listen", &address]);
    says(&ended, 1, &[&address, "in use", "--listen"]);
}

#[test]
fn a_database_that_is_not_there_or_refuses() {
    let data_dir = DataDir::new();
    let who = "host all guest 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
    let who = data_dir.file("who", who);
    for path in [data_dir.folder(), Path::new(&who)] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let cluster = Cluster::start_with(&[&format!("hba_file={who}")]).unwrap();
    let list = |url: &str| data_dir.run(&["--database-url", url, "source", "list"]);
    let (server, _) = cluster.url().rsplit_once('/').unwrap();
    let nowhere = format!("{server}/nowhere");
    says(
        &list(&nowhere),
        1,
        &["\"nowhere\" does not exist", "create it"],
    );
    let (_, address) = cluster.url().split_once('@').unwrap();
    let ended = list(&format!("postgres://guest:hunter2@{address}"));
    says(
        &ended,
        12,
        &[
            "authentication failed for user \"guest\"",
            "check user and password",
        ],
    );
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
    let ended = list(&format!("postgres://guest@{address}"));
    says(
        &ended,
        12,
        &["password missing", "the database's URL has none"],
    );
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let unused = format!("postgres://me:hunter2@{}/mirror", unused.unwrap());
    let ended = list(&unused);
    says(&ended, 1, &["127.0.0.1:", "check the address"]);
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
}
