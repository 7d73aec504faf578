//! Mastodon.py.

use std::process::Command;

use serde_json::json;

use crate::Mirror;

/// The interpreter that has the clients.
pub fn python() -> Command {
    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(python);
    command.arg("-B");
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn mastodon_py_reads_all_that_there_is() {
    let mirror = Mirror::start().await;
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/clients/mastodon_client.py"
    );
    let read = mirror.script(python().arg(script));
    mirror.check(&read);
    let of_streams = json!({
        "public": true, "remote": true, "list": true, "local": false, "media": false,
    });
    assert_eq!(read["heard"], of_streams);
    assert!(
        read["first"].is_string(),
        "what is told can be read: {read}"
    );
    assert_eq!(
        read["over_a_web_socket"],
        json!({ "public": true, "list": true })
    );
    assert_eq!(read["healthy"], true);
    let down = read["down"].as_array().unwrap();
    assert_eq!(read["remaining"].as_array().unwrap(), &down[1..]);
    assert_eq!(read["named"], read["remote"]);
    assert_eq!(read["list_media"], json!([]));
    assert_eq!(read["version"], "4.3.0");
    assert_eq!(read["can"], true);
    assert_eq!(read["available"], true);
    assert_eq!(read["refused"], "MastodonUnauthorizedError");
}
