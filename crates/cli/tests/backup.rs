//! `backup` and `restore` with the real binary: beside a server, killed at any moment, on a full disk, and
//! read-only copies.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use driftline_db::testing::postgres_database;
use driftline_sim::http::Timeline;
use rand::RngExt as _;
use serde_json::Value;
use support::{
    DataDir,
    exported::rows,
    lines,
    quiet::{lively, quiet},
    wait_for,
};

/// A data folder with a few hundred posts in the source `sim`.
async fn filled() -> DataDir {
    let data_dir = DataDir::new();
    let server = quiet(20.0, 1).await;
    data_dir.mirror(&server.url(), "sim");
    // A server of this folder learns nothing more.
    server.shutdown().await;
    assert!(data_dir.export("sim").len() > 300);
    data_dir
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

fn parts(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .ends_with(".backup-part")
        })
        .count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_beside_a_server_is_restored_and_goes_its_own_way() {
    let data_dir = filled().await;
    let next_id = data_dir.run(&["id", "next"]).stdout;
    let (mut server, url) = data_dir.serve(&[]);
    let wrote = data_dir.json(&["backup", "backup"]);
    let checked = data_dir.json(&["backup", "check", "backup"]);
    assert_eq!(checked["faults"], Value::Array(Vec::new()), "{checked}");
    let metric = "driftline_backup_last_success_timestamp_seconds ";
    let mut shown = String::new();
    wait_for("the metric", || {
        let (_, text) = data_dir.get(&format!("{url}/metrics"));
        let line = text.lines().find_map(|line| line.strip_prefix(metric));
        line.unwrap().clone_into(&mut shown);
        shown != "NaN"
    });
    let taken_at_s = wrote["taken_at_ms"].as_f64().unwrap() / 1000.0;
    assert!(
        (shown.parse::<f64>().unwrap() - taken_at_s).abs() < 0.01,
        "{shown}"
    );
    let restored = DataDir::new();
    let backup = path(data_dir.folder(), "backup");
    let ended = restored.run(&["restore", &backup, "--verify"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(ended.stdout.contains("verified"), "{ended:?}");
    let exported = restored.run(&["export", "sim"]).stdout;
    assert_eq!(exported, data_dir.run(&["export", "sim"]).stdout);
    // Node 0 was adopted, and goes on after its last ID.
    let id = restored.run(&["id", "next"]).stdout;
    let number = |text: &str| text.trim().parse::<u64>().unwrap();
    assert!(number(&id) > number(&next_id), "{id} {next_id}");
    // A source that was added after the backup shares its number with none.
    let add = |name| {
        [
            "--json",
            "source",
            "add",
            "https://a.example",
            "--no-check",
            "--name",
            name,
        ]
    };
    let later: Value = serde_json::from_str(&data_dir.run(&add("later")).stdout).unwrap();
    let own: Value = serde_json::from_str(&restored.run(&add("own")).stdout).unwrap();
    assert_ne!(later["id"], own["id"], "{later} {own}");
    let refused = restored.run(&["restore", &backup]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("is restored into an empty one"),
        "{refused:?}"
    );
    server.signal("TERM");
    assert!(server.ended().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_followed_the_store_follows_the_restored_one() {
    let upstream = lively(20.0, 1).await;
    let data_dir = DataDir::new();
    data_dir.mirror(&upstream.url(), "sim");
    data_dir.json(&["backup", "backup"]);
    let backed_up = ids(&data_dir.export("sim"));
    let published = || upstream.truth(&Timeline::Public).unwrap().posts.len();
    wait_for("something is published after the backup", || {
        published() > backed_up.len() + 20
    });
    // What the backup does not have, followed to its end.
    data_dir.mirror(&upstream.url(), "sim");
    let told = tail(&data_dir, "start");
    assert!(
        told.len() > backed_up.len(),
        "nothing came after the backup"
    );
    assert!(upstream.fall_silent(&Timeline::Public));
    let before = told.len();
    let position = told.last().unwrap()["position"].as_str().unwrap();
    let archive = path(data_dir.folder(), "archive");
    data_dir.json(&["export", "--out", &archive]);
    let restored = DataDir::new();
    let backup = path(data_dir.folder(), "backup");
    restored.json(&["restore", &backup, "--verify"]);
    assert_eq!(tail(&restored, position), Vec::<Value>::new());
    restored.mirror(&upstream.url(), "sim");
    let told = tail(&restored, position).into_iter();
    let posts: Vec<Value> = told.map(|event| event["post"].clone()).collect();
    let mut expected = ids(&restored.export("sim"));
    assert!(expected.len() >= before, "less than was lost");
    expected.retain(|id| !backed_up.contains(id));
    assert_eq!(ids(&posts), expected);
    // An export goes on, too.
    let of_archive = || rows(Path::new(&archive), "posts");
    let exported_before = of_archive().len();
    restored.json(&["export", "--out", &archive]);
    assert_eq!(ids(&of_archive()[exported_before..]), expected);
}

fn tail(data_dir: &DataDir, since: &str) -> Vec<Value> {
    let tail = [
        "--json",
        "tail",
        "--since",
        since,
        "--history",
        "--no-follow",
    ];
    let ended = data_dir.run(&tail);
    assert_eq!(ended.status, 0, "{ended:?}");
    lines(&ended.stdout)
}

fn ids(posts: &[Value]) -> BTreeSet<String> {
    let id = |post: &Value| post["upstream_id"].as_str().unwrap().to_owned();
    posts.iter().map(id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_backup_is_found_and_not_restored() {
    let data_dir = filled().await;
    data_dir.json(&["backup", "backup"]);
    let file = path(data_dir.folder(), "backup/driftline.db");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let checked = data_dir.run(&["backup", "check", "backup"]);
    assert_eq!(checked.status, 1, "{checked:?}");
    assert!(checked.stdout.contains("its SHA-256 is"), "{checked:?}");
    let restored = DataDir::new();
    let backup = path(data_dir.folder(), "backup");
    let refused = restored.run(&["restore", &backup]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains("is not whole"), "{refused:?}");
    assert_eq!(restored.run(&["source", "list"]).status, 10);
}

/// Whatever the moment: there is nothing, or something whole.
#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_nothing_looks_whole_that_is_not() {
    let data_dir = filled().await;
    let whole = path(data_dir.folder(), "whole");
    let began = Instant::now();
    assert_eq!(data_dir.run(&["backup", &whole]).status, 0);
    let took = began.elapsed();
    let kills = std::env::var("DRIFTLINE_KILLS").ok();
    let kills: u32 = kills.and_then(|text| text.parse().ok()).unwrap_or(12);
    let mut rng = rand::rng();
    for number in 0..kills {
        let name = format!("backup-{number}");
        let killed = data_dir.command(&["backup", &name]).spawn();
        kill_within(killed.unwrap(), rng.random_range(0.0..1.0), took);
        let folder = path(data_dir.folder(), &name);
        if Path::new(&folder).exists() {
            let checked = data_dir.run(&["backup", "check", &name]);
            assert_eq!(checked.status, 0, "{checked:?}");
        }
    }
    // The next one clears away what those have left.
    assert_eq!(data_dir.run(&["backup", "last"]).status, 0);
    assert_eq!(parts(data_dir.folder()), 0);
    let exported = data_dir.run(&["export", "sim"]).stdout;
    let restored = DataDir::new();
    for _ in 0..kills {
        let killed = restored.command(&["restore", &whole, "--verify"]).spawn();
        kill_within(killed.unwrap(), rng.random_range(0.0..1.0), took);
        let ended = restored.run(&["export", "sim"]);
        match ended.status {
            10 => {}
            0 => {
                assert_eq!(ended.stdout, exported);
                fs::remove_dir_all(restored.data()).unwrap();
            }
            _ => panic!("{ended:?}"),
        }
    }
    let ended = restored.run(&["restore", &whole, "--verify"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert_eq!(restored.run(&["export", "sim"]).stdout, exported);
}

fn kill_within(mut child: std::process::Child, part: f64, took: Duration) {
    sleep(took.mul_f64(part));
    let _ = child.kill();
    child.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_was_ended_leaves_no_folder_that_a_server_takes() {
    let data_dir = DataDir::new();
    fs::create_dir(data_dir.data()).unwrap();
    fs::write(data_dir.data().join("driftline.db.restoring"), "a part").unwrap();
    for command in [
        vec!["source", "list"],
        vec!["serve", "--listen", "127.0.0.1:0"],
    ] {
        let ended = data_dir.run(&command);
        assert_ne!(ended.status, 0, "{ended:?}");
        assert!(
            ended.stderr.contains("run `driftline restore` again"),
            "{ended:?}"
        );
    }
    assert!(!data_dir.data().join("driftline.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_named_and_leaves_nothing() {
    let data_dir = filled().await;
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_driftline"))
        .arg("--data")
        .arg(data_dir.data())
        .args(["backup", "backup"])
        .env("XDG_CONFIG_HOME", data_dir.folder())
        .current_dir(data_dir.folder());
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("has room") || err.contains("make room"),
        "{err}"
    );
    assert!(!data_dir.folder().join("backup").exists());
    assert_eq!(parts(data_dir.folder()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_copied_only_when_asked_for() {
    let data_dir = filled().await;
    fs::write(data_dir.data().join("credentials.key"), "a key").unwrap();
    let without = data_dir.run(&["backup", "without"]);
    assert!(without.stderr.contains("--with-key"), "{without:?}");
    assert!(!data_dir.folder().join("without/credentials.key").exists());
    let with = data_dir.run(&["backup", "with", "--with-key"]);
    assert!(with.stdout.contains("keep it secret"), "{with:?}");
    let mode = fs::metadata(data_dir.folder().join("with"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o077, 0, "others may not read it");
    let restored = DataDir::new();
    let backup = path(data_dir.folder(), "with");
    assert_eq!(restored.run(&["restore", &backup]).status, 0);
    let key = restored.data().join("credentials.key");
    assert_eq!(fs::read_to_string(key).unwrap(), "a key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_behind_the_backup_refuses_to_restore() {
    let data_dir = filled().await;
    data_dir.json(&["backup", "backup"]);
    let manifest = path(data_dir.folder(), "backup/manifest.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    value["taken_at_ms"] = (value["taken_at_ms"].as_i64().unwrap() + 3_600_000).into();
    fs::write(&manifest, value.to_string()).unwrap();
    let restored = DataDir::new();
    let backup = path(data_dir.folder(), "backup");
    let refused = restored.run(&["restore", &backup]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains("clock"), "{refused:?}");
    assert!(!restored.data().exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_copy_is_read_and_stays_as_it_is() {
    let data_dir = filled().await;
    let copy = DataDir::new();
    fs::create_dir(copy.data()).unwrap();
    let file = copy.data().join("driftline.db");
    fs::copy(data_dir.data().join("driftline.db"), &file).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(copy.data(), Permissions::from_mode(0o555)).unwrap();
    let before = fs::read(&file).unwrap();
    let post = data_dir.export("sim")[0]["id"].as_str().unwrap().to_owned();
    for command in [
        vec!["source", "list"],
        vec!["source", "verify", "sim"],
        vec!["export", "sim"],
        vec!["status"],
        vec!["history", &post],
        vec!["why", &post],
        vec!["backup", "of-the-copy"],
        vec!["migrate"],
    ] {
        let ended = copy.run(&command);
        assert_eq!(ended.status, 0, "{command:?}: {ended:?}");
    }
    for command in [
        vec!["source", "pause", "sim"],
        vec!["serve", "--listen", "127.0.0.1:0"],
        vec!["compact", "--yes"],
    ] {
        let refused = copy.run(&command);
        assert_eq!(refused.status, 12, "{command:?}: {refused:?}");
        assert!(
            refused.stderr.contains("read-only"),
            "{command:?}: {refused:?}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(
        fs::read_dir(copy.data()).unwrap().count(),
        1,
        "nothing was put there"
    );
    fs::set_permissions(copy.data(), Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_store_is_restored_into_an_empty_database() {
    let data_dir = DataDir::new();
    let [from, to] = [(); 2].map(|()| postgres_database());
    let with = |url: &str, arguments: &[&str]| {
        let mut all = vec!["--database-url", url];
        all.extend(arguments);
        let ended = data_dir.run(&all);
        (ended.status, ended.stdout, ended.stderr)
    };
    let add = [
        "source",
        "add",
        "https://a.example",
        "--no-check",
        "--name",
        "a",
    ];
    assert_eq!(with(&from, &add).0, 0);
    let (status, out, err) = with(&from, &["backup", "backup"]);
    assert_eq!(status, 0, "{out}{err}");
    assert_eq!(with(&from, &["backup", "check", "backup"]).0, 0);
    // The folder has had a store, and a restore takes an empty one.
    fs::remove_dir_all(data_dir.data()).unwrap();
    let (status, _, err) = with(&from, &["restore", "backup"]);
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("has tables already"), "{err}");
    let (status, out, err) = with(&to, &["restore", "backup", "--verify"]);
    assert_eq!(status, 0, "{out}{err}");
    let (status, out, err) = with(&to, &["source", "list"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("https://a.example"), "{out}");
}
