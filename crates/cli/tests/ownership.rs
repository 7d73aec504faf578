//! Sources that belong to accounts, with and without a running server.
#![allow(clippy::unwrap_used)]

mod support;

use driftline_sim::{
    WorldConfig,
    http::{Clock, SimServer},
};
use driftline_store::testing::postgres_database;
use serde_json::Value;
use support::{DataDir, Ended, wait_for};

fn refused(ended: &Ended, said: &str) {
    assert_eq!(ended.status, 2, "{ended:?}");
    assert!(ended.stderr.contains(said), "no {said:?} in {ended:?}");
}

/// The names of the sources that a listing shows.
fn names(data_dir: &DataDir, more: &[&str]) -> Vec<String> {
    let rows = data_dir.json(&[&["source", "list"][..], more].concat());
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

fn row(data_dir: &DataDir, name: &str, account: &str) -> Value {
    let rows = data_dir.json(&["source", "list", "--as", account]);
    let rows = rows.as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("no {name} in {rows:?}"))
        .clone()
}

/// Of two accounts, each has a source of the same name; nobody sees the other's.
fn accounts_have_sources(data_dir: &DataDir, url: &str) {
    let token = data_dir.file("token", "driftline\n");
    let add = |account: &str, name: &str, more: &[&str]| {
        let add = [
            "source",
            "add",
            url,
            "--timeline",
            "home",
            "--for",
            account,
            "--name",
            name,
        ];
        let add = [&add[..], &["--token-file", &token], more].concat();
        data_dir.run(&add)
    };
    for account in ["Ann", "bob"] {
        let added = add(account, "mine", &[]);
        assert_eq!(added.status, 0, "{added:?}");
        assert!(
            added.stderr.contains("only its owner may read it"),
            "{added:?}"
        );
    }
    refused(&add("ann", "mine", &[]), "\"ann/mine\" already");
    refused(
        &add("ann", "other", &["--allow-private"]),
        "cannot be used with",
    );
    refused(&add("ann", "other", &[]), "may have 1 of its own sources");
    refused(&add("carla", "other", &[]), "no account named carla");
    let own = ["source", "add", url, "--name", "mine", "--allow-private"];
    assert_eq!(data_dir.run(&own).status, 0);

    assert_eq!(names(data_dir, &[]), ["mine"]);
    assert_eq!(names(data_dir, &["--as", "ANN"]), ["ann/mine", "mine"]);
    assert_eq!(row(data_dir, "ann/mine", "ann")["owner"], "ann");
    assert_eq!(row(data_dir, "ann/mine", "ann")["audience"], "private");
    // What the operator and bob cannot read is as if it were not there.
    for command in [
        &["source", "verify", "ann/mine"][..],
        &["source", "pause", "ann/mine"],
        &["source", "verify", "ann/mine", "--as", "bob"],
        &["source", "remove", "ann/mine", "--yes", "--as", "bob"],
        &["export", "ann/mine"],
        &["export", "ann/mine", "--as", "bob"],
    ] {
        refused(&data_dir.run(command), "no source named \"ann/mine\"");
    }
    let status = data_dir.json(&["status"]);
    assert!(!status.to_string().contains("ann/mine"), "{status}");
    let credentials = data_dir.json(&["credential", "list"]);
    assert!(!credentials.to_string().contains("/mine"), "{credentials}");
    assert_eq!(
        data_dir
            .run(&["source", "verify", "mine", "--as", "ann"])
            .status,
        0
    );

    // Sharing shows it, and its name.
    let share = [
        "source",
        "set",
        "mine",
        "--audience",
        "members",
        "--as",
        "ann",
    ];
    assert_eq!(data_dir.run(&share).status, 0);
    assert_eq!(
        names(data_dir, &["--as", "bob"]),
        ["ann/mine", "bob/mine", "mine"]
    );
    let hide = [
        "source",
        "set",
        "mine",
        "--audience",
        "private",
        "--as",
        "bob",
    ];
    assert_eq!(data_dir.run(&hide).status, 0, "it is bob's own");
    refused(
        &data_dir.run(&[
            "source",
            "set",
            "ann/mine",
            "--audience",
            "private",
            "--as",
            "bob",
        ]),
        "not that account's own",
    );
    let hide = [
        "source",
        "set",
        "mine",
        "--audience",
        "private",
        "--as",
        "ann",
    ];
    assert_eq!(data_dir.run(&hide).status, 0);

    // The world is shown it only by the operator's leave.
    let publish = [
        "source",
        "set",
        "mine",
        "--audience",
        "public",
        "--as",
        "ann",
    ];
    refused(
        &data_dir.run(&publish),
        "`driftline account publish NAME on`",
    );
    let may = |may: &str| data_dir.json(&["account", "publish", "ann", may]);
    assert_eq!(may("on")["changed"], true);
    assert_eq!(data_dir.run(&publish).status, 0);
    assert_eq!(names(data_dir, &[]), ["ann/mine", "mine"]);
    let withdrawn = may("off");
    assert_eq!(withdrawn["withdrawn"], 1, "{withdrawn}");
    assert_eq!(names(data_dir, &[]), ["mine"]);
    assert_eq!(row(data_dir, "ann/mine", "ann")["audience"], "private");
    let again = data_dir.run(&["account", "publish", "ann", "off"]).stdout;
    assert_eq!(again, "Ann may not show sources to the world, as before\n");

    // Its own source needs no name of the account's.
    let home = |more: &[&str]| data_dir.run(&[&["account", "home", "ann"], more].concat());
    let added = home(&["--add", "mine"]);
    let said = "1 source that accounts keep to themselves";
    assert!(added.stdout.contains(said), "{added:?}");
    assert!(!added.stdout.contains("ann/mine"), "{added:?}");
    let unknown = home(&["--remove", "mine", "--remove", "bob/mine"]);
    refused(&unknown, "no source named \"bob/mine\"");
    assert_eq!(home(&[]).stdout, added.stdout, "all or nothing");
    // What would go is counted, and what accounts keep to themselves is not named.
    let forget = data_dir.run(&["instance", "forget", url]);
    let counted = "2 sources that accounts keep to themselves";
    assert!(forget.stderr.contains(counted), "{forget:?}");
    for name in ["ann", "bob"] {
        let is_named = forget.stderr.to_lowercase().contains(name);
        assert!(!is_named, "{name}: {forget:?}");
    }
    assert_eq!(home(&[]).stdout, added.stdout);
    let removed = home(&["--remove", "mine"]);
    assert!(removed.stdout.contains("no source as a whole"));

    // Freezing pauses what the account has not paused itself, and ends with it.
    for (command, state) in [("freeze", "paused"), ("unfreeze", "")] {
        assert_eq!(data_dir.run(&["account", command, "ann"]).status, 0);
        let row = row(data_dir, "ann/mine", "ann");
        assert_eq!(row["paused"], state == "paused", "{row}");
    }
    for command in [
        &["source", "pause", "mine", "--as", "ann"][..],
        &["account", "freeze", "ann"],
        &["account", "unfreeze", "ann"],
    ] {
        assert_eq!(data_dir.run(command).status, 0);
    }
    assert_eq!(row(data_dir, "ann/mine", "ann")["paused"], true);
    assert_eq!(
        data_dir
            .run(&["source", "resume", "mine", "--as", "ann"])
            .status,
        0
    );
}

/// A deletion takes the account's source along, and leaves what others have.
fn a_deletion_takes_the_source_along(data_dir: &DataDir) {
    let deleted = data_dir.json(&["account", "delete", "ann", "--yes"]);
    assert_eq!(deleted["sources"], 1, "{deleted}");
    refused(
        &data_dir.run(&["source", "list", "--as", "ann"]),
        "no account named ann",
    );
    assert_eq!(names(data_dir, &["--as", "bob"]), ["bob/mine", "mine"]);
    data_dir.account("ann", "correct horse battery");
    assert_eq!(names(data_dir, &["--as", "ann"]), ["mine"]);
}

fn settings(data_dir: DataDir) -> DataDir {
    data_dir
        .with("DRIFTLINE_ACCOUNTS__SOURCES", "1")
        .with("DRIFTLINE_ACCOUNTS__ALLOW_PRIVATE_SOURCES", "true")
        .with("DRIFTLINE_UPSTREAM__ALLOW_PRIVATE", "true")
}

async fn sim() -> SimServer {
    let world = WorldConfig {
        publish_for_ms: Some(0),
        ..WorldConfig::punctual(2.0)
    };
    SimServer::start(world, 1, Clock::Real).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_accounts_are_theirs_without_a_server() {
    let sim = sim().await;
    let data_dir = settings(DataDir::new());
    data_dir.account("Ann", "correct horse battery");
    data_dir.account("bob", "correct horse battery");
    accounts_have_sources(&data_dir, &sim.url());
    a_deletion_takes_the_source_along(&data_dir);
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_accounts_are_theirs_beside_a_server_on_postgresql() {
    let sim = sim().await;
    let database = postgres_database();
    let data_dir = settings(DataDir::new()).with("DRIFTLINE_STORE__DATABASE_URL", &database);
    data_dir.account("Ann", "correct horse battery");
    data_dir.account("bob", "correct horse battery");
    let (server, _) = data_dir.serve(&[]);
    accounts_have_sources(&data_dir, &sim.url());
    // Each is read with its own token.
    for account in ["ann", "bob"] {
        let name = format!("{account}/mine");
        wait_for("the source is read", || {
            row(&data_dir, &name, account)["readable"] == true
        });
    }
    a_deletion_takes_the_source_along(&data_dir);
    drop(server);
}
