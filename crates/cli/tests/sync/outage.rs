//! The server's database goes away while replicas push and pull: they go on by themselves.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use driftline_db::testing::Outage;
use reqwest::header::RETRY_AFTER;
use serde_json::Value;

use crate::support::{DataDir, Running, quiet::quiet, replica_scene::Scene, wait_for};

/// The texts of notes, by their keys.
type Notes = BTreeMap<String, String>;

/// Writes notes on both replicas for this time.
fn write_for(scene: &Scene, time: Duration, written: &mut Notes) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        for replica in REPLICAS {
            let uri = format!("https://elsewhere.example/{}", written.len());
            let text = format!("of {replica}");
            scene.replica(replica, &["note", &uri, &text]);
            written.insert(format!("note:{uri}"), text);
        }
    }
}

/// Waits until both replicas have these notes, and the server has all changes of both.
fn converge(scene: &Scene, written: &Notes, when: &str) {
    for replica in REPLICAS {
        wait_for(&format!("{replica} has all, {when}"), || {
            let objects = scene.replica(replica, &["show", "--kind", "note"]);
            let is_clean = objects.iter().all(|object| object["dirty"] == false);
            is_clean && notes(&objects) == *written
        });
    }
}

fn notes(objects: &[Value]) -> Notes {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let objects = objects.iter();
    objects
        .map(|object| (text(&object["key"]), text(&object["value"]["text"])))
        .collect()
}

/// Asks the server for news until it says that its store is away, and when to ask again.
async fn is_refused(scene: &Scene) {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        let request = scene.client.post(format!("{}{PULL}", scene.base()));
        let request = request.header("content-type", "application/json");
        let request = request.body(OWN).bearer_auth(&scene.token);
        let answer = request.timeout(MAX_WAIT).send().await.unwrap();
        let (status, retry) = (answer.status().as_u16(), answer.headers().get(RETRY_AFTER));
        if status == 503 {
            assert!(retry.is_some(), "{:?}", answer.headers());
            return;
        }
        assert!(status == 200 || status >= 500, "{status}");
        assert!(Instant::now() < deadline, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_go_on_after_postgresql_was_stopped_and_frozen() {
    let mut postgres = Outage::start();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
    let scene = Scene::in_data_dir(data_dir, &quiet(1.0, 1).await, "").await;
    for replica in REPLICAS {
        scene.init(replica);
    }
    let watch = |replica: &str| scene.start_replica(replica, &["watch", "--every", "1s"]);
    let mut watches: Vec<Running> = REPLICAS.into_iter().map(watch).collect();
    let mut written = Notes::new();

    // Some rounds are under way when it goes.
    write_for(&scene, UNDER_WAY, &mut written);
    postgres.stop();
    is_refused(&scene).await;
    write_for(&scene, AWAY, &mut written);
    postgres.start_again();
    converge(&scene, &written, "stopped");

    write_for(&scene, UNDER_WAY, &mut written);
    postgres.freeze();
    write_for(&scene, AWAY, &mut written);
    postgres.thaw();
    converge(&scene, &written, "frozen");

    // Each note has taken one USN.
    let newest = scene.post(PULL, &serde_json::from_str(OWN).unwrap()).await;
    let newest = &newest["news"][0]["objects"][0];
    assert_eq!(newest["usn"], written.len().to_string());
    for (replica, watch) in REPLICAS.iter().zip(&mut watches) {
        assert!(!watch.has_ended(), "{}", scene.data_dir.log());
        watch.stop();
        let verified = &scene.replica(replica, &["verify"])[0];
        assert_eq!(verified["is_equal"], true, "{verified}");
        assert_eq!(verified["libraries"][0]["there"], written.len());
        assert!(scene.replica(replica, &["conflicts", "--all"]).is_empty());
    }
    let log = scene.data_dir.log();
    for error in [
        "panicked",
        "rejected the request",
        "is not one of the sync protocol",
    ] {
        let line = log.lines().find(|line| line.contains(error));
        assert_eq!(line, None);
    }
}

const REPLICAS: [&str; 2] = ["one", "two"];
const PULL: &str = "/api/driftline/v1/sync";
/// The body of a request for the newest part of the account's library.
const OWN: &str = r#"{"libraries": [{"library": "account"}]}"#;
const UNDER_WAY: Duration = Duration::from_secs(1);
const AWAY: Duration = Duration::from_secs(5);
/// Only a failing test waits that long.
const MAX_WAIT: Duration = Duration::from_secs(180);
