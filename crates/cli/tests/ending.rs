//! `mirror --for` ends in time whatever fails, and lists what is not settled.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use driftline_db::testing::Outage;
use support::{
    DataDir, Ended,
    moody_server::{Mood, MoodyServer},
    quiet::steady,
    wait_for,
};

/// Much more than is promised after its time, for a busy machine, and much less than [`READ_TIMEOUT`].
const MAX_END: Duration = Duration::from_secs(120);
/// A request that is not answered does not end by itself while a test runs.
const READ_TIMEOUT: [&str; 2] = ["DRIFTLINE_UPSTREAM__READ_TIMEOUT", "30m"];

fn patient() -> DataDir {
    DataDir::new().with(READ_TIMEOUT[0], READ_TIMEOUT[1])
}

/// The time that [`QUICK`] gives.
const FOR: Duration = Duration::from_secs(3);
const MAX_TRIES: usize = 20;
const QUICK: [&str; 8] = [
    "--allow-private",
    "--name",
    "sim",
    "--for",
    "3s",
    "--every",
    "200ms",
    "--backfill=none",
];

fn arguments(url: &str) -> Vec<&str> {
    let mut arguments = vec!["mirror", url];
    arguments.extend(QUICK);
    arguments
}

/// Runs it to its end, which has to come in time and with what is not settled.
fn ends_unsettled(data_dir: &DataDir, url: &str) -> Ended {
    let begun = Instant::now();
    let ended = data_dir.run(&arguments(url));
    let took = begun.elapsed();
    assert!(took < MAX_END, "{took:?}: {ended:?}");
    assert_eq!(ended.status, 3, "{ended:?}");
    assert!(ended.stdout.contains("  unsettled    "), "{ended:?}");
    ended
}

/// A data folder with the source that [`QUICK`] names, whose server was not asked.
fn with_source(url: &str) -> DataDir {
    let data_dir = patient();
    let mut add = vec!["source", "add", url, "--no-check"];
    add.extend(QUICK.iter().filter(|word| !["--for", "3s"].contains(word)));
    data_dir.json(&add);
    data_dir
}

#[test]
fn a_server_that_is_away_or_refuses_ends_in_time() {
    let away = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", away.local_addr().unwrap());
    drop(away);
    let ended = ends_unsettled(&with_source(&url), &url);
    assert!(
        ended.stderr.contains("nothing was ever fetched"),
        "{ended:?}"
    );
    for (mood, said) in [
        (Mood::Hangs, "not answered"),
        (Mood::HangsUp, "unreachable"),
        (Mood::Refuses(503), "server_error"),
        (Mood::Refuses(401), "unauthorized"),
        (Mood::Refuses(404), "not_found"),
        (Mood::Refuses(429), "throttled"),
    ] {
        let server = MoodyServer::before("http://127.0.0.1:9", mood);
        let ended = ends_unsettled(&with_source(&server.url), &server.url);
        assert!(ended.stdout.contains(said), "{mood:?}: {ended:?}");
    }
}

/// Nor does the check of a new source hold up the end.
#[test]
fn a_new_source_whose_server_hangs_ends_in_time() {
    let server = MoodyServer::before("http://127.0.0.1:9", Mood::Hangs);
    let (data_dir, begun) = (patient(), Instant::now());
    let ended = data_dir.run(&arguments(&server.url));
    assert!(begun.elapsed() < MAX_END, "{ended:?}");
    assert_eq!(ended.status, 3, "{ended:?}");
    assert!(ended.stderr.contains("the server"), "{ended:?}");
    assert_eq!(
        data_dir.json(&["source", "list"]),
        serde_json::json!([]),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_on_the_way_ends_in_time() {
    let sim = steady(20.0).await;
    for mood in [
        Mood::Hangs,
        Mood::HangsUp,
        Mood::Refuses(500),
        Mood::Refuses(401),
    ] {
        let server = MoodyServer::before(&sim.url(), Mood::Good);
        let data_dir = patient();
        // On a busy machine a poll may succeed after the end and settle all.
        let mut tries = (0..MAX_TRIES).map(|_| {
            server.is_now(Mood::Good);
            let (begun, before) = (Instant::now(), server.requests());
            let mut all = vec!["--json"];
            all.extend(arguments(&server.url));
            let running = data_dir.start(&all);
            wait_for("it reads", || server.requests() > before + 4);
            server.is_now(mood);
            (begun, running)
        });
        let in_time = tries.find(|(begun, _)| begun.elapsed() < FOR);
        let (begun, mut running) = in_time.expect("it never reads in time");
        let status = running.ended();
        assert!(begun.elapsed() < MAX_END, "{mood:?}: {:?}", begun.elapsed());
        assert_eq!(status.code(), Some(3), "{mood:?}: {}", data_dir.log());
        let report = &support::lines(&running.line())[0];
        assert!(report["posts"].as_u64().unwrap() > 0, "{mood:?}: {report}");
        let listed = report["unsettled"].as_array().unwrap();
        assert!(listed[0].as_str().unwrap().contains("no poll"), "{report}");
        if mood != Mood::Hangs {
            assert_eq!(report["complete"], false, "{mood:?}: {report}");
            assert_eq!(report["verdict"], "polls_fail", "{mood:?}: {report}");
            assert!(
                report["last_error"]["count"].as_u64() >= Some(1),
                "{report}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_goes_away_ends_it_in_time() {
    let sim = steady(20.0).await;
    for freezes in [false, true] {
        let mut postgres = Outage::start();
        let data_dir = patient().with("DRIFTLINE_STORE__DATABASE_URL", postgres.url());
        let server = MoodyServer::before(&sim.url(), Mood::Good);
        let mut running = data_dir.start(&arguments(&server.url));
        wait_for("it reads", || server.requests() > 4);
        let begun = Instant::now();
        if freezes {
            postgres.freeze();
        } else {
            postgres.stop();
        }
        let status = running.ended();
        assert!(
            begun.elapsed() < MAX_END,
            "{freezes}: {:?}",
            begun.elapsed()
        );
        assert_eq!(status.code(), Some(3), "{freezes}: {}", data_dir.log());
        let mut said = String::new();
        loop {
            let line = running.line();
            if line.is_empty() {
                break;
            }
            said.push_str(&line);
        }
        assert!(said.contains("  unsettled    "), "{freezes}: {said}");
        if freezes {
            postgres.thaw();
        }
    }
}

/// The time counts from the start of the process, which waits here for a lease that does not end.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_the_source_is_part_of_the_time() {
    let sim = steady(20.0).await;
    let server = MoodyServer::before(&sim.url(), Mood::Good);
    let postgres = Outage::start();
    let url = postgres.url();
    let [holding, data_dir] =
        [(); 2].map(|()| patient().with("DRIFTLINE_STORE__DATABASE_URL", url));
    let for_time = |time| {
        let mut arguments = arguments(&server.url);
        arguments[6] = time;
        arguments
    };
    let _holder = holding.start(&for_time("1h"));
    wait_for("it reads", || server.requests() > 4);
    let begun = Instant::now();
    let ended = data_dir.run(&for_time("100ms"));
    assert!(begun.elapsed() < MAX_END, "{ended:?}");
    assert_eq!(ended.status, 3, "{ended:?}");
    let why = "another process has the source";
    assert!(ended.stderr.contains(why), "{ended:?}");
}

/// The second look comes after 15 s by default; the end does not wait for it, and reads what is new
/// once more all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_healthy_source_settles_in_time_with_the_default_looks() {
    let sim = steady(20.0).await;
    let data_dir = DataDir::new();
    let begun = Instant::now();
    let url = sim.url();
    let report = data_dir.json(&arguments(&url));
    assert!(begun.elapsed() < MAX_END, "{:?}", begun.elapsed());
    assert_eq!(report["unsettled"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["complete"], true, "{report}");
}
