//! `tail`: what is stored, as it is stored; and a command for each post.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    collections::HashMap,
    fs,
    path::Path,
    process::{Child, Command},
    time::{Duration, Instant},
};

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::Value;
use support::{DataDir, lines, wait_for};

/// A timeline of many posts a second, for some seconds.
async fn upstream(publish_for_ms: i64) -> SimServer {
    let config = ServerConfig {
        world: WorldConfig {
            publish_for_ms: Some(publish_for_ms),
            ..WorldConfig::punctual(30.0)
        },
        ..ServerConfig::default()
    };
    SimServer::start(config, 1, Clock::Real).await.unwrap()
}

fn add(data_dir: &DataDir, upstream: &SimServer) {
    let url = upstream.url();
    let add = [
        "source",
        "add",
        &url,
        "--name",
        "sim",
        "--every",
        "100ms",
        "--second-look",
        "1s",
    ];
    data_dir.json(&add);
}

fn exported(data_dir: &DataDir) -> Vec<String> {
    let rows = data_dir.export("sim").into_iter();
    let mut ids: Vec<String> = rows.map(|row| text(&row["upstream_id"])).collect();
    ids.sort();
    ids
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The posts that were told, in their order.
fn told(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The last line may not be whole.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    lines(whole).iter().map(text_of_post).collect()
}

fn text_of_post(line: &Value) -> String {
    text(&line["post"]["upstream_id"])
}

/// Each once.
fn sorted_once(mut ids: Vec<String>) -> Vec<String> {
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "some twice");
    ids
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_when_the_server_is_killed() {
    let upstream = upstream(8_000).await;
    let silent_at = Instant::now() + Duration::from_secs(9);
    let data_dir = DataDir::new();
    let (server, _) = data_dir.serve(&["--allow-private"]);
    add(&data_dir, &upstream);
    let out = data_dir.folder().join("told.jsonl");
    let tail = || {
        let out = fs::File::options()
            .create(true)
            .append(true)
            .open(&out)
            .unwrap();
        let arguments = [
            "--json",
            "tail",
            "--since",
            "start",
            "--history",
            "--state",
            "tail.state",
        ];
        Tail(data_dir.command(&arguments).stdout(out).spawn().unwrap())
    };
    let mut running = tail();
    wait_for("posts are told", || told(&out).len() > 20);
    server.kill();
    let (server, _) = data_dir.serve(&["--allow-private"]);
    let before = told(&out).len();
    wait_for("more posts are told", || told(&out).len() > before + 20);
    // Where it is ended in order, it goes on after what it told.
    let signalled = Command::new("kill")
        .arg(running.0.id().to_string())
        .status();
    assert!(signalled.unwrap().success() && running.0.wait().unwrap().success());
    let kept = told(&out).len();
    assert!(kept > before);
    let running = tail();
    wait_for("all is told", || {
        let mut told = told(&out);
        told.sort();
        let is_all = told == exported(&data_dir);
        Instant::now() > silent_at && is_all && told.len() == upstream_posts(&upstream)
    });
    drop(running);
    assert_eq!(sorted_once(told(&out)), exported(&data_dir));
    server.kill();
    // Without a server it tells what is there, and ends.
    let ended = data_dir.run(&[
        "--json",
        "tail",
        "--since",
        "start",
        "--history",
        "--no-follow",
    ]);
    assert_eq!(ended.status, 0, "{ended:?}");
    let all: Vec<String> = lines(&ended.stdout).iter().map(text_of_post).collect();
    assert_eq!(sorted_once(all), exported(&data_dir));
}

/// A process that is killed when it is dropped.
struct Tail(Child);

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn upstream_posts(upstream: &SimServer) -> usize {
    upstream
        .truth(&driftline_sim::http::Timeline::Public)
        .unwrap()
        .posts
        .len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_each_post_at_least_once_and_in_order() {
    let upstream = upstream(3_000).await;
    let silent_at = Instant::now() + Duration::from_secs(4);
    let data_dir = DataDir::new();
    let (server, _) = data_dir.serve(&["--allow-private"]);
    add(&data_dir, &upstream);
    let got = data_dir.folder().join("got.jsonl");
    let command =
        "cat >> got.jsonl; echo \"$DRIFTLINE_EVENT_ID $DRIFTLINE_EVENT $DRIFTLINE_SOURCE\" >> ids";
    let tail = [
        "tail",
        "sim",
        "--since",
        "start",
        "--history",
        "--state",
        "alerts",
        "--exec",
        command,
    ];
    let running = data_dir.start(&tail);
    wait_for("some ran", || told(&got).len() > 10);
    running.kill();
    let running = data_dir.start(&tail);
    wait_for("all is stored", || {
        Instant::now() > silent_at && exported(&data_dir).len() == upstream_posts(&upstream)
    });
    let all = exported(&data_dir);
    wait_for("all ran", || {
        let mut got = told(&got);
        got.sort();
        got.dedup();
        got.len() == all.len()
    });
    running.kill();
    server.kill();
    let got = told(&got);
    // One may have run without being noted.
    assert!(got.len() <= all.len() + 1, "{} of {}", got.len(), all.len());
    let order: HashMap<String, usize> = data_dir
        .export("sim")
        .iter()
        .enumerate()
        .map(|(place, row)| (text(&row["upstream_id"]), place))
        .collect();
    assert!(got.is_sorted_by_key(|id| order[id]));
    let ids = fs::read_to_string(data_dir.folder().join("ids")).unwrap();
    assert!(
        ids.lines()
            .all(|line| line.ends_with(" new sim") && line.contains(':')),
        "{ids}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_holds_up_nothing() {
    let upstream = upstream(500).await;
    let data_dir = DataDir::new();
    let (server, _) = data_dir.serve(&["--allow-private"]);
    add(&data_dir, &upstream);
    wait_for("posts are stored", || exported(&data_dir).len() > 3);
    server.kill();
    let all = data_dir.export("sim");
    let poison = text(&all[1]["upstream_id"]);
    let slow = text(&all[2]["upstream_id"]);
    // The second fails, the third never ends and has started another process.
    let command = format!(
        "read line; case $line in *'\"upstream_id\":\"{poison}\"'*) echo t >> tries; exit 7;; *'\"upstream_id\":\"{slow}\"'*) sleep 1000 & echo $! >> sleepers; wait;; esac; echo \"$line\" >> got.jsonl"
    );
    let tail = |state: &str, command: &str, options: &[&str]| {
        let mut line = vec![
            "tail",
            "sim",
            "--since",
            "start",
            "--history",
            "--no-follow",
        ];
        line.extend(["--state", state, "--exec", command]);
        line.extend(options);
        data_dir.run(&line)
    };
    let options = ["--exec-timeout", "5s", "--tries", "2"];
    let ended = tail("alerts", &command, &options);
    assert_eq!(ended.status, 0, "{ended:?}");
    let got = told(&data_dir.folder().join("got.jsonl"));
    let expected = all.iter().map(|row| text(&row["upstream_id"]));
    let expected: Vec<String> = expected.filter(|id| *id != poison && *id != slow).collect();
    assert_eq!(got, expected);
    let tries = fs::read_to_string(data_dir.folder().join("tries")).unwrap();
    assert_eq!(tries.lines().count(), 2);
    let failed = fs::read_to_string(data_dir.folder().join("alerts.failed.jsonl")).unwrap();
    let failed = lines(&failed);
    assert_eq!(
        failed.iter().map(text_of_post).collect::<Vec<_>>(),
        [poison, slow]
    );
    assert_eq!(failed[0]["error"], "exit status: 7");
    assert!(
        text(&failed[1]["error"]).contains("longer than"),
        "{}",
        failed[1]["error"]
    );
    let sleepers = fs::read_to_string(data_dir.folder().join("sleepers")).unwrap();
    for sleeper in sleepers.lines() {
        wait_for("it is killed", || !is_running(sleeper));
    }

    // A command that does not exist takes no event.
    let missing = tail("missing", "./mistyped.sh", &[]);
    assert_eq!(missing.status, 1, "{missing:?}");
    assert!(missing.stderr.contains("./mistyped.sh"), "{missing:?}");
    assert!(!data_dir.folder().join("missing.failed.jsonl").exists());
}

/// Whether a process runs; a dead one that nobody waits for does not.
fn is_running(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"));
    stat.is_ok_and(|stat| {
        !stat
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with('Z')
    })
}

#[test]
fn what_cannot_be_told_is_refused() {
    let data_dir = DataDir::new();
    let none = data_dir.run(&["tail"]);
    assert_eq!(none.status, 10, "{none:?}");
    assert!(none.stderr.contains("no store"), "{none:?}");
    data_dir.json(&[
        "source",
        "add",
        "https://a.example",
        "--name",
        "home",
        "--no-check",
    ]);
    for (arguments, word) in [
        (&["nobody", "--no-follow"][..], "nobody"),
        (&["--events", "gone"], "gone"),
        (&["--since", "yesterday"], "yesterday"),
        (&["--since", "1:99", "--no-follow"], "ahead"),
        (&["--exec", "true"], "--state"),
    ] {
        let mut all = vec!["tail"];
        all.extend(arguments);
        let refused = data_dir.run(&all);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains(word), "{refused:?}");
    }
}
