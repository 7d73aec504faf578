//! `hydrate` and `track` with what cannot work.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use serde_json::json;
use support::{DataDir, Ended, quiet::steady, wait_for};

/// Checks that nothing is left of a server.
fn is_empty(data_dir: &DataDir) {
    for list in [
        ["source", "list"],
        ["instance", "list"],
        ["credential", "list"],
    ] {
        assert_eq!(data_dir.json(&list), json!([]), "{list:?}");
    }
}

fn failed(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.status, 1, "{ended:?}");
    for word in words.iter().chain(&["no IDs were added"]) {
        assert!(ended.stderr.contains(word), "no {word:?} in {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_cannot_work_fails_at_once_and_leaves_nothing() {
    let sim = steady(20.0).await;
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let (closed, url) = (format!("http://{}", closed.unwrap()), sim.url());
    let data_dir = DataDir::new();
    let ids = data_dir.file("ids", "17\n18\n");
    let (missing, outcomes) = (data_dir.folder().join("m"), data_dir.folder().join("o"));
    for command in ["hydrate", "track"] {
        let mut line = vec![command, &url, "--ids", &ids];
        line.extend(["--missing", missing.to_str().unwrap()]);
        line.extend(["--outcomes", outcomes.to_str().unwrap()]);
        failed(&data_dir.run(&line), &["private", "--allow-private"]);
        is_empty(&data_dir);
        let line = [command, &closed, "--ids", &ids, "--allow-private"];
        failed(&data_dir.run(&line), &[&closed]);
        is_empty(&data_dir);
    }
    for file in ["m", "o", "m.part", "o.part"] {
        assert!(!data_dir.folder().join(file).exists(), "{file}");
    }

    // What is allowed once is allowed of the source that it made.
    let hydrate = ["hydrate", &url, "--ids", &ids];
    let made = data_dir.run(&[&hydrate[..], &["--allow-private", "--no-wait"]].concat());
    assert_eq!(made.status, 0, "{made:?}");
    let sources = data_dir.json(&["source", "list"]);
    assert_eq!(sources[0]["allow_private"], true, "{sources}");
    let mut running = data_dir.start(&hydrate);
    wait_for("it asks", || data_dir.log().contains("looking up 2 posts"));
    running.signal("INT");
    assert_eq!(running.ended().code(), Some(0), "{}", data_dir.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_made_without_is_allowed_to_be_private_later() {
    let url = steady(20.0).await.url();
    let data_dir = DataDir::new();
    let ids = data_dir.file("ids", "17\n");
    let hydrate = ["hydrate", &url, "--ids", &ids, "--no-wait"];
    let allowed = || data_dir.json(&["source", "list"])[0]["allow_private"].clone();
    data_dir.json(&hydrate);
    assert_eq!(allowed(), false);
    data_dir.json(&[&hydrate[..], &["--allow-private"]].concat());
    assert_eq!(allowed(), true);
    data_dir.json(&hydrate);
    assert_eq!(allowed(), true);
}

#[test]
fn a_file_without_ids_ends_at_once() {
    let data_dir = DataDir::new();
    let bad = data_dir.file("bad", "no id\n\nnor this\n");
    for command in ["hydrate", "track"] {
        for (file, words) in [
            ("/dev/null", &["/dev/null has no IDs"][..]),
            ("-", &["standard input has no IDs"]),
            (&bad, &["line 1: invalid ID \"no id\"", "has no valid ID"]),
        ] {
            for option in ["--allow-private", "--no-wait"] {
                let line = [command, "https://sim.example", "--ids", file, option];
                let begun = Instant::now();
                let ended = data_dir.run(&line);
                assert!(begun.elapsed() < Duration::from_secs(60), "{ended:?}");
                assert_eq!(ended.status, 2, "{ended:?}");
                for word in words {
                    assert!(ended.stderr.contains(word), "no {word:?} in {ended:?}");
                }
            }
        }
    }
    is_empty(&data_dir);
}
