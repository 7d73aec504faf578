//! Feeds of saved timelines, for feed readers.

use driftline_core::{names::audience::Audience, social::AccountState};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{path_of, save};
use crate::{
    people::{OOB, Person, people_world},
    search::{read, written},
    world::{World, show},
};

async fn json_feed(world: &World, path: &str) -> Value {
    let answer = world.answer(path).await;
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "application/feed+json; charset=utf-8");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

#[tokio::test]
async fn a_saved_timeline_has_feeds_at_a_secret_address() {
    let (world, _) = people_world(|_| {}).await;
    let ann = Person::new(&world, "ann").await;
    let mut feed = world.feed("public").await;
    feed.poll_posts(vec![
        read(&written(1, "<p>地震 &lt;1&gt; \u{b}</p>")),
        read(&written(2, "<p>犬</p>")),
    ])
    .await;
    let mut hidden = world.new_feed("hidden").await;
    hidden
        .poll_posts(vec![read(&written(3, "<p>地震</p>"))])
        .await;
    show(&world, &hidden, Audience::Members).await;
    let list = save(&ann, "地震").await;
    let route = path_of(&list, "/api/driftline/v1/lists/ID/feed");
    let addresses = ann.post(&route).await;
    let path = |addresses: &Value, form: &str| {
        let address = addresses[form].as_str().unwrap();
        address.strip_prefix(&world.base).unwrap().to_owned()
    };
    let answer = world.answer(&path(&addresses, "atom")).await;
    let etag = answer.headers()["etag"].to_str().unwrap().to_owned();
    assert!(
        answer.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("application/atom+xml")
    );
    let atom = answer.text().await.unwrap();
    assert!(
        atom.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns="),
        "{atom}"
    );
    assert_eq!(atom.matches("<entry>").count(), 1, "{atom}");
    assert!(atom.contains("<id>https://sim.example/1</id>"), "{atom}");
    assert!(atom.contains("<title>地震 &lt;1&gt;</title>"), "{atom}");
    assert!(
        atom.contains("&lt;p&gt;地震 &amp;lt;1&amp;gt; &lt;/p&gt;"),
        "{atom}"
    );
    let again = world
        .client
        .get(format!("{}{}", world.base, path(&addresses, "atom")));
    let again = again
        .header("if-none-match", format!("\"x\", W/{etag}"))
        .send()
        .await
        .unwrap();
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    let json = json_feed(&world, &path(&addresses, "json")).await;
    assert_eq!(json["version"], "https://jsonfeed.org/version/1.1");
    assert_eq!(json["items"].as_array().unwrap().len(), 1);
    assert_eq!(json["items"][0]["tags"], json!(["Quake"]));

    // A new address ends the old one. With `all`, it has what the owner may read.
    let all = ann.post_json(&route, &json!({ "all": true })).await;
    let old = world.answer(&path(&addresses, "json")).await;
    assert_eq!(old.status(), StatusCode::NOT_FOUND);
    let json = json_feed(&world, &path(&all, "json")).await;
    let ids: Vec<&str> = json["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect();
    // The first page of a source is history, and stands below.
    assert_eq!(ids, ["https://sim.example/1", "https://sim.example/3"]);

    assert_eq!(
        ann.get(&path_of(&list, "/api/v1/lists/ID")).await["feed"],
        "owner"
    );
    let app = world.app("Writer", OOB, "write").await;
    let writer = world.token(&app, "ann", "write").await;
    for (body, status) in [("", StatusCode::OK), ("all=true", StatusCode::FORBIDDEN)] {
        let request = world
            .client
            .post(format!("{}{route}", world.base))
            .bearer_auth(&writer);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(
            request.body(body).send().await.unwrap().status(),
            status,
            "{body}"
        );
    }
    let all = ann.post_json(&route, &json!({ "all": true })).await;

    // It ends while the account is frozen, with another predicate, and when it is closed.
    for (state, status) in [
        (AccountState::Frozen, StatusCode::NOT_FOUND),
        (AccountState::Active, StatusCode::OK),
    ] {
        world.set_state(ann.id, state).await;
        assert_eq!(world.answer(&path(&all, "json")).await.status(), status);
    }
    let change = json!({ "predicate": "犬" });
    ann.ok(Method::PUT, &path_of(&list, "/api/v1/lists/ID"), &change)
        .await;
    let ended = world.answer(&path(&all, "json")).await;
    assert_eq!(ended.status(), StatusCode::NOT_FOUND);
    let all = ann.post(&route).await;
    assert_eq!(
        world.answer(&path(&all, "json")).await.status(),
        StatusCode::OK
    );
    ann.ok(Method::DELETE, &route, &Value::Null).await;
    assert_eq!(
        world.answer(&path(&all, "atom")).await.status(),
        StatusCode::NOT_FOUND
    );
    let plain = ann
        .post_json("/api/v1/lists", &json!({ "title": "L" }))
        .await;
    let (status, _) = ann
        .send(
            Method::POST,
            &path_of(&plain, "/api/driftline/v1/lists/ID/feed"),
            &Value::Null,
        )
        .await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
}
