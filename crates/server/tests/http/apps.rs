//! What apps ask for beside timelines, in the forms that they ask in.

use std::slice;

use driftline_api::auth::Authorization;
use driftline_core::names::audience::Audience;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    world::{id, parsed, show, status},
};

#[tokio::test]
async fn notifications_come_in_groups_too() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let bob = Person::new(&world, "bob").await;
    let eve = Person::new(&world, "eve").await;
    for person in [&ann, &eve] {
        person
            .post(&format!("/api/v1/accounts/{}/follow", bob.id))
            .await;
    }
    let told = bob.page("/api/v1/notifications").await;
    let all = bob.get("/api/v2/notifications").await;
    let groups = all["notification_groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{all}");
    for (group, one) in groups.iter().zip(&told) {
        assert_eq!(group["group_key"], one["group_key"]);
        assert_eq!(group["most_recent_notification_id"], id(one));
        assert_eq!(group["page_min_id"], one["id"]);
        assert_eq!(group["page_max_id"], one["id"]);
        assert_eq!(group["latest_page_notification_at"], one["created_at"]);
        assert_eq!(group["sample_account_ids"], json!([one["account"]["id"]]));
    }
    let accounts = told.iter().map(|one| one["account"].clone());
    assert_eq!(all["accounts"], accounts.collect::<Value>());
    assert_eq!(all["statuses"], json!([]));
    // Pages of one lead through all.
    let first = bob.get("/api/v2/notifications?limit=1").await;
    let oldest = first["notification_groups"][0]["page_min_id"]
        .as_str()
        .unwrap();
    let path = format!("/api/v2/notifications?limit=1&max_id={oldest}");
    let second = bob.get(&path).await;
    assert_eq!(second["notification_groups"], json!([groups[1]]));
    let none = bob
        .get("/api/v2/notifications?exclude_types[]=follow")
        .await;
    assert_eq!(none["notification_groups"], json!([]));
    // One group alone is its receiver's alone.
    let key = groups[1]["group_key"].as_str().unwrap();
    let path = format!("/api/v2/notifications/{key}");
    let one = bob.get(&path).await;
    assert_eq!(one["notification_groups"], json!([groups[1]]));
    let of_group = bob.page(&format!("{path}/accounts")).await;
    assert_eq!(of_group, [told[1]["account"].clone()]);
    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::GET, format!("{path}/accounts")),
        (Method::POST, format!("{path}/dismiss")),
    ] {
        let (status, body) = eve.send(method, &path, &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {body}");
    }
    // What was read counts no longer.
    for version in ["v1", "v2"] {
        let path = format!("/api/{version}/notifications/unread_count");
        assert_eq!(bob.get(&path).await["count"], 2);
    }
    let read = format!(
        "/api/v1/markers?notifications[last_read_id]={}",
        id(&told[1])
    );
    bob.post(&read).await;
    for version in ["v1", "v2"] {
        let path = format!("/api/{version}/notifications/unread_count");
        assert_eq!(bob.get(&path).await["count"], 1);
    }
    bob.post(&format!("{path}/dismiss")).await;
    assert_eq!(bob.page("/api/v1/notifications").await, told[..1]);
    let policy = bob.get("/api/v2/notifications/policy").await;
    assert_eq!(policy["for_not_following"], "accept");
    world.close().await;
}

#[tokio::test]
async fn what_there_is_none_of_is_an_empty_list() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut public = world.feed("public").await;
    public.poll(&[status(1)]).await;
    let post = id(&world.page("/api/v1/timelines/public").await[0]);
    let of_post = format!("/api/v1/statuses/{post}/reblogged_by");
    for path in [
        "/api/v1/conversations",
        "/api/v1/scheduled_statuses",
        "/api/v1/suggestions",
        "/api/v2/suggestions",
        "/api/v1/endorsements",
        "/api/v1/featured_tags",
        "/api/v1/featured_tags/suggestions",
        "/api/v1/notifications/requests",
        "/api/v1/directory",
        "/api/v1/instance/activity",
        &of_post,
    ] {
        assert!(ann.page(path).await.is_empty(), "{path}");
    }
    // A post that a viewer may not see has no such list either.
    for path in ["/api/v1/statuses/77/reblogged_by", "/api/v1/tags/no%20tag"] {
        let (status, body) = ann.send(Method::GET, path, &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {body}");
    }
    let tag = ann.get("/api/v1/tags/caf%C3%A9").await;
    assert_eq!(tag["name"], "caf\u{e9}");
    assert_eq!(tag["following"], false);
    world.close().await;
}

#[tokio::test]
async fn several_are_asked_for_at_once() {
    let (world, _) = people_world(|app| app.authorization = Authorization::Closed).await;
    let ann = Person::new(&world, "ann").await;
    let mut public = world.feed("public").await;
    public.poll(&[1, 2, 3].map(status)).await;
    let page = world.page("/api/v1/timelines/public").await;
    let [newest, _, oldest] = &page[..] else {
        panic!("{page:?}")
    };
    let query = format!("id[]={}&id[]=77&id={}", id(oldest), id(newest));
    let path = format!("/api/v1/statuses?{query}");
    assert_eq!(world.page(&path).await, [oldest.clone(), newest.clone()]);
    let answer = world.answer(&path).await;
    assert_eq!(answer.headers().get("link"), None);
    assert!(world.page("/api/v1/statuses").await.is_empty());
    // Accounts of this server are known to its people alone.
    let author = &newest["account"];
    let path = format!("/api/v1/accounts?id[]={}&id[]={}", ann.id, id(author));
    assert_eq!(world.page(&path).await, slice::from_ref(author));
    let known = ann.page(&path).await;
    let accts: Vec<&Value> = known.iter().map(|account| &account["acct"]).collect();
    assert_eq!(accts, [&json!("ann"), &author["acct"]]);
    let many: String = (1..=201).map(|id| format!("id[]={id}&")).collect();
    for path in ["/api/v1/statuses", "/api/v1/accounts"] {
        let refused = world.answer(&format!("{path}?{many}")).await;
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{path}");
    }
    // A post that is hidden from its viewer is not there.
    show(&world, &public, Audience::Private).await;
    assert!(
        world
            .page(&format!("/api/v1/statuses?{query}"))
            .await
            .is_empty()
    );
    world.close().await;
}

#[tokio::test]
async fn forms_may_come_in_parts() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let send = async |method: Method, path: &str, kind: &str, body: String| {
        let request = world
            .client
            .request(method, format!("{}{path}", world.base));
        let request = request.bearer_auth(&ann.token).header("content-type", kind);
        let answer = request.body(body).send().await.unwrap();
        (answer.status(), parsed(answer).await)
    };
    let part = |disposition: &str, value: &str| {
        format!("--X\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{value}\r\n")
    };
    let (patch, own) = (Method::PATCH, "/api/v1/accounts/update_credentials");
    let kind = "multipart/form-data; boundary=X";
    // An empty file is what a browser sends for a field that was left alone.
    let body = [
        part("name=\"display_name\"", "Ann\u{3042}"),
        part("name=\"fields_attributes[0][name]\"", "Web"),
        part("name=\"fields_attributes[0][value]\"", "ann.example"),
        part("name=\"locked\"", "true"),
        part("name=\"avatar\"; filename=\"\"", ""),
        "--X--\r\n".to_owned(),
    ];
    let (status, changed) = send(patch.clone(), own, kind, body.concat()).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    assert_eq!(changed["display_name"], "Ann\u{3042}");
    assert_eq!(changed["locked"], true);
    assert_eq!(changed["source"]["fields"][0]["value"], "ann.example");
    // A picture is refused, with all that came with it.
    let picture = part("name=\"avatar\"; filename=\"me.png\"", "\u{89}PNG");
    let body = [
        part("name=\"display_name\"", "Other"),
        picture,
        "--X--\r\n".to_owned(),
    ];
    let (status, refused) = send(patch.clone(), own, kind, body.concat()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let why = refused["error"].as_str().unwrap();
    assert!(why.contains("pictures") && why.contains("avatar"), "{why}");
    let now = ann.get("/api/v1/accounts/verify_credentials").await;
    assert_eq!(now["display_name"], "Ann\u{3042}");
    // Lists, and a file where a text is expected.
    let title = part("name=\"title\"", "Friends") + "--X--\r\n";
    let (status, list) = send(Method::POST, "/api/v1/lists", kind, title).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    let title = part("name=\"title\"; filename=\"a.txt\"", "Friends") + "--X--\r\n";
    for (kind, body) in [
        (kind, title),
        (kind, "--X\r\nContent-Disposition".to_owned()),
        (kind, "no parts at all".to_owned()),
        ("multipart/form-data", "--X--\r\n".to_owned()),
        ("text/plain", "title=Friends".to_owned()),
    ] {
        let (status, refused) = send(Method::POST, "/api/v1/lists", kind, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{kind}: {refused}");
    }
    let large = part("name=\"note\"", &"a".repeat(70_000)) + "--X--\r\n";
    let (status, refused) = send(patch, own, kind, large).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{refused}");
    world.close().await;
}
