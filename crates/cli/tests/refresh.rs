//! Keeping posts fresh, with the real binary and a simulated upstream.
#![allow(clippy::unwrap_used)]

mod support;

use std::{io::Write as _, process::Stdio};

use driftline_sim::{
    FaultKind, Growth, Revocation, WorldConfig,
    http::{Clock, ServerConfig, SimServer, Timeline},
};
use support::{DataDir, Ended, wait_for};

const CONFIG: &str = "[refresh]\nbuffer_ttl = \"200ms\"\n[refresh.ages]\n\"25h\" = \"2s\"\n";

async fn sim() -> SimServer {
    let config = ServerConfig {
        world: WorldConfig {
            rate_per_s: 5.0,
            publish_for_ms: Some(30_000),
            growth: Some(Growth {
                half_life_ms: 30_000,
                ..Growth::default()
            }),
            ..WorldConfig::default()
        },
        history_ms: 30_000,
        ..ServerConfig::default()
    };
    SimServer::start(config, 3, Clock::Real).await.unwrap()
}

/// Adds the source `sim` with all its history.
fn add(data_dir: &DataDir, sim: &SimServer) {
    let url = sim.url();
    let mut line = vec!["source", "add", &url, "--name", "sim"];
    line.extend(["--backfill", "all", "--every", "300ms"]);
    data_dir.json(&line);
}

fn typed(data_dir: &DataDir, arguments: &[&str], input: &str) -> Ended {
    let mut child = data_dir
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Ended::of(output)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_posts_is_shown() {
    let sim = sim().await;
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", CONFIG);
    let (mut server, _) = data_dir.serve(&["--allow-private"]);
    add(&data_dir, &sim);
    wait_for("posts are refreshed", || {
        let status = data_dir.json(&["refresh", "status"]);
        status["instances"][0]["since_start"]["outcomes"]["updated"].as_u64() > Some(400)
    });
    let status = data_dir.json(&["refresh", "status"]);
    let sim_status = &status["instances"][0];
    assert!(sim_status["scheduled"].as_u64() > Some(100), "{status}");
    assert!(
        sim_status["mean_posts_a_request"].as_f64() > Some(10.0),
        "{status}"
    );
    assert_eq!(sim_status["bands"].as_array().map(Vec::len), Some(1));
    let words = data_dir.run(&["refresh", "status"]);
    assert!(words.stdout.contains("posts scheduled"), "{words:?}");

    let grown = data_dir.export("sim").into_iter().find(|row| {
        let id = row["post_id"].as_str().unwrap();
        let history = data_dir.json(&["history", id]);
        history["counts"]
            .as_array()
            .is_some_and(|rows| rows.len() >= 2)
    });
    let grown = grown.expect("a post whose counts grew");
    let id = grown["post_id"].as_str().unwrap();
    let upstream_id = grown["upstream_id"].as_str().unwrap();
    let csv = data_dir.run(&["history", id, "--csv"]).stdout;
    assert!(
        csv.starts_with("at_ms,replies,boosts,favourites,quotes,views\n"),
        "{csv}"
    );
    assert!(csv.lines().count() > 2, "{csv}");
    let full_name = format!("{}/{upstream_id}", sim.url().replace("http://", ""));
    for name in [id, &full_name, grown["url"].as_str().unwrap()] {
        let why = data_dir.json(&["why", name]);
        assert_eq!(why["id"], id, "{name}: {why}");
        assert!(why["due_at_ms"].is_i64(), "{why}");
    }
    let words = data_dir.run(&["why", id]).stdout;
    assert!(
        words.contains("posts of that age are refreshed every 2s"),
        "{words}"
    );
    let unknown = data_dir.run(&["why", "12345"]);
    assert_eq!(unknown.status, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("no stored post"), "{unknown:?}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_posts_are_looked_up_and_the_command_can_be_repeated() {
    let sim = sim().await;
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", CONFIG);
    let url = sim.url();
    let truth = sim.truth(&Timeline::Public).unwrap();
    let mut lines: Vec<String> = truth.posts.iter().map(|post| post.id.to_string()).collect();
    let real = lines.len();
    assert!(real > 50);
    lines.push("no id at all".to_owned());
    lines.push(lines[0].clone());
    lines.push(String::new());
    lines.push("9".repeat(5_000));
    lines.push("404".to_owned());
    let input = lines.join("\n");
    // Nobody is to look them up yet.
    let add = ["--json", "track", &url, "--ids", "-", "--no-wait"];
    let added = typed(&data_dir, &add, &input);
    assert_eq!(added.status, 0, "{added:?}");
    assert!(added.stderr.contains("no id at all"), "{added:?}");
    let added: serde_json::Value = serde_json::from_str(&added.stdout).unwrap();
    assert_eq!(added["new"].as_u64(), Some(real as u64 + 1), "{added}");
    assert_eq!(added["bad"], 2, "{added}");
    assert_eq!(added["repeated"], 1, "{added}");
    assert_eq!(added["waiting"].as_u64(), Some(real as u64 + 1), "{added}");

    let (mut server, _) = data_dir.serve(&["--allow-private"]);
    wait_for("they are found", || {
        let file = data_dir.file("one", &lines[0]);
        let again = data_dir.json(&["track", &url, "--ids", &file, "--no-wait"]);
        assert_eq!(again["new"], 0, "{again}");
        again["found"].as_u64() == Some(real as u64) && again["missing"].as_u64() == Some(0)
    });
    let source = data_dir.json(&["source", "list"]);
    let name = source[0]["name"].as_str().unwrap();
    assert!(name.ends_with("-tracked"), "{source}");
    assert_eq!(data_dir.export(name).len(), real);
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_the_command_looks_posts_up_itself() {
    let sim = sim().await;
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", CONFIG);
    let (url, data) = (sim.url(), data_dir.folder());
    let truth = sim.truth(&Timeline::Public).unwrap();
    let mut ids: Vec<String> = truth.posts.iter().map(|post| post.id.to_string()).collect();
    let real = ids.len();
    ids.insert(1, "no id at all".to_owned());
    let (missing, outcomes) = (data.join("missing"), data.join("outcomes"));
    let [missing, outcomes] = [&missing, &outcomes].map(|path| path.to_str().unwrap());
    let mut hydrate = vec!["--json", "hydrate", &url, "--ids", "-", "--allow-private"];
    hydrate.extend(["--missing", missing, "--outcomes", outcomes]);
    let done = typed(&data_dir, &hydrate, &ids.join("\n"));
    assert_eq!(done.status, 0, "{done:?}");
    let counts: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(counts["found"].as_u64(), Some(real as u64), "{counts}");
    assert_eq!(
        (&counts["waiting"], &counts["missing"]),
        (&0.into(), &0.into())
    );
    let plan = format!("looking up {real} posts of {url}");
    assert!(done.stderr.contains(&plan), "{done:?}");
    assert!(done.stderr.contains("they take"), "{done:?}");
    let missing = std::fs::read_to_string(missing).unwrap();
    assert_eq!(missing, "no id at all\n");
    let outcomes = support::lines(&std::fs::read_to_string(outcomes).unwrap());
    let told: Vec<(&str, &str)> = outcomes
        .iter()
        .map(|row| {
            (
                row["id"].as_str().unwrap(),
                row["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(told.len(), ids.len());
    for ((id, outcome), expected) in told.into_iter().zip(&ids) {
        let what = match id {
            "no id at all" => "unknown",
            _ => "found",
        };
        assert_eq!((id, outcome), (&**expected, what));
    }
    // Only looked up: nothing of it is due.
    let status = data_dir.json(&["refresh", "status"]);
    assert_eq!(status["instances"][0]["scheduled"], 0, "{status}");
}

/// The upstream is away: the command says so, goes on when it is back, and ends early in good order.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_stands_still_says_why() {
    let sim = sim().await;
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", CONFIG);
    let url = sim.url();
    let truth = sim.truth(&Timeline::Public).unwrap();
    let ids: Vec<String> = truth.posts.iter().map(|post| post.id.to_string()).collect();
    let file = data_dir.file("ids", &ids.join("\n"));
    sim.change_faults(|faults| {
        faults.shares.insert(FaultKind::InternalError, 1.0);
    });
    let track = ["track", &url, "--ids", &file, "--allow-private"];
    let mut running = data_dir.start(&track);
    wait_for("it says why", || data_dir.log().contains("; trying again"));
    assert!(
        data_dir
            .log()
            .contains(&format!("0 of {} posts", ids.len())),
        "{}",
        data_dir.log()
    );
    running.signal("INT");
    assert_eq!(running.ended().code(), Some(0));
    assert!(data_dir.log().contains("run again"), "{}", data_dir.log());
    sim.change_faults(|faults| faults.shares.clear());
    let done = data_dir.json(&track);
    assert_eq!(done["found"].as_u64(), Some(ids.len() as u64), "{done}");
    assert_eq!(done["waiting"], 0, "{done}");
}

#[test]
fn bad_lines_are_reported_by_their_numbers_in_the_file() {
    let data_dir = DataDir::new();
    let instance = "https://sim.example";
    let ids = data_dir.file("ids", "\u{feff}17\r\n\n  \nnot an ID\n18\n\n017\n");
    let mut track = vec!["--json", "track", instance, "--kind", "x", "--ids", &ids];
    track.push("--no-wait");
    let added = data_dir.run(&track);
    assert_eq!(added.status, 0, "{added:?}");
    for said in [
        "line 4: invalid ID \"not an ID\"",
        "line 7: invalid ID \"017\"",
    ] {
        assert!(added.stderr.contains(said), "{added:?}");
    }
    let added: serde_json::Value = serde_json::from_str(&added.stdout).unwrap();
    assert_eq!(added["lines"], 4, "{added}");
    assert_eq!(added["new"], 2, "{added}");
    assert_eq!(added["bad"], 2, "{added}");

    let folder = data_dir.folder().to_str().unwrap().to_owned();
    let refused = data_dir.run(&["track", instance, "--ids", &folder]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(
        refused.stderr.contains(&folder) && refused.stderr.contains("is a folder;"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_kept_sealed_and_tested() {
    const TOKEN: &str = "s3cret-of-a-person";
    let sim = sim().await;
    let data_dir = DataDir::new();
    let url = sim.url();
    data_dir.file("driftline.toml", "[upstream]\nallow_private = true\n");
    let added = typed(
        &data_dir,
        &["credential", "add", &url, "--name", "mine", "--stdin"],
        TOKEN,
    );
    assert_eq!(added.status, 0, "{added:?}");
    let list = data_dir.run(&["credential", "list"]);
    assert!(
        list.stdout.contains("mine") && list.stdout.contains("sealed in the store"),
        "{list:?}"
    );
    let database = std::fs::read(data_dir.data().join("driftline.db")).unwrap();
    let holds = |bytes: &[u8]| {
        bytes
            .windows(TOKEN.len())
            .any(|part| part == TOKEN.as_bytes())
    };
    assert!(!holds(&database), "the token lies open in the database");
    let good = data_dir.json(&["credential", "test", "mine"]);
    assert_eq!(good["good"], true, "{good}");
    sim.change_faults(|faults| {
        faults.revocations = vec![Revocation {
            token: TOKEN.into(),
            after_ms: 0,
        }];
    });
    let bad = data_dir.run(&["credential", "test", "mine"]);
    assert_eq!(bad.status, 1, "{bad:?}");
    assert!(bad.stderr.contains("401"), "{bad:?}");
    let listed = data_dir.json(&["credential", "list"]);
    assert_eq!(listed[0]["state"], "resting", "{listed}");
    for ended in [&added, &list, &bad] {
        assert!(
            !ended.stdout.contains(TOKEN) && !ended.stderr.contains(TOKEN),
            "{ended:?}"
        );
    }
    let twice = data_dir.run(&["credential", "add", &url, "--name", "mine"]);
    assert_eq!(twice.status, 2, "{twice:?}");
    assert_eq!(data_dir.run(&["credential", "remove", "mine"]).status, 0);
    assert_eq!(
        data_dir.json(&["credential", "list"]),
        serde_json::json!([])
    );
    let junk = typed(
        &data_dir,
        &["credential", "add", &url, "--stdin"],
        "two words",
    );
    assert_eq!(junk.status, 2, "{junk:?}");
}

#[test]
fn a_credential_that_cannot_work_is_refused_or_reported() {
    let data_dir = DataDir::new();
    let url = "https://sim.example";
    let gone = data_dir.folder().join("gone");
    let gone = gone.to_str().unwrap();
    let arguments = ["credential", "add", url, "--token-file", gone];
    let added = data_dir.run(&arguments);
    assert_eq!(added.status, 0, "{added:?}");
    assert!(added.stderr.contains("cannot be read yet"), "{added:?}");
    let twice = data_dir.run(&arguments);
    assert_eq!(twice.status, 2, "{twice:?}");
    assert!(twice.stderr.contains("\"sim.example\""), "{twice:?}");
    let list = data_dir.run(&["credential", "list"]);
    assert!(list.stdout.contains("unreadable\n"), "{list:?}");
    assert!(list.stdout.matches(gone).count() >= 2, "{list:?}");
    std::fs::write(gone, "token").unwrap();
    let list = data_dir.json(&["credential", "list"]);
    assert_eq!(list[0]["state"], "in use", "{list}");

    assert_eq!(data_dir.run(&["credential", "add", url]).status, 0);
    let twice = data_dir.run(&["credential", "add", url]);
    assert!(twice.stderr.contains("\"sim.example-2\""), "{twice:?}");
    for kind in ["x", "twitter"] {
        let none = data_dir.run(&["credential", "add", "https://x.test", "--kind", kind]);
        assert_eq!(none.status, 2, "{none:?}");
        assert!(none.stderr.contains("--token-env"), "{none:?}");
    }
}

#[test]
fn only_a_known_server_can_be_given_by_its_host() {
    let data_dir = DataDir::new();
    let ids = data_dir.file("ids", "1\n");
    let new = data_dir.run(&["track", "foo.example", "--ids", &ids]);
    assert_eq!(new.status, 2, "{new:?}");
    assert!(new.stderr.contains("https://foo.example"), "{new:?}");
    let address = "https://sim.example";
    let track = |address: &str| data_dir.json(&["track", address, "--ids", &ids, "--no-wait"]);
    assert_eq!(track(address)["new"], 1);
    let again = track("sim.example");
    assert_eq!(again["known"], 1, "{again}");
    // It is not stored, but known to wait.
    let why = data_dir.json(&["why", "sim.example/1"]);
    assert_eq!(why["state"], "waiting", "{why}");
    assert!(why["named_at_ms"].is_i64() && why["due_at_ms"].is_i64());
    let words = data_dir.run(&["why", "https://sim.example/@someone/1"]);
    assert!(words.stdout.contains("not stored (waiting)"), "{words:?}");
    let new = data_dir.run(&["track", "foo.example", "--ids", &ids]);
    let known = "known are https://sim.example";
    assert!(new.stderr.contains(known), "{new:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stored_history_can_be_replayed_under_other_policies() {
    let sim = sim().await;
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", CONFIG);
    let empty = data_dir.run(&["simulate"]);
    assert_eq!(empty.status, 10, "{empty:?}");
    let (mut server, _) = data_dir.serve(&["--allow-private"]);
    add(&data_dir, &sim);
    wait_for("posts are refreshed", || {
        let status = data_dir.json(&["refresh", "status"]);
        status["instances"][0]["since_start"]["outcomes"]["updated"].as_u64() > Some(300)
    });
    let replay = data_dir.json(&["simulate", "--days", "1", "--quota", "900/15m"]);
    assert!(replay["posts"].as_u64() > Some(100), "{replay}");
    assert!(replay["changes"].as_u64() > Some(100), "{replay}");
    let policies = replay["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 2, "{replay}");
    assert!(policies[0]["refreshes"].as_u64() > Some(0), "{replay}");
    let one = data_dir.run(&["simulate", "--policy", "value", "--quota", "10/1h"]);
    assert!(
        one.stdout.contains("value") && !one.stdout.contains("\nage "),
        "{one:?}"
    );
    let bad = data_dir.run(&["simulate", "--quota", "lots"]);
    assert_eq!(bad.status, 2, "{bad:?}");
    server.stop();
}

#[test]
fn an_unknown_configured_credential_is_warned_of() {
    let data_dir = DataDir::new();
    let names = "[refresh]\ncredentials = [\"nope\", \"mine\"]\n";
    data_dir.file("driftline.toml", names);
    let url = "https://a.example";
    data_dir.json(&["source", "add", url, "--no-check"]);
    let add = ["credential", "add", url, "--name", "mine", "--stdin"];
    assert_eq!(typed(&data_dir, &add, "a-token").status, 0);
    data_dir.json(&["source", "pause", "a.example"]);
    let log = data_dir.folder().join("log");
    let mut server = data_dir
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let said = |word: &str| std::fs::read_to_string(&log).unwrap().matches(word).count();
    wait_for("a warning", || said("nope") == 1);
    assert_eq!(said("mine"), 0);
    let status = data_dir.json(&["refresh", "status"]);
    assert_eq!(status["unknown_credentials"], serde_json::json!(["nope"]));
    assert_eq!(status["instances"][0]["without_credential"], false);
    assert_eq!(data_dir.run(&["credential", "remove", "mine"]).status, 0);
    wait_for("another warning", || said("mine") == 1);
    let words = data_dir.run(&["refresh", "status"]).stdout;
    let both = ["\"nope\"", "\"mine\"", "not refreshed"];
    assert!(both.iter().all(|word| words.contains(word)), "{words}");
    assert_eq!(said("nope"), 1);
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tracked_posts_are_forgotten() {
    let sim = sim().await;
    let data_dir = DataDir::new();
    data_dir.file("driftline.toml", CONFIG);
    let url = sim.url();
    let truth = sim.truth(&Timeline::Public).unwrap();
    let ids: Vec<String> = truth.posts.iter().map(|post| post.id.to_string()).collect();
    let all = data_dir.file("ids", &ids[..9].join("\n"));
    data_dir.json(&["track", &url, "--ids", &all, "--allow-private"]);
    let gone = data_dir.file("gone", "404\n405\n");
    data_dir.json(&["track", &url, "--ids", &gone, "--no-wait"]);
    let some = data_dir.file("some", &format!("404\n\n{}\n{}\n", ids[0], ids[1]));
    let forget = ["track", &url, "--forget"];
    let of_some = [&forget[..], &["--ids", &some]].concat();
    // Nobody can be asked here, and nothing happens before.
    let refused = data_dir.run(&of_some);
    assert_eq!(refused.status, 2, "{refused:?}");
    for said in ["1 IDs without a post", "2 stored posts", "--yes"] {
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let yes = |arguments: &[&str]| data_dir.json(&[arguments, &["--yes"]].concat());
    let counts = |of: &serde_json::Value| [of["lookups"].clone(), of["posts"].clone()];
    assert_eq!(counts(&yes(&of_some)), [1, 2]);
    assert_eq!(counts(&yes(&of_some)), [0, 0]);
    assert_eq!(counts(&yes(&forget)), [1, 7]);
    let nothing = data_dir.run(&forget);
    assert_eq!(
        nothing.status, 0,
        "nothing is left to ask about: {nothing:?}"
    );
    let name = data_dir.json(&["source", "list"])[0]["name"].clone();
    assert_eq!(data_dir.export(name.as_str().unwrap()).len(), 9);
    for (arguments, said) in [
        (&["track", &url][..], "--ids"),
        (&["track", &url, "--forget", "--once"], "--once"),
        (
            &["track", "https://nowhere.example", "--forget"],
            "no posts of",
        ),
        (&["track", &url, "--ids", &all, "--yes"], "--forget"),
    ] {
        let refused = data_dir.run(arguments);
        assert_eq!(refused.status, 2, "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
}
