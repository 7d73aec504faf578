//! Processes on one PostgreSQL have the same keys, or do not start.
#![allow(clippy::unwrap_used)]

mod support;

use std::fs::{self, File};

use driftline_net::{Http, Options};
use serde_json::{Value, json};
use support::{DataDir, Ended};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_another_key_does_not_start_and_with_the_same_knows_all_tokens() {
    let url = driftline_store::testing::postgres_database();
    let [one, other] = [(); 2].map(|()| {
        let own = DataDir::new();
        let key = own.data().join("credentials.key").display().to_string();
        own.with("DRIFTLINE_STORE__DATABASE_URL", &url)
            .with("DRIFTLINE_STORE__CREDENTIALS_KEY", &key)
    });
    let (_first, base) = one.serve(&[]);
    one.account("ann", "correct horse");
    // This chooses the process's TLS provider, which every client needs.
    Http::new(Options::default()).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let log_in = json!({ "who": "ann", "passphrase": "correct horse" });
    let answer = client
        .post(format!("{base}/api/driftline/v1/log-in"))
        .header("content-type", "application/json")
        .body(log_in.to_string());
    let answer = answer.send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let token = answer["token"].as_str().unwrap().to_owned();

    let refused = other.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.status, 1, "{refused:?}");
    let (own, theirs) = (
        other.data().join("credentials.key"),
        one.data().join("credentials.key"),
    );
    let missing = format!("{} is missing", own.display());
    assert!(refused.stderr.contains(&missing), "{refused:?}");
    assert!(!own.exists());
    let another = theirs.with_file_name("another.key");
    driftline_mirror::SealingKey::new(&another).make().unwrap();
    fs::copy(&another, &own).unwrap();
    let sealed = other.file("token", "s3cret-token");
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["credential", "add", "https://a.example", "--stdin"],
    ] {
        let mut command = other.command(arguments);
        let ended = command
            .stdin(File::open(&sealed).unwrap())
            .output()
            .unwrap();
        let refused = Ended::of(ended);
        assert_ne!(refused.status, 0, "{refused:?}");
        let says = format!("the key in {} is not the one", own.display());
        assert!(refused.stderr.contains(&says), "{refused:?}");
        let secret = fs::read_to_string(&own).unwrap();
        assert!(!refused.stderr.contains(secret.trim()));
    }

    fs::copy(&theirs, &own).unwrap();
    let (mut second, second_base) = other.serve(&[]);
    let verify = format!("{second_base}/api/v1/accounts/verify_credentials");
    let answer = client
        .get(&verify)
        .bearer_auth(&token)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200, "{answer:?}");
    second.signal("TERM");
    second.ended();

    // A key that is lost on all.
    fs::remove_file(&own).unwrap();
    let forgotten = other.json(&["credential", "forget-key"]);
    assert_eq!(forgotten, json!({ "was_known": true }));
    let (_second, _) = other.serve(&[]);
    assert_ne!(fs::read(&own).unwrap(), fs::read(&theirs).unwrap());
}
