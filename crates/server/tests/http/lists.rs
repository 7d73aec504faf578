//! Sources as lists, and the server about itself.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::world::{World, status};

#[tokio::test]
async fn sources_are_lists() {
    let world = World::new().await;
    let feed = world.feed("home").await;
    let list = json!({
        "id": feed.source.id.to_string(),
        "title": "home",
        "replies_policy": "list",
        "exclusive": false,
    });
    assert_eq!(world.json("/api/v1/lists").await, json!([list]));
    let path = format!("/api/v1/lists/{}", feed.source.id);
    assert_eq!(world.json(&path).await, list);
}

#[tokio::test]
async fn a_source_is_a_list_from_its_first_page_on() {
    let world = World::new().await;
    let mut feed = world.new_feed("home").await;
    let paths = [feed.path(), format!("/api/v1/lists/{}", feed.source.id)];
    for path in &paths {
        assert_eq!(world.answer(path).await.status(), StatusCode::NOT_FOUND);
    }
    assert_eq!(world.json("/api/v1/lists").await, json!([]));
    // Its history is still to be read: what is there is shown.
    feed.poll(&[status(1), status(2)]).await;
    for path in &paths {
        assert_eq!(world.answer(path).await.status(), StatusCode::OK);
    }
    assert_eq!(world.page(&feed.path()).await.len(), 2);
    assert_eq!(world.page("/api/v1/timelines/public").await.len(), 2);
}

#[tokio::test]
async fn the_server_introduces_itself() {
    let world = World::new().await;
    let host = world.base.strip_prefix("http://").unwrap();
    let v1 = world.json("/api/v1/instance").await;
    let keys = "uri title short_description description email version urls stats thumbnail \
                languages registrations approval_required invites_enabled configuration \
                contact_account rules";
    check_keys(&v1, keys);
    assert_eq!(v1["uri"], host);
    let v2 = world.json("/api/v2/instance").await;
    let keys = "domain title version source_url description usage thumbnail icon languages \
                configuration registrations api_versions contact rules";
    check_keys(&v2, keys);
    assert_eq!(v2["domain"], host);
    let keys = "urls vapid accounts statuses media_attachments polls translation";
    check_keys(&v2["configuration"], keys);
    for instance in [v1, v2] {
        let version = instance["version"].as_str().unwrap();
        let expected = concat!(
            "4.3.0 (compatible; Driftline ",
            env!("CARGO_PKG_VERSION"),
            ")"
        );
        assert_eq!(version, expected);
    }
}

fn check_keys(object: &Value, keys: &str) {
    for key in keys.split_ascii_whitespace() {
        assert!(object.get(key).is_some(), "{key}");
    }
}
