//! `serve` and the commands that reach it.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    time::Duration,
};

use driftline_net::{Http, Options};
use driftline_sim::{
    SpanMs, WorldConfig,
    http::{Clock, SimServer},
};
use driftline_store::{Store, Target, source};
use serde_json::{Value, json};
use support::{DataDir, quiet::steady, wait_for};

async fn get(url: &str) -> (u16, String) {
    // This chooses the process's TLS provider, which every client needs.
    Http::new(Options::default()).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client.get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// Anybody has an account there, so no other machine may reach it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_for_tests_of_clients_is_on_loopback_alone() {
    let data_dir = DataDir::new();
    let token = data_dir.file("token", "0123456789abcdef0123456789abcdef");
    let everywhere = ["serve", "--listen", "0.0.0.0:0", "--token-file", &token];
    let here = ["serve", "--listen", "127.0.0.1:0"];
    let proxied = data_dir.file(
        "proxied.toml",
        "[server]\npublic_url = \"https://d.example\"\n",
    );
    for arguments in [
        [&everywhere[..], &["--insecure-test"]].concat(),
        [&["--config", &proxied], &here[..], &["--insecure-test"]].concat(),
    ] {
        let refused = data_dir.run(&arguments);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains("--insecure-test"), "{refused:?}");
    }
    let registrations = async |arguments: &[&str]| {
        let (_server, url) = data_dir.serve(arguments);
        let (_, text) = get(&format!("{url}/api/v2/instance")).await;
        let instance: serde_json::Value = serde_json::from_str(&text).unwrap();
        instance["registrations"]["enabled"].clone()
    };
    assert_eq!(registrations(&[]).await, false);
    assert_eq!(registrations(&["--insecure-test"]).await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_takes_commands_and_ends_in_order() {
    let upstream = steady(20.0).await;
    let data_dir = DataDir::new();
    let (mut server, url) = data_dir.serve(&["--allow-private"]);
    let add = [
        "source",
        "add",
        &upstream.url(),
        "--name",
        "sim",
        "--every",
        "200ms",
    ];
    assert_eq!(data_dir.json(&add)["name"], "sim");
    wait_for("posts are there", || {
        data_dir.json(&["source", "verify", "sim"])["posts"].as_u64() > Some(20)
    });
    let exported = data_dir.export("sim");
    assert!(exported.len() > 20);
    let refused = data_dir.run(&["source", "verify", "other"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("no source named"), "{refused:?}");
    let second = data_dir.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.status, 11, "{second:?}");
    let other = data_dir.run(&["--database-url", "postgres://h/d", "source", "list"]);
    assert_eq!(other.status, 2, "{other:?}");
    assert!(
        other.stderr.contains("with the database driftline.db"),
        "{other:?}"
    );

    assert_eq!(get(&format!("{url}/readyz")).await.0, 200);
    let metrics = format!("{url}/metrics");
    assert_eq!(get(&metrics).await.0, 401, "from this machine, too");
    let (status, metrics) = data_dir.get(&metrics);
    assert_eq!(status, 200);
    assert!(
        metrics.contains("driftline_posts_stored_total"),
        "{metrics}"
    );
    let (status, page) = get(&format!("{url}/api/v1/timelines/public")).await;
    assert_eq!(status, 200);
    assert_eq!(
        serde_json::from_str::<Vec<serde_json::Value>>(&page)
            .unwrap()
            .len(),
        20
    );

    server.stop();
    assert!(!data_dir.data().join("driftline.sock").exists());
    let path = data_dir.data().join("driftline.db");
    let holding = tokio::task::spawn_blocking(|| {
        let store = Store::open(Target::Sqlite { path }).unwrap();
        let sources = store.read_blocking(source::list).unwrap();
        store.close_blocking();
        sources[0].holding.clone()
    });
    assert_eq!(holding.await.unwrap(), None, "the lease was given back");
    assert!(data_dir.export("sim").len() >= exported.len());
}

#[test]
fn a_command_of_another_version_is_refused_and_the_conversation_goes_on() {
    let data_dir = DataDir::new();
    let (mut server, _) = data_dir.serve(&[]);
    let socket = UnixStream::connect(data_dir.data().join("driftline.sock")).unwrap();
    let mut answers = BufReader::new(&socket).lines();
    let mut ask = |version: &str, command: &str| {
        let call = serde_json::json!({ "version": version, "command": command, "request": null });
        writeln!(&socket, "{call}").unwrap();
        answers.next().unwrap().unwrap()
    };
    let refused = ask("0.0.0", "source_list");
    assert!(refused.contains("driftline 0.0.0"), "{refused}");
    assert!(refused.contains("use the same version"), "{refused}");
    let version = env!("CARGO_PKG_VERSION");
    let unknown = ask(version, "source_fly");
    assert!(unknown.contains("unknown command"), "{unknown}");
    assert_eq!(ask(version, "source_list"), r#"{"ok":[]}"#);
    server.stop();
}

#[test]
fn a_killed_server_leaves_nothing_in_the_way() {
    let data_dir = DataDir::new();
    let (server, _) = data_dir.serve(&[]);
    server.kill();
    assert!(data_dir.data().join("driftline.sock").exists());
    let list = data_dir.json(&["source", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 0);
    let (mut server, _) = data_dir.serve(&[]);
    let list = data_dir.json(&["source", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 0);
    server.stop();
}

#[test]
fn a_server_waits_for_a_command_that_ends_soon() {
    let data_dir = DataDir::new();
    std::fs::create_dir(data_dir.data()).unwrap();
    let lock = File::create(data_dir.data().join("lock")).unwrap();
    lock.try_lock().unwrap();
    let refused = data_dir.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.status, 11, "{refused:?}");
    let mut server = data_dir.start(&["--json", "serve", "--listen", "127.0.0.1:0"]);
    wait_for("it waits", || data_dir.log().contains("waiting for it"));
    drop(lock);
    assert!(server.line().contains("listening"), "{}", data_dir.log());
}

#[test]
fn the_operators_token_is_made_at_the_first_start_and_stays() {
    let data_dir = DataDir::new();
    let (mut server, url) = data_dir.serve(&[]);
    let token = data_dir.operator_token();
    let lists = format!("{url}/api/v1/lists");
    assert_eq!(support::get(&lists).0, 401);
    assert_eq!(data_dir.get(&lists).0, 200);
    let log = data_dir.log();
    assert!(
        log.contains("operator.token") && !log.contains(&token),
        "{log}"
    );
    server.stop();
    let (_server, url) = data_dir.serve(&[]);
    assert_eq!(data_dir.operator_token(), token);
    assert_eq!(data_dir.get(&format!("{url}/api/v1/lists")).0, 200);
}

/// Besides polling, a server fetches the versions of a post that was edited before it was seen, of
/// which only the post's own server has the first, and makes notifications of posts.
#[tokio::test(flavor = "multi_thread")]
async fn histories_are_fetched_and_notifications_made_beside_the_pollers() {
    let world = WorldConfig {
        authors: 1,
        edited_share: 1.0,
        edited_after_ms: SpanMs::new(1, 1),
        ..WorldConfig::punctual(5.0)
    };
    let upstream = SimServer::start(world, 1, Clock::Real).await.unwrap();
    let data_dir = DataDir::new();
    let (_server, url) = data_dir.serve(&["--allow-private"]);
    let (source, every) = (upstream.url(), "200ms");
    data_dir.json(&["source", "add", &source, "--name", "sim", "--every", every]);
    let get = |path: &str| -> Value {
        let (status, body) = data_dir.get(&format!("{url}/api/v1/{path}"));
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    };
    let versions = |id: &str| get(&format!("statuses/{id}/history"));
    let mut edited = None;
    wait_for("an edited post is there", || {
        let page = get("timelines/public");
        let found = page.as_array().unwrap().iter().find(|post| {
            let id = post["id"].as_str().unwrap();
            post["edited_at"].is_string() && versions(id).as_array().unwrap().len() == 1
        });
        edited = found.cloned();
        edited.is_some()
    });
    let edited = edited.unwrap();
    let id = edited["id"].as_str().unwrap();
    get(&format!("statuses/{id}/context"));
    wait_for("the first version is there", || {
        versions(id).as_array().unwrap().len() == 2
    });
    let versions = versions(id);
    assert_eq!(versions[0]["created_at"], edited["created_at"]);
    assert_eq!(versions[1]["created_at"], edited["edited_at"]);
    let is_edited = |n: usize| {
        versions[n]["content"]
            .as_str()
            .unwrap()
            .contains("(edited)")
    };
    assert_eq!((is_edited(0), is_edited(1)), (false, true), "{versions}");

    data_dir.account("ann", "correct horse");
    // This chooses the process's TLS provider, which every client needs.
    Http::new(Options::default()).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let sent = async |request: reqwest::RequestBuilder| {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{answer:?}");
        serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap()
    };
    let log_in = json!({ "who": "ann", "passphrase": "correct horse" });
    let log_in = client
        .post(format!("{url}/api/driftline/v1/log-in"))
        .header("content-type", "application/json")
        .body(log_in.to_string());
    let token = sent(log_in).await["token"].as_str().unwrap().to_owned();
    let author = edited["account"]["id"].as_str().unwrap();
    let follow = format!("{url}/api/v1/accounts/{author}/follow?notify=true");
    sent(client.post(follow).bearer_auth(&token)).await;
    let notified = tokio::time::timeout(Duration::from_secs(120), async {
        loop {
            let path = format!("{url}/api/v1/notifications");
            let notified = sent(client.get(path).bearer_auth(&token)).await;
            if notified[0].is_object() {
                return notified;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let notified = notified.await.unwrap();
    assert_eq!(notified[0]["type"], "status");
    assert_eq!(notified[0]["status"]["account"]["id"], author);
}

#[test]
fn tokens_that_are_missing_or_short_are_refused_unshown() {
    let data_dir = DataDir::new().with("SHORT", "sesame-open-yourself");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let empty = data_dir.file("empty", "");
    for (place_of_token, said) in [
        (["--token-env", "SHORT"], "shorter than 32"),
        (["--token-env", "UNSET"], "UNSET"),
        (["--token-file", &empty], "openssl rand -hex 32"),
        (["--token-file", "nowhere"], "nowhere"),
    ] {
        let arguments: Vec<&str> = serve.into_iter().chain(place_of_token).collect();
        let ended = data_dir.run(&arguments);
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
        assert!(!ended.stderr.contains("sesame"), "{ended:?}");
    }
}
