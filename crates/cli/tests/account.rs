//! `account`: the people of this server, with and without a running server.
#![allow(clippy::unwrap_used)]

mod support;

use std::{io::Write as _, process::Stdio};

use serde_json::{Value, json};
use support::{DataDir, Ended};

const PASSPHRASE: &str = "correct horse battery";

/// Runs it with that text on standard input.
fn with_input(data_dir: &DataDir, arguments: &[&str], input: &str) -> Ended {
    let mut child = data_dir
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end before it has read all.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Ended {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn create(data_dir: &DataDir, name: &str) -> Ended {
    let mail = format!("{name}@mail.example");
    let arguments = ["account", "create", name, "--mail", &mail];
    with_input(data_dir, &arguments, &format!("{PASSPHRASE}\n"))
}

fn refused(ended: &Ended, status: i32, said: &str) {
    assert_eq!(ended.status, status, "{ended:?}");
    assert!(ended.stderr.contains(said), "no {said:?} in {ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains("horse"), "{ended:?}");
}

fn state(data_dir: &DataDir, name: &str) -> Value {
    data_dir.json(&["account", "show", name])["state"].clone()
}

/// What the operator does from the first account to the last.
fn accounts_come_and_go(data_dir: &DataDir) {
    let created = create(data_dir, "Ann");
    assert_eq!(created.status, 0, "{created:?}");
    assert_eq!(created.stdout, "Ann can log in, as Ann@mail.example\n");
    let file = data_dir.file("passphrase", &format!("{PASSPHRASE}\n"));
    let bob = [
        "account",
        "create",
        "bob",
        "--mail",
        "bob@mail.example",
        "--role",
        "admin",
        "--passphrase-file",
        &file,
    ];
    let created = data_dir.json(&bob);
    assert_eq!(created["state"], "active");
    assert_eq!(created["role"], "admin");
    assert!(created["mail_verified_at_ms"].is_i64());
    assert!(!created.to_string().contains("horse") && created.get("passphrase").is_none());
    assert!(created["id"].as_str().unwrap().parse::<u64>().unwrap() > 1 << 32);

    refused(&create(data_dir, "ANN"), 2, "another account has that name");
    let taken = ["account", "create", "carl", "--mail", "ANN@mail.example"];
    refused(
        &with_input(data_dir, &taken, PASSPHRASE),
        2,
        "that mail address",
    );
    let list = data_dir.json(&["account", "list"]);
    let names = list
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["Ann", "bob"]);
    let table = data_dir.run(&["account", "list"]).stdout;
    for shown in [
        "NAME",
        "LAST LOG-IN",
        "Ann@mail.example",
        "active",
        "admin",
        "never",
    ] {
        assert!(table.contains(shown), "no {shown} in {table}");
    }
    let shown = data_dir.run(&["account", "show", "ann"]).stdout;
    for said in ["Ann\n", "active, member", "follows 0", "last log-in never"] {
        assert!(shown.contains(said), "no {said} in {shown}");
    }

    for (command, expected, already) in [
        ("freeze", "frozen", false),
        ("freeze", "frozen", true),
        ("silence", "silenced", false),
        ("activate", "active", false),
        ("approve", "active", true),
        ("silence", "silenced", false),
        ("freeze", "frozen", false),
        ("activate", "active", false),
    ] {
        let changed = data_dir.json(&["account", command, "ann"]);
        assert_eq!(changed["state"], expected, "{command}");
        assert_eq!(changed["changed"], !already, "{command}");
        assert_eq!(state(data_dir, "Ann"), expected);
    }
    let again = data_dir.run(&["account", "activate", "ann"]);
    assert_eq!(again.stdout, "Ann is active already\n");
    let approved = data_dir.run(&["account", "approve", "ann"]);
    assert_eq!(
        approved.stdout,
        "Ann does not wait for approval: it is active\n"
    );

    let reset = ["account", "reset-passphrase", "ann"];
    let changed = with_input(data_dir, &reset, "another good one");
    assert_eq!(
        changed.stdout, "Ann has another passphrase\n",
        "{changed:?}"
    );
    refused(
        &with_input(data_dir, &reset, "a   \t   b"),
        2,
        "shorter than 8",
    );

    let delete = ["account", "delete", "ann"];
    let unasked = data_dir.run(&delete);
    refused(
        &unasked,
        2,
        "0 relations and 0 mutes; nobody can be asked here: add --yes",
    );
    assert_eq!(state(data_dir, "ann"), "active");
    let deleted = data_dir.json(&[&delete[..], &["--yes"]].concat());
    assert_eq!(
        deleted,
        json!({ "name": "ann", "relations": 0, "mutes": 0 })
    );
    for command in ["show", "freeze", "activate", "approve", "delete"] {
        let gone = data_dir.run(&["account", command, "ann"]);
        refused(&gone, 2, "there is no account named ann");
    }
    assert_eq!(create(data_dir, "ann").status, 0, "the name is free again");
}

#[test]
fn accounts_come_and_go_without_a_server() {
    let data_dir = DataDir::new();
    let none = data_dir.run(&["account", "list"]);
    refused(&none, 10, "there is no store");
    accounts_come_and_go(&data_dir);
}

#[test]
fn accounts_come_and_go_beside_a_server() {
    let data_dir = DataDir::new();
    let (_server, _) = data_dir.serve(&[]);
    let empty = data_dir.run(&["account", "list"]).stdout;
    assert!(empty.contains("no accounts yet"), "{empty}");
    accounts_come_and_go(&data_dir);
    assert!(!data_dir.log().contains("horse"));
}

#[test]
fn accounts_come_and_go_on_postgresql() {
    let url = driftline_store::testing::postgres_database();
    let data_dir = DataDir::new().with("DRIFTLINE_STORE__DATABASE_URL", &url);
    accounts_come_and_go(&data_dir);
}

#[test]
fn what_cannot_be_an_account_makes_no_store() {
    let data_dir = DataDir::new();
    for (name, mail, said) in [
        ("a b", "ann@mail.example", "1 to 64"),
        ("アン", "ann@mail.example", "1 to 64"),
        ("ann", "ann", "mail address"),
    ] {
        let ended = with_input(
            &data_dir,
            &["account", "create", name, "--mail", mail],
            PASSPHRASE,
        );
        assert_eq!(ended.status, 2, "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
    }
    let ann = ["account", "create", "ann", "--mail", "ann@mail.example"];
    refused(
        &with_input(&data_dir, &ann, "1234567\n"),
        2,
        "shorter than 8",
    );
    refused(&with_input(&data_dir, &ann, ""), 2, "shorter than 8");
    let missing = data_dir.folder().join("nowhere").display().to_string();
    let from_file = [&ann[..], &["--passphrase-file", &missing]].concat();
    refused(&data_dir.run(&from_file), 2, "nowhere");
    // No option takes one: a list of processes would show it.
    let typed = [&ann[..], &["--passphrase", PASSPHRASE]].concat();
    assert_eq!(data_dir.run(&typed).status, 2);
    assert!(!data_dir.data().exists());
}
