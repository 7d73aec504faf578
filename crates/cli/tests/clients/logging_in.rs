//! Clients log in to an account of the server.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::{
    python::python,
    support::{DataDir, Running},
};

/// Of every account here.
pub const PASSPHRASE: &str = "correct horse battery";
/// The address of `ann`.
pub const MAIL: &str = "ann@mail.example";

/// A server without sources, and the ID of its account `ann`.
fn server() -> (DataDir, Running, String, String) {
    let data_dir = DataDir::new();
    let created = data_dir.account("ann", PASSPHRASE);
    let id = created["id"].as_str().unwrap().to_owned();
    let (server, url) = data_dir.serve(&[]);
    (data_dir, server, url, id)
}

/// Whether a script of the interpreter succeeds, and what it says.
pub fn run(data_dir: &DataDir, arguments: &[&str]) -> (bool, String) {
    let output = python()
        .args(arguments)
        .env("XDG_CONFIG_HOME", data_dir.folder())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
    (output.status.success(), said.concat())
}

#[test]
fn mastodon_py_logs_in_by_the_pages_and_by_a_passphrase() {
    let (data_dir, _server, url, id) = server();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/clients/log_in_client.py"
    );
    let (is_done, said) = run(&data_dir, &[script, &url, "ann", MAIL, PASSPHRASE]);
    assert!(is_done, "{said}");
    let read: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let expected = json!({
        "me": ["ann", id, "public"],
        "again": "ann",
        "app": "Mastodon.py",
        "public": 0,
        "lists": [],
        "wrong": "MastodonIllegalArgumentError",
        "code_again": "MastodonIllegalArgumentError",
        "revoked_by_replay": "MastodonUnauthorizedError",
        "revoked": "MastodonUnauthorizedError",
    });
    assert_eq!(read, expected);
}

#[test]
fn toot_logs_in_and_stops_when_its_account_is_frozen() {
    let (data_dir, _server, url, _) = server();
    let toot = |arguments: &[&str]| {
        let all = [&["-m", "toot"], arguments].concat();
        run(&data_dir, &all)
    };
    let wrong = toot(&[
        "login_cli",
        "-i",
        &url,
        "-e",
        MAIL,
        "-p",
        "wrong passphrase",
    ]);
    assert!(!wrong.0 && wrong.1.contains("Login failed"), "{}", wrong.1);
    let (is_done, said) = toot(&["login_cli", "-i", &url, "-e", MAIL, "-p", PASSPHRASE]);
    assert!(is_done && said.contains("Successfully logged in"), "{said}");
    let (_, said) = toot(&["auth"]);
    assert!(said.contains("ann@") && said.contains("ACTIVE"), "{said}");
    let (is_done, said) = toot(&["whoami"]);
    assert!(is_done && said.contains("@ann"), "{said}");
    let (is_done, said) = toot(&["timelines", "public", "--json"]);
    assert!(is_done && said.trim() == "[]", "{said}");
    let rows = data_dir.json(&["account", "tokens", "ann"]);
    assert_eq!(
        (&rows[0]["kind"], &rows[0]["name"]),
        (&json!("app"), &json!("toot - a Mastodon CLI client"))
    );
    data_dir.json(&["account", "freeze", "ann"]);
    let (is_done, said) = toot(&["whoami"]);
    assert!(!is_done, "{said}");
    assert_eq!(data_dir.json(&["account", "tokens", "ann"]), json!([]));
}
