//! Accounts read with clients that log in to them.

use std::process::Command;

use driftline_sim::WorldConfig;
use serde_json::{Value, json};

use crate::{
    Mirror,
    javascript::with_modules,
    logging_in::{MAIL, PASSPHRASE, run},
    python::python,
};

#[tokio::test(flavor = "multi_thread")]
async fn mastodon_py_reads_what_an_account_may() {
    let mirror = with_people().await;
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/clients/reading_client.py"
    );
    let read = mirror.printed(python().args([script, &mirror.url, PASSPHRASE]));
    check(&read);
}

#[tokio::test(flavor = "multi_thread")]
async fn masto_js_reads_what_an_account_may() {
    let mirror = with_people().await;
    let script = with_modules(&mirror, "reading_client.mjs");
    let mut command = Command::new("node");
    let read = mirror.printed(command.arg(script).args([&mirror.url, PASSPHRASE]));
    check(&read);
}

#[tokio::test(flavor = "multi_thread")]
async fn toot_reads_what_an_account_may() {
    let mirror = with_people().await;
    let toot = |arguments: &[&str]| {
        let (is_done, said) = run(&mirror.data_dir, &[&["-m", "toot"], arguments].concat());
        assert!(is_done, "{arguments:?}: {said}");
        said
    };
    let json = |arguments: &[&str]| -> Value {
        let said = toot(&[arguments, &["--json"]].concat());
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    let ids = |page: &Value| -> Vec<String> {
        let page = page.as_array().unwrap().iter();
        page.map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    };
    toot(&["login_cli", "-i", &mirror.url, "-e", MAIL, "-p", PASSPHRASE]);
    let page = json(&["timelines", "public", "--limit", "40"]);
    let max_id = page[0]["id"].as_str().unwrap();
    let author = page[1]["account"]["acct"].as_str().unwrap();
    assert_eq!(json(&["timelines", "home"]), json!([]));
    toot(&["follow", author]);
    let statuses = page.as_array().unwrap().iter();
    let of_author: Vec<&str> = statuses
        .skip(1)
        .filter(|status| status["account"]["acct"] == author)
        .map(|status| status["id"].as_str().unwrap())
        .collect();
    let home = json(&["timelines", "home", "--max-id", max_id, "--limit", "40"]);
    assert_eq!(ids(&home)[..of_author.len()], of_author);
    let own = json(&[
        "timelines",
        "account",
        author,
        "--max-id",
        max_id,
        "--limit",
        "40",
    ]);
    assert_eq!(ids(&own), ids(&home));
    let first = of_author[0];
    toot(&["bookmark", first]);
    toot(&["favourite", first]);
    assert!(toot(&["bookmarks", "--once"]).contains(first));
    assert_eq!(ids(&json(&["timelines", "favourites"])), [first]);
    assert!(toot(&["thread", first]).contains(first));
    let found = json(&["search", author]);
    assert_eq!(found["accounts"][0]["acct"], author);
    assert_eq!(json(&["whois", author])["acct"], author);
    assert!(toot(&["following"]).contains(author));
    toot(&["lists", "create", "few"]);
    toot(&["lists", "add", "few", author]);
    let listed = json(&[
        "timelines",
        "list",
        "few",
        "--max-id",
        max_id,
        "--limit",
        "40",
    ]);
    assert_eq!(ids(&listed), ids(&home));
    toot(&["mute", author]);
    assert_eq!(json(&["timelines", "home"]), json!([]));
    assert!(toot(&["muted"]).contains(author));
    toot(&["unmute", author]);
    assert_eq!(json(&["notifications"]), json!([]));
    toot(&["block", author]);
    assert!(toot(&["blocked"]).contains(author));
    toot(&["unblock", author]);
    assert_eq!(
        json(&["timelines", "home"]),
        json!([]),
        "a block ended the follow"
    );
    toot(&["unbookmark", first]);
    assert!(!toot(&["bookmarks", "--once"]).contains(first));
    toot(&[
        "logout",
        &format!("ann@{}", mirror.url.trim_start_matches("http://")),
    ]);
}

/// A mirror with two accounts, `ann` and `bob`.
async fn with_people() -> Mirror {
    let mirror = Mirror::of(WorldConfig {
        authors: 8,
        ..WorldConfig::punctual(20.0)
    })
    .await;
    for name in ["ann", "bob"] {
        mirror.data_dir.account(name, PASSPHRASE);
    }
    mirror
}

/// Checks what both libraries read alike.
fn check(read: &Value) {
    let author = &read["author"];
    let posts: Vec<[Value; 2]> = serde_json::from_value(read["down"].clone()).unwrap();
    assert!(posts.len() > 80, "three pages at least: {}", posts.len());
    let of_author: Vec<&Value> = posts
        .iter()
        .filter(|[_, by]| by == author)
        .map(|[id, _]| id)
        .collect();
    assert!(of_author.len() > 1, "{read}");
    for name in ["home", "of_author", "listed"] {
        assert_eq!(read[name], json!(of_author), "{name}");
    }
    let nothing = || json!([]);
    let expected = json!({
        "before": nothing(),
        "followed": true,
        "told": author,
        "found": [true, author, [author], [author], true],
        "following": [author],
        "relationship": true,
        "tagged": nothing(),
        "thread": [0, 0],
        "marker": true,
        "empty": vec![nothing(); 19],
        "tag": "nothing",
        "several": [true, [author]],
        "preferences": "public",
        "app": "reader",
        "bookmarks": [of_author[0]],
        "favourites": [of_author[1], of_author[0]],
        "favourited_by": ["ann"],
        "marked": [true, true],
        "unmarked": nothing(),
        "filters": ["words"],
        "keywords": [true],
        "filtered": ["words"],
        "lists": ["few"],
        "members": [author],
        "lists_of": ["few"],
        "notified": [["follow", "bob"]],
        "unread": 1,
        "grouped": [["follow", 1, "bob"], true, true, 1, "accept"],
        "followers": ["bob"],
        "requests": nothing(),
        "mutes": [author],
        "blocks": [author],
        "after": nothing(),
        "others": vec![nothing(); 4],
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&read[name], value, "{name}");
    }
}
