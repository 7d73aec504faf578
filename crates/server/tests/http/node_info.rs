//! What the server says of itself.

use driftline_api::people::SignUpMode;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    people::people_world,
    world::{World, parsed},
};

#[tokio::test(flavor = "multi_thread")]
async fn node_info_is_where_its_link_leads() {
    let world = World::new().await;
    let links = world.json("/.well-known/nodeinfo").await;
    assert_eq!(
        links["links"][0]["rel"],
        "http://nodeinfo.diaspora.software/ns/schema/2.1"
    );
    let href = links["links"][0]["href"].as_str().unwrap();
    let answer = world.answer(href.strip_prefix(&world.base).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert!(kind.contains("ns/schema/2.1#"), "{kind}");
    let info = parsed(answer).await;
    assert_eq!(info["version"], "2.1");
    assert_eq!(info["software"]["name"], "driftline");
    assert_eq!(info["services"], json!({ "inbound": [], "outbound": [] }));
    for required in ["protocols", "usage", "metadata", "openRegistrations"] {
        assert!(info.get(required).is_some(), "{required}: {info}");
    }
    let older = &links["links"][1];
    assert_eq!(
        older["rel"],
        "http://nodeinfo.diaspora.software/ns/schema/2.0"
    );
    let href = older["href"].as_str().unwrap();
    let older = world.json(href.strip_prefix(&world.base).unwrap()).await;
    assert_eq!(older["version"], "2.0");
    // The schema of 2.0 allows no other member of the software.
    let software = older["software"].as_object().unwrap();
    assert!(software.keys().eq(["name", "version"]), "{software:?}");
    world.close().await;
}

/// The members of an object are these, and maybe those.
fn has_members(of: &Value, required: &[&str], optional: &[&str]) {
    let members: Vec<&str> = of.as_object().unwrap().keys().map(|key| &**key).collect();
    for name in required {
        assert!(members.contains(name), "no {name} in {of}");
    }
    let all = [required, optional].concat();
    assert!(members.iter().all(|name| all.contains(name)), "{of}");
}

/// By what the schemas at `http://nodeinfo.diaspora.software/ns/schema/2.0` and `2.1` demand: they allow no members but
/// theirs, and at least one protocol of their list.
#[tokio::test(flavor = "multi_thread")]
async fn node_info_is_valid_by_both_schemas() {
    let listed = [
        "activitypub",
        "buddycloud",
        "dfrn",
        "diaspora",
        "libertree",
        "ostatus",
        "pumpio",
        "tent",
        "xmpp",
        "zot",
    ];
    let world = World::new().await;
    for (version, of_software) in [("2.0", &[][..]), ("2.1", &["repository", "homepage"])] {
        let info = world.json(&format!("/nodeinfo/{version}")).await;
        let all = [
            "version",
            "software",
            "protocols",
            "services",
            "openRegistrations",
            "usage",
            "metadata",
        ];
        has_members(&info, &all, &[]);
        assert_eq!(info["version"], version);
        let software = &info["software"];
        has_members(software, &["name", "version"], of_software);
        assert!(software.as_object().unwrap().values().all(Value::is_string));
        let name = software["name"].as_str().unwrap().bytes();
        assert!(name.into_iter().all(|byte| byte.is_ascii_lowercase()));
        let protocols = info["protocols"].as_array().unwrap();
        assert!(!protocols.is_empty());
        let is_listed = |protocol: &Value| listed.iter().any(|name| protocol == name);
        assert!(protocols.iter().all(is_listed), "{protocols:?}");
        has_members(&info["services"], &["inbound", "outbound"], &[]);
        assert!(info["openRegistrations"].is_boolean());
        has_members(&info["usage"], &["users"], &["localPosts", "localComments"]);
        let users = ["total", "activeHalfyear", "activeMonth"];
        has_members(&info["usage"]["users"], &[], &users);
        assert!(info["metadata"].is_object());
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn apps_are_told_who_may_sign_up() {
    for (mode, is_open, is_approved) in [
        (SignUpMode::Closed, false, false),
        (SignUpMode::Approval, true, true),
        (SignUpMode::Open, true, false),
    ] {
        let (world, _) = people_world(|app| app.people.sign_up.mode = mode).await;
        let v1 = world.json("/api/v1/instance").await;
        assert_eq!(v1["registrations"], is_open, "{mode:?}");
        assert_eq!(v1["approval_required"], is_approved, "{mode:?}");
        let v2 = world.json("/api/v2/instance").await;
        assert_eq!(v2["registrations"]["enabled"], is_open, "{mode:?}");
        assert_eq!(v2["registrations"]["approval_required"], is_approved);
        assert_eq!(v2["registrations"]["url"].is_string(), is_open);
        let info = world.json("/nodeinfo/2.1").await;
        assert_eq!(info["openRegistrations"], is_open, "{mode:?}");
        world.close().await;
    }
}
