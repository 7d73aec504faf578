//! `status`, with a server, without one, and watched through a pipe.
#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use support::{DataDir, quiet::steady, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_a_mirror_with_its_server_and_without() {
    let upstream = steady(20.0).await;
    let data_dir = DataDir::new();
    let (mut server, _) = data_dir.serve(&["--allow-private"]);
    let url = upstream.url();
    let add = ["source", "add", &url, "--name", "sim", "--every", "200ms"];
    data_dir.json(&add);
    let mut found = Value::Null;
    wait_for("the source is read and its posts have a delay", || {
        found = data_dir.json(&["status"]);
        let source = &found["sources"][0];
        source["state"] == "reading" && source["delay_ms"].as_i64() >= Some(0)
    });
    assert_eq!(found["running"], true);
    assert_eq!(found["process"]["command"], "serve");
    assert_eq!(found["process"]["pid"], server.id());
    assert_eq!(found["nodes"][0]["name"], found["process"]["node"]);
    assert_eq!(found["refreshing"], true);
    assert_eq!(found["followers"], 0);
    assert!(found["sources"][0]["posts_a_minute"].as_f64() > Some(0.0));
    assert!(found["store"]["bytes"].as_u64() > Some(0), "{found}");
    assert!(found["store"]["wal_bytes"].as_u64() > Some(0), "{found}");
    assert!(found["store"]["disk_free_bytes"].as_u64() > Some(0));

    let mut watching = data_dir.start(&["status", "--watch"]);
    let mut block = Vec::new();
    while !block.iter().any(|line: &String| line.starts_with("sim")) {
        let line = watching.line();
        assert!(!line.is_empty(), "{block:?}");
        assert!(line.trim_end().chars().count() <= 80, "{line}");
        block.push(line);
    }
    assert!(block[0].starts_with("time "), "{block:?}");
    assert!(
        block[1].starts_with("process  serve, driftline "),
        "{block:?}"
    );
    assert!(block.last().unwrap().contains(" reading "), "{block:?}");
    watching.signal("INT");
    assert_eq!(watching.ended().code(), Some(0));

    server.stop();
    let stored = data_dir.json(&["status"]);
    assert_eq!(stored["running"], false);
    assert_eq!(stored["process"], Value::Null);
    assert_eq!(stored["sources"][0]["state"], "not_read");
    let ended = data_dir.run(&["status"]);
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(ended.stdout.contains("nothing runs here"), "{ended:?}");
}
