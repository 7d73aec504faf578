//! Accounts of this server that other servers show.

use driftline_core::{api::Api, post::Visibility};
use driftline_mastodon::{AccountForm, Copier, RawObject, StatusHead, Template};
use serde_json::{Value, json, value::to_raw_value};

/// A post as another server shows it, on a server with accounts at own.example.
fn shown(status: &Value, origin: &str) -> (Value, Vec<String>) {
    let json = status.to_string();
    let status = RawObject::parse(&json).expect("an object");
    let head = StatusHead {
        id: 1,
        public_id: 1,
        account: Some(9),
        created_at_ms: 0,
        edited_at_ms: None,
        visibility: Visibility::Public,
        upstream_id: "1",
        uri: None,
        url: None,
    };
    let copier = Copier {
        origin,
        api: Api::Mastodon,
        own_host: Some("own.example"),
    };
    let (mut template, mut out) = (Template::default(), Vec::new());
    copier.status(&mut template, &status, &head);
    let names = template.own_accounts().map(str::to_owned).collect();
    let [whole, mention] = ["own", "own mention"].map(|of| to_raw_value(of).expect("JSON"));
    let own = |form, _: &str| match form {
        AccountForm::Whole => Some(&*whole),
        AccountForm::Mention => Some(&*mention),
    };
    template.fill(&mut out, |_, _| Some(7), |_| None, own);
    (serde_json::from_slice(&out).expect("JSON"), names)
}

fn lie(acct: &str) -> Value {
    json!({ "id": "5", "username": "ann", "acct": acct, "display_name": "LIE", "note": "LIE",
        "avatar": "https://b.example/LIE.png", "url": "https://b.example/LIE", "statuses_count": 9 })
}

#[test]
fn nothing_that_other_servers_say_of_own_accounts_is_shown() {
    let boosted = json!({ "id": "2", "visibility": "public", "account": lie("Ann@Own.Example") });
    let quoted = json!({ "id": "3", "visibility": "public", "account": lie("@ann@own.example") });
    let mut other = lie("eve");
    other["display_name"] = json!("Eve");
    other["note"] = json!("");
    other["moved"] = lie("ann@own.example");
    let status = json!({ "id": "1", "account": lie("ann@own.example"), "reblog": boosted,
        "quote": { "state": "accepted", "quoted_status": quoted }, "mentions": [lie("ann@own.example")],
        "reactions": [{ "name": "x", "accounts": [lie("ann@own.example"), other] }] });
    let (shown, names) = shown(&status, "https://b.example");
    assert_eq!(shown["account"], "own");
    assert_eq!(shown["reblog"]["account"], "own");
    assert_eq!(shown["quote"]["quoted_status"]["account"], "own");
    assert_eq!(shown["mentions"], json!(["own mention"]));
    assert_eq!(shown["reactions"][0]["accounts"][0], "own");
    assert_eq!(shown["reactions"][0]["accounts"][1]["moved"], "own");
    let text = shown.to_string().replace("https://b.example/LIE", "");
    assert!(!text.contains("LIE"), "{text}");
    assert_eq!(names.len(), 6);
    assert!(
        names.iter().all(|name| name.eq_ignore_ascii_case("ann")),
        "{names:?}"
    );
}

#[test]
fn accounts_of_other_hosts_are_copied() {
    for (acct, origin) in [
        ("ann", "https://b.example"),
        ("ann@own.example.org", "https://b.example"),
        ("ann@b.example", "https://own.example"),
    ] {
        let (shown, names) = shown(&json!({ "id": "1", "account": lie(acct) }), origin);
        assert_eq!(shown["account"]["display_name"], "LIE", "{acct}");
        assert!(names.is_empty());
    }
    // A server that reads itself.
    let (shown, names) = shown(
        &json!({ "id": "1", "account": lie("ann") }),
        "https://own.example",
    );
    assert_eq!((&shown["account"], names.len()), (&json!("own"), 1));
}
