//! `source add` tries what it adds, and `source list` shows what each source is doing.
#![allow(clippy::unwrap_used)]

mod support;

use driftline_sim::{
    FaultKind, FaultsConfig, WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use serde_json::json;
use support::{
    DataDir,
    quiet::{quiet, steady},
    wait_for,
};

fn names(data_dir: &DataDir) -> usize {
    let ended = data_dir.run(&["--json", "source", "list"]);
    serde_json::from_str::<serde_json::Value>(&ended.stdout)
        .map_or(0, |list| list.as_array().unwrap().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_source_is_not_added_and_the_error_is_shown() {
    let sim = steady(20.0).await;
    let url = sim.url();
    let data_dir = DataDir::new();
    let token = data_dir.file("token", "driftline");
    let nowhere = data_dir.folder().join("nowhere").display().to_string();
    let gone = "http://127.0.0.1:1";
    let private = ["--allow-private"];
    for (url, more, said) in [
        (&*url, &[][..], "--allow-private"),
        (gone, &private, "no connection"),
        (
            &url,
            &[
                "--allow-private",
                "--timeline",
                "list:999999",
                "--token-file",
                &token,
            ],
            "no such thing",
        ),
        (
            &url,
            &["--allow-private", "--token-env", "UNSET_TOKEN"],
            "UNSET_TOKEN",
        ),
        (
            &url,
            &["--allow-private", "--token-file", &nowhere],
            "nowhere",
        ),
    ] {
        let mut add = vec!["source", "add", url];
        add.extend(more);
        let ended = data_dir.run(&add);
        assert_ne!(ended.status, 0, "{add:?}: {ended:?}");
        for said in [said, "not added", "--no-check"] {
            assert!(ended.stderr.contains(said), "{add:?}: {ended:?}");
        }
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert_eq!(names(&data_dir), 0, "{add:?}");
    }
    let mut untried = vec!["source", "add", gone, "--no-check", "--name", "untried"];
    untried.extend(["--token-env", "UNSET_TOKEN"]);
    assert_eq!(data_dir.run(&untried).status, 0);
    let add = ["source", "add", &url, "--allow-private", "--name", "tried"];
    assert_eq!(data_dir.run(&add).status, 0);
    assert_eq!(names(&data_dir), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_tries_with_what_it_may_and_has_itself() {
    let sim = steady(20.0).await;
    let url = sim.url();
    let data_dir = DataDir::new();
    let (_server, _) = data_dir.serve(&[]);
    let refused = data_dir.run(&["source", "add", &url]);
    assert_ne!(refused.status, 0, "{refused:?}");
    assert!(refused.stderr.contains("private address"), "{refused:?}");
    let throttled = SimServer::start(
        ServerConfig {
            world: WorldConfig {
                faults: FaultsConfig {
                    shares: [(FaultKind::Throttled, 1.0)].into(),
                    ..FaultsConfig::default()
                },
                ..WorldConfig::punctual(20.0)
            },
            ..ServerConfig::default()
        },
        1,
        Clock::Real,
    );
    let throttled = throttled.await.unwrap();
    let data_dir = DataDir::new();
    let (_server, _) = data_dir.serve(&["--allow-private"]);
    let added = data_dir.run(&["source", "add", &throttled.url(), "--name", "throttled"]);
    assert_eq!(added.status, 0, "{added:?}");
    assert!(added.stderr.contains("too many requests"), "{added:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_changed_by_set_alone() {
    let sim = steady(20.0).await;
    let url = sim.url();
    let data_dir = DataDir::new();
    let (token, bad) = (
        data_dir.file("token", "driftline"),
        data_dir.file("bad", "a b"),
    );
    let add = ["source", "add", &url, "--allow-private", "--name", "sim"];
    data_dir.json(&add);
    let set = |options: &[&str]| {
        let all = [&["--json", "source", "set", "sim"], options].concat();
        data_dir.run(&all)
    };
    let row = || data_dir.json(&["source", "list"])[0].clone();

    // What `mirror` is given and is not so is refused, with the command that changes it.
    let mirror = [
        "mirror",
        &url,
        "--for",
        "1s",
        "--every",
        "5s",
        "--allow-private",
    ];
    let refused = data_dir.run(&[&mirror[..], &["--token-file", &token]].concat());
    assert_eq!(refused.status, 2, "{refused:?}");
    let command = format!("`driftline source set sim --every 5s --token-file {token}`");
    assert!(refused.stderr.contains(&command), "{refused:?}");
    assert_eq!(row()["every_ms"], 3_000);
    for (option, value) in [("--kind", "x"), ("--id-layout", "none")] {
        let refused = data_dir.run(&["mirror", &url, "--for", "1s", option, value]);
        assert_eq!(refused.status, 2, "{refused:?}");
        assert!(refused.stderr.contains(option), "{refused:?}");
    }

    // A token is kept if the server takes it, or unasked.
    for (options, said) in [
        (&["--token-file", &bad][..], "--no-check"),
        (&["--token-env", "UNSET_TOKEN"], "--no-check"),
        (&["--rename", "a b"], "letters, digits"),
        (&[], "nothing to change"),
    ] {
        let refused = set(options);
        assert_eq!(refused.status, 2, "{options:?}: {refused:?}");
        assert!(refused.stderr.contains(said), "{options:?}: {refused:?}");
    }
    assert_eq!(set(&["--token-file", &token]).status, 0);
    assert_eq!(set(&["--token-env", "UNSET_TOKEN", "--no-check"]).status, 0);
    assert_eq!(set(&["--token-file", &token, "--refresh", "off"]).status, 0);
    assert_eq!(row()["refreshing"], false);
    let table = data_dir.run(&["source", "list"]).stdout;
    assert!(table.contains("not refreshed"), "{table}");

    let (_server, _) = data_dir.serve(&[]);
    wait_for("it is read", || row()["state"] == "reading");
    let renamed = set(&["--rename", "new", "--every", "200ms", "--refresh", "on"]);
    assert_eq!(renamed.status, 0, "{renamed:?}");
    let new = row();
    let shown = [&new["name"], &new["every_ms"], &new["refreshing"]];
    assert_eq!(
        shown,
        [&serde_json::json!("new"), &200.into(), &true.into()]
    );
    wait_for("it is read on", || row()["state"] == "reading");
    let verified = data_dir.json(&["source", "verify", "new"]);
    assert_eq!(verified["name"], "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_shows_what_each_source_is_doing() {
    let sim = steady(20.0).await;
    let url = sim.url();
    let data_dir = DataDir::new();
    let (server, base) = data_dir.serve(&[]);
    let add = |name: &str, more: &[&str]| {
        let mut add = vec!["source", "add", &url, "--no-check", "--name", name];
        add.extend(["--every", "300ms"]);
        add.extend(more);
        data_dir.json(&add);
    };
    add("blocked", &[]);
    add("tokenless", &["--token-env", "UNSET_TOKEN"]);
    add("resting", &[]);
    data_dir.json(&["source", "pause", "resting"]);
    let state = |name: &str| {
        let list = data_dir.json(&["source", "list"]);
        let rows = list.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    wait_for("it fails", || state("blocked")["state"] == "failing");
    assert_eq!(
        state("blocked")["state_text"],
        "failing: address is private; `source set --allow-private on` allows it"
    );
    assert_eq!(state("blocked")["fault"]["kind"], "private_address");
    wait_for("its token is missed", || {
        state("tokenless")["fault"]["kind"] == "client"
    });
    let text = state("tokenless")["state_text"].to_string();
    assert!(text.contains("UNSET_TOKEN"), "{text}");
    assert_eq!(state("resting")["state"], "paused");
    let table = data_dir.run(&["source", "list"]).stdout;
    assert!(table.contains("failing: address is private"), "{table}");

    // One bad upstream makes nothing unready, and neither does a missing token.
    wait_for("the metrics show it", || {
        let (_, metrics) = data_dir.get(&format!("{base}/metrics"));
        metrics.contains("driftline_source_failing{source=\"blocked\"} 1")
            && metrics.contains("driftline_source_failing{source=\"tokenless\"} 1")
    });
    let (status, body) = data_dir.get(&format!("{base}/readyz"));
    assert_eq!((status, body.lines().next()), (200, Some("ok")));
    wait_for("the stalled source is reported", || {
        let (status, body) = data_dir.get(&format!("{base}/readyz"));
        assert_eq!(status, 200);
        body.contains("tokenless is stalled for") && body.contains("UNSET_TOKEN")
    });
    wait_for("the metrics show that, too", || {
        let (_, metrics) = data_dir.get(&format!("{base}/metrics"));
        metrics.contains("driftline_source_stalled{source=\"tokenless\"} 1")
            && metrics.contains("driftline_source_stalled{source=\"blocked\"} 0")
            && metrics.contains("driftline_source_standing_still{source=\"tokenless\"} 1")
    });
    let lines = data_dir.log();
    for said in ["source=blocked", "source=tokenless"] {
        let warnings = lines.lines().filter(|line| line.contains(said));
        assert_eq!(warnings.count(), 1, "{lines}");
    }
    drop(server);
    assert_eq!(state("tokenless")["state"], "not_read");

    let (_server, base) = data_dir.serve(&["--allow-private"]);
    wait_for("it is read", || state("blocked")["state"] == "reading");
    wait_for("its last success is shown", || {
        let (_, metrics) = data_dir.get(&format!("{base}/metrics"));
        let succeeded = "driftline_source_last_success_timestamp_seconds{source=\"blocked\"} 1";
        metrics.contains(succeeded)
            && metrics.contains("driftline_source_failing{source=\"blocked\"} 0")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_given_by_its_name() {
    let sim = steady(20.0).await;
    let url = sim.url();
    let data_dir = DataDir::new();
    let add = |timeline: &str| {
        data_dir.run(&[
            "source",
            "add",
            &url,
            "--allow-private",
            "--timeline",
            timeline,
        ])
    };
    for (timeline, said) in [
        ("account:@nobody", "knows no account nobody; check"),
        (
            "account:drifter1001@far.example",
            "no account drifter1001@far.example",
        ),
        ("account:@a b", "account:@user@host"),
    ] {
        let refused = add(timeline);
        assert_eq!(refused.status, 2, "{timeline}: {refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    assert_eq!(names(&data_dir), 0);
    let added = add("account:drifter1001@sim.example");
    assert_eq!(added.status, 0, "{added:?}");
    let list = data_dir.run(&["--json", "source", "list"]);
    let list: serde_json::Value = serde_json::from_str(&list.stdout).unwrap();
    assert_eq!(list[0]["timeline"], "account:1001");
    let name = list[0]["name"].as_str().unwrap();
    assert!(name.ends_with("-account-drifter1001-sim.example"), "{name}");
    // It is a server with that source.
    let servers = data_dir.json(&["instance", "list"]);
    let server = &servers[0];
    assert_eq!(servers.as_array().unwrap().len(), 1, "{servers}");
    assert_eq!(server["address"], url);
    assert_eq!(server["api"], "mastodon");
    assert_eq!(server["sources"], serde_json::json!([list[0]["name"]]));
    // Its posts are refreshed without a token.
    let credentials = server["credentials"].as_array().unwrap();
    let text = data_dir.run(&["instance", "list"]).stdout;
    let shown = text.lines().nth(1).unwrap();
    assert!(shown.starts_with(&url), "{text}");
    assert_eq!(shown.ends_with('-'), credentials.is_empty(), "{text}");
    // The same one, found by the ID that its name has.
    let mirror = data_dir.run(&[
        "mirror",
        &url,
        "--allow-private",
        "--timeline",
        "account:@drifter1001",
        "--for",
        "1s",
        "--no-settle",
    ]);
    assert!(mirror.stderr.contains(&format!("as {name}")), "{mirror:?}");
    assert_eq!(names(&data_dir), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_forgotten_with_what_is_stored_of_it() {
    let (mut sims, mut urls) = (Vec::new(), Vec::new());
    let data_dir = DataDir::new();
    for name in ["first", "second"] {
        let sim = quiet(20.0, 1).await;
        urls.push(sim.url());
        data_dir.mirror(&sim.url(), name);
        sims.push(sim);
    }
    let listed = || {
        let rows = data_dir.json(&["instance", "list"]);
        let rows = rows.as_array().unwrap().clone();
        rows.into_iter().map(|row| {
            let posts = row["posts"].as_u64().unwrap();
            (row["address"].as_str().unwrap().to_owned(), posts)
        })
    };
    assert_eq!(listed().count(), 2);
    assert!(listed().all(|(_, posts)| posts > 100));
    let refused = data_dir.run(&["instance", "forget", &urls[0]]);
    assert_eq!(refused.status, 2, "{refused:?}");
    for said in ["1 source (first)", "posts", "add --yes"] {
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
    let unknown = data_dir.run(&["instance", "forget", "https://nowhere.example", "--yes"]);
    assert!(unknown.stderr.contains("instance list"), "{unknown:?}");
    let kept = data_dir.export("second");
    {
        // A running server notices it.
        let (_server, base) = data_dir.serve(&["--allow-private"]);
        let forgotten = data_dir.json(&["instance", "forget", &urls[0], "--yes"]);
        assert_eq!(forgotten["sources"], json!(["first"]));
        wait_for("it is read no more", || {
            let (_, body) = data_dir.get(&format!("{base}/readyz"));
            !body.contains("first")
        });
    }
    assert_eq!(
        listed().map(|(address, _)| address).collect::<Vec<_>>(),
        [urls[1].clone()]
    );
    assert_eq!(data_dir.export("second"), kept);
    let gone = data_dir.run(&["instance", "show", &urls[0]]);
    assert_ne!(gone.status, 0, "{gone:?}");
}
