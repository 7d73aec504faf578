//! What the server says of itself.

use driftline_api::people::SignUpMode;
use reqwest::StatusCode;
use serde_json::json;

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
