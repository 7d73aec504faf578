//! `mirror` and what is read of it afterwards.
#![allow(clippy::unwrap_used)]

mod support;

use std::{collections::HashSet, net::TcpListener};

use driftline_core::upstream_id::UpstreamId;
use driftline_sim::{
    SpanMs, WorldConfig,
    http::{Clock, SimServer, Timeline},
};
use driftline_store::{Store, Target, edited_post};
use serde_json::json;
use support::{
    DataDir, lines,
    quiet::{FAST, lively, quiet},
    wait_for,
};

fn mirror<'a>(url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["mirror", url];
    arguments.extend(FAST);
    arguments.extend(more);
    arguments
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_is_mirrored_reported_and_exported() {
    let server = quiet(20.0, 1).await;
    let url = server.url();
    let data_dir = DataDir::new();
    let report = data_dir.json(&mirror(&url, &["--for", "1s", "--name", "sim"]));
    let truth = server.truth(&Timeline::Public).unwrap();
    assert!(truth.posts.len() > 200);
    assert_eq!(report["posts"], truth.posts.len());
    assert_eq!(report["complete"], true);
    assert_eq!(report["name"], "sim");

    let rows = data_dir.export("sim");
    let stored: HashSet<UpstreamId> = rows
        .iter()
        .map(|row| UpstreamId::new(row["upstream_id"].as_str().unwrap()))
        .collect();
    assert_eq!(stored.len(), rows.len());
    assert_eq!(truth.missing_from(&stored, 0), Vec::<&_>::new());
    assert_eq!(rows[0]["status"]["id"], rows[0]["upstream_id"]);

    let text = data_dir.run(&["source", "verify", "sim"]);
    assert_eq!(text.status, 0);
    for words in [
        "sim: public of",
        "open gaps    none",
        "lateness",
        "second look",
        "proven",
    ] {
        assert!(
            text.stdout.contains(words),
            "no {words:?} in {}",
            text.stdout
        );
    }
    let again = data_dir.json(&mirror(&url, &["--for", "1s"]));
    assert_eq!(again["posts"], truth.posts.len(), "the same source goes on");
    assert_eq!(
        data_dir.json(&["source", "list"]).as_array().unwrap().len(),
        1
    );

    let other = mirror(
        &url,
        &["--name", "sim", "--timeline", "tag:rust", "--for", "1s"],
    );
    let refused = data_dir.run(&other);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("choose another name"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_it_with_the_report() {
    let server = quiet(20.0, 1).await;
    let url = server.url();
    let data_dir = DataDir::new();
    let mut arguments = mirror(&url, &["--name", "sim"]);
    arguments.push("--json");
    let mut running = data_dir.start(&arguments);
    // No other process may open the folder, so the server's count decides.
    wait_for("it reads", || server.traffic().page_requests > 5);
    let blocked = data_dir.run(&mirror(&url, &[]));
    assert_eq!(blocked.status, 11);
    assert!(
        blocked.stderr.contains("works with the data folder"),
        "{blocked:?}"
    );
    running.signal("INT");
    assert_eq!(running.ended().code(), Some(0));
    let report = lines(&running.line());
    assert_eq!(report[0]["name"], "sim");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_stream_is_followed_and_proven_by_polls() {
    let server = lively(20.0, 1).await;
    let (url, data_dir) = (server.url(), DataDir::new());
    let token = data_dir.file("token", "driftline");
    let home = [
        "--name",
        "sim",
        "--timeline",
        "home",
        "--token-file",
        &token,
    ];
    let mut rarely = vec!["--json"];
    rarely.extend(mirror(&url, &home));
    let every = rarely.iter().position(|word| *word == "100ms").unwrap();
    rarely[every] = "1h";
    let mut running = data_dir.start(&rarely);
    wait_for("the stream sends events", || server.traffic().events > 30);
    assert_eq!(server.open_streams(), 1);
    running.signal("INT");
    assert_eq!(running.ended().code(), Some(0));
    assert_eq!(server.open_streams(), 0);
    assert!(server.fall_silent(&Timeline::Home));
    let report = &lines(&running.line())[0];
    let streamed = report["streamed"].as_u64().unwrap();
    assert!(streamed > 10, "{report}");
    let text = data_dir.run(&["source", "verify", "sim"]).stdout;
    let expected = format!("{streamed} posts that only the stream has shown so far");
    assert!(text.contains(&expected), "{text}");

    let mut settled = mirror(&url, &home);
    settled.extend(["--for", "3s"]);
    let refused = data_dir.run(&settled);
    assert_eq!(refused.status, 2, "{refused:?}");
    let command = "`driftline source set sim --every 100ms`";
    assert!(refused.stderr.contains(command), "{refused:?}");
    data_dir.json(&["source", "set", "sim", "--every", "100ms"]);
    let report = data_dir.json(&settled);
    assert_eq!(report["streamed"], 0, "{report}");
    assert_eq!(report["complete"], true, "{report}");
    let truth = server.truth(&Timeline::Home).unwrap();
    assert_eq!(report["posts"], truth.posts.len(), "{report}");
    assert_eq!(server.open_streams(), 0);
}

/// The number of edited posts that wait for saved lists.
fn waiting_edits(data_dir: &DataDir) -> usize {
    let path = data_dir.data().join("driftline.db");
    let store = Store::open(Target::Sqlite { path }).unwrap();
    let waiting = store.read_blocking(|tx| edited_post::edited(tx, 1_000));
    store.close_blocking();
    waiting.unwrap().len()
}

/// There are no saved lists that edited posts could wait for.
#[tokio::test(flavor = "multi_thread")]
async fn edited_posts_do_not_stay_in_the_queue_for_lists() {
    let world = WorldConfig {
        edited_share: 0.5,
        edited_after_ms: SpanMs::new(100, 300),
        ..WorldConfig::punctual(20.0)
    };
    let server = SimServer::start(world, 1, Clock::Real).await.unwrap();
    let (url, data_dir) = (server.url(), DataDir::new());
    let token = data_dir.file("token", "driftline");
    let home = [
        "--name",
        "sim",
        "--timeline",
        "home",
        "--token-file",
        &token,
    ];
    let mut home = mirror(&url, &home);
    wait_for("edits are stored", || {
        let before = server.traffic().events;
        let mut running = data_dir.start(&home);
        wait_for("the stream sends events", || {
            server.traffic().events > before + 30
        });
        running.signal("INT");
        assert_eq!(running.ended().code(), Some(0), "{}", data_dir.log());
        waiting_edits(&data_dir) > 0
    });
    assert!(server.fall_silent(&Timeline::Home));
    // A run removes what an earlier one has stored, and may store the last edits itself.
    home.extend(["--for", "1s"]);
    wait_for("no edits are left", || {
        let ended = data_dir.run(&home);
        assert!([0, 3].contains(&ended.status), "{ended:?}");
        waiting_edits(&data_dir) == 0
    });
}

/// With `--for 1h`: what cannot work does not use the time up.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_cannot_work_fails_at_once_and_leaves_no_source() {
    let server = quiet(20.0, 1).await;
    let url = server.url();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let closed = format!("http://{}", closed.unwrap());
    let data_dir = DataDir::new();
    for (line, word) in [
        (&["mirror", &url][..], "private"),
        (&["mirror", &closed, "--allow-private"], closed.as_str()),
    ] {
        let ended = data_dir.run(&[line, &["--for", "1h", "--name", "sim"]].concat());
        assert_eq!(ended.status, 1, "{ended:?}");
        for word in [word, "the source was not added"] {
            assert!(ended.stderr.contains(word), "no {word:?} in {ended:?}");
        }
        assert_eq!(data_dir.json(&["source", "list"]), json!([]), "{ended:?}");
    }
    // The advice can be followed.
    let report = data_dir.json(&mirror(&url, &["--for", "1s", "--name", "sim"]));
    assert_eq!(report["complete"], true, "{report}");
}
