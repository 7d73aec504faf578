//! `serve` and the commands that reach it.
#![allow(clippy::unwrap_used)]

mod support;

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
};

use driftline_net::{Http, Options};
use driftline_sim::{
    SpanMs, WorldConfig,
    http::{Clock, SimServer},
};
use driftline_store::{Store, Target, source};
use support::{DataDir, lines, wait_for};

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
    let upstream = SimServer::start(WorldConfig::punctual(20.0), 1, Clock::Real)
        .await
        .unwrap();
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

    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
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
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
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
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
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
fn an_address_that_is_none_is_refused() {
    let ended = DataDir::new().run(&["serve", "--listen", "nonsense"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains("nonsense"), "{ended:?}");
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
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
    let (_server, url) = data_dir.serve(&[]);
    assert_eq!(data_dir.operator_token(), token);
    assert_eq!(data_dir.get(&format!("{url}/api/v1/lists")).0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_notified_of_posts_of_those_whom_they_follow_with_notify() {
    let world = WorldConfig {
        authors: 1,
        ..WorldConfig::punctual(5.0)
    };
    let upstream = SimServer::start(world, 1, Clock::Real).await.unwrap();
    let data_dir = DataDir::new();
    let (_server, url) = data_dir.serve(&["--allow-private"]);
    let (source, every) = (upstream.url(), "200ms");
    data_dir.json(&["source", "add", &source, "--name", "sim", "--every", every]);
    let passphrase = data_dir.file("passphrase", "correct horse\n");
    let create = ["account", "create", "ann", "--mail", "ann@mail.example"];
    data_dir.json(&[&create[..], &["--passphrase-file", &passphrase]].concat());
    wait_for("posts are there", || {
        data_dir.json(&["source", "verify", "sim"])["posts"].as_u64() > Some(0)
    });
    // This chooses the process's TLS provider, which every client needs.
    Http::new(Options::default()).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let sent = async |request: reqwest::RequestBuilder| {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{answer:?}");
        serde_json::from_str::<serde_json::Value>(&answer.text().await.unwrap()).unwrap()
    };
    let log_in = serde_json::json!({ "who": "ann", "passphrase": "correct horse" });
    let log_in = client
        .post(format!("{url}/api/driftline/v1/log-in"))
        .header("content-type", "application/json")
        .body(log_in.to_string());
    let token = sent(log_in).await["token"].as_str().unwrap().to_owned();
    let page = sent(client.get(format!("{url}/api/v1/timelines/public"))).await;
    let author = page[0]["account"]["id"].as_str().unwrap();
    let follow = format!("{url}/api/v1/accounts/{author}/follow?notify=true");
    sent(client.post(follow).bearer_auth(&token)).await;
    let told = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        loop {
            let path = format!("{url}/api/v1/notifications");
            let told = sent(client.get(path).bearer_auth(&token)).await;
            if told[0].is_object() {
                return told;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    });
    let told = told.await.unwrap();
    assert_eq!(told[0]["type"], "status");
    assert_eq!(told[0]["status"]["account"]["id"], author);
}

/// Its first version is at its server alone.
#[tokio::test(flavor = "multi_thread")]
async fn opening_a_thread_brings_the_versions_of_a_post_that_was_edited_before_it_was_seen() {
    let world = WorldConfig {
        edited_share: 1.0,
        edited_after_ms: SpanMs::new(1, 1),
        ..WorldConfig::punctual(5.0)
    };
    let upstream = SimServer::start(world, 1, Clock::Real).await.unwrap();
    let data_dir = DataDir::new();
    let (_server, url) = data_dir.serve(&["--allow-private"]);
    let (source, every) = (upstream.url(), "200ms");
    data_dir.json(&["source", "add", &source, "--name", "sim", "--every", every]);
    let get = |path: &str| -> serde_json::Value {
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
    let history = data_dir.json(&["history", id]);
    assert_eq!(
        history["versions"].as_array().unwrap().len(),
        1,
        "{history}"
    );
}

#[test]
fn proxies_that_are_none_are_refused() {
    let data_dir = DataDir::new();
    let config = "[server]\ntrusted_proxies = [\"10.0.0.2\", \"proxy.example\"]\n";
    data_dir.file("driftline.toml", config);
    let ended = data_dir.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ended.status, 2, "{ended:?}");
    let said = "server.trusted_proxies: invalid proxy \"proxy.example\"";
    assert!(ended.stderr.contains(said), "{ended:?}");
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

#[tokio::test(flavor = "multi_thread")]
async fn other_machines_are_served_and_need_the_token_for_more_than_public_posts() {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef-drift";
    let data_dir = DataDir::new();
    let file = data_dir.file("token", &format!("{TOKEN}\n"));
    data_dir.file(
        "driftline.toml",
        &format!("[server]\ntoken_file = {file:?}\n[id]\nserve = true\nlisten_thrift = \"none\"\n"),
    );
    let mut server = data_dir.start(&["--json", "-v", "serve", "--listen", "0.0.0.0:0"]);
    let announced = lines(&server.line());
    let announced = announced[0]["listening"].as_str().unwrap();
    assert!(announced.starts_with("http://0.0.0.0:"), "{announced}");
    let url = announced.replace("0.0.0.0", "127.0.0.1");
    for open in ["timelines/public", "instance"] {
        assert_eq!(get(&format!("{url}/api/v1/{open}")).await.0, 200, "{open}");
    }
    for closed in [
        "metrics",
        "api/v1/lists",
        "api/v1/track?instance=h",
        "api/v1/ids",
    ] {
        let url = format!("{url}/{closed}");
        assert_eq!(get(&url).await.0, 401, "{closed}");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(&url).bearer_auth(TOKEN).send().await.unwrap();
        let expected = if closed.contains("track") { 400 } else { 200 };
        assert_eq!(answer.status(), expected, "{closed}");
    }
    // Commands go through the socket in the data folder, which is the operator's.
    assert_eq!(data_dir.json(&["source", "list"]), serde_json::json!([]));
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
}
