//! Producers that name posts.

use driftline_core::names::audience::Audience;
use driftline_server::testing::OPERATOR_TOKEN;
use driftline_store::{LocalAccountId, Owner, local_ids, source, testing::new_source};
use reqwest::{StatusCode, header};
use serde_json::{Value, json};

use crate::world::{World, client, parsed, status};

async fn post(world: &World, body: &Value) -> reqwest::Response {
    let request = world
        .client
        .post(format!("{}/api/v1/track", world.base))
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_string());
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_are_noted_and_named_again_without_harm() {
    let world = World::new().await;
    let mut feed = world.feed("home").await;
    feed.poll(&[status(5)]).await;
    let body = json!({
        "instance": "https://sim.example",
        "ids": ["5", "6", "7", "7", "a b", ""],
    });
    let answer = post(&world, &body).await;
    assert_eq!(answer.status(), StatusCode::ACCEPTED);
    let result = parsed(answer).await;
    assert_eq!(result["new"], 2, "{result}");
    assert_eq!(result["stored"], 1, "{result}");
    assert_eq!(result["repeated"], 1, "{result}");
    assert_eq!(result["bad"], json!(["a b", ""]), "{result}");
    let again = parsed(post(&world, &body).await).await;
    assert_eq!(again["new"], 0, "{again}");
    assert_eq!(again["waiting_or_missing"], 2, "{again}");
    let stands = world.json("/api/v1/track?instance=sim.example").await;
    assert_eq!(stands["waiting"], 2, "{stands}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_gets_a_number() {
    let world = World::new().await;
    let mut feed = world.feed("sim.example-tracked").await;
    feed.poll(&[status(5)]).await;
    let body = json!({ "instance": "https://sim.example", "ids": ["5"] });
    for _ in 0..2 {
        let result = parsed(post(&world, &body).await).await;
        assert_eq!(result["source"], "sim.example-tracked-2", "{result}");
    }
    let lists = world.page("/api/v1/lists").await;
    assert_eq!(lists.len(), 2, "{lists:?}");
    assert_eq!(lists[1]["title"], "sim.example-tracked-2", "{lists:?}");
    let list = format!(
        "/api/v1/timelines/list/{}",
        lists[1]["id"].as_str().unwrap()
    );
    let named = world.page(&list).await;
    assert_eq!(named.len(), 1, "the stored post is listed: {named:?}");
    assert_eq!(world.page(&feed.path()).await.len(), 1);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stood_in_the_request_before_is_repeated_however_long_it_is() {
    let world = World::new().await;
    let once = (1..=3_000).map(|id| id.to_string());
    let again = (1..=500).map(|id| format!(" {id}"));
    let ids: Vec<String> = once.chain(again).collect();
    let body = json!({ "instance": "https://sim.example", "ids": ids });
    let result = parsed(post(&world, &body).await).await;
    assert_eq!(result["named"], 3_500, "{result}");
    assert_eq!(result["new"], 3_000, "{result}");
    assert_eq!(result["repeated"], 500, "{result}");
    assert_eq!(result["waiting_or_missing"], 0, "{result}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_fits_is_refused_whole() {
    let world = World::new().await;
    let many: Vec<String> = (1..=100_001).map(|id| id.to_string()).collect();
    let body = json!({ "instance": "https://sim.example", "ids": many });
    let answer = post(&world, &body).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let error = parsed(answer).await["error"].as_str().unwrap().to_owned();
    assert!(error.contains("100000"), "{error}");
    let long = vec!["9".repeat(17 * 1024 * 1024)];
    // What is too large is not read to its end, so the client may not read the answer, and its
    // connection ends: no other request may use it.
    let request = client()
        .post(format!("{}/api/v1/track", world.base))
        .bearer_auth(OPERATOR_TOKEN)
        .header(header::CONTENT_TYPE, "application/json")
        .body(json!({ "instance": "https://sim.example", "ids": long }).to_string());
    if let Ok(answer) = request.send().await {
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
    let stands = world.answer("/api/v1/track?instance=sim.example").await;
    assert_eq!(
        stands.status(),
        StatusCode::BAD_REQUEST,
        "nothing is tracked"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_told_what_is_wrong() {
    let world = World::new().await;
    for (body, said) in [
        (json!({ "ids": ["1"] }), "instance"),
        (json!({ "instance": "https://sim.example" }), "ids"),
        (
            json!({ "instance": "not an address", "ids": ["1"] }),
            "server's address",
        ),
        (
            json!({ "instance": "https://sim.example", "ids": ["1"], "kind": "x" }),
            "unknown field `kind`",
        ),
        (
            json!({ "instance": "foo.example", "ids": ["1"] }),
            "https://foo.example",
        ),
    ] {
        let answer = post(&world, &body).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{body}");
        let error = parsed(answer).await["error"].as_str().unwrap().to_owned();
        assert!(error.contains(said), "{error}");
    }
    let address = format!("{}/api/v1/track", world.base);
    for query in ["", "?instance="] {
        let answer = world.client.get(format!("{address}{query}")).send().await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
        let error = parsed(answer).await["error"].as_str().unwrap().to_owned();
        assert!(error.contains("instance="), "{error}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_names_a_server_that_only_private_sources_of_accounts_read() {
    let world = World::new().await;
    world.feed("own").await;
    let mut new = new_source(&format!("account{}/home", 1_u64 << 50));
    new.origin = "https://hidden.example".to_owned();
    new.owner = Owner::Account(LocalAccountId::new(1 << 50));
    new.audience = Audience::Private;
    let add = world
        .store
        .write(local_ids::root(), move |tx| source::add(tx, &new, 1));
    add.await.unwrap().unwrap();
    for host in ["nowhere.example", "hidden.example"] {
        let answer = post(&world, &json!({ "instance": host, "ids": ["1"] })).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{host}");
        let error = parsed(answer).await["error"].as_str().unwrap().to_owned();
        assert!(error.contains("(known are https://sim.example)"), "{error}");
    }
    world.close().await;
}
