//! Filters, and what posts say of them.

use driftline_sim::Status;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{Person, pass, people_world},
    test_clock,
    world::{id, status},
};

const PUBLIC: &str = "/api/v1/timelines/public";

fn matched(status: &Value) -> Vec<(&str, &Value)> {
    let filtered = status["filtered"].as_array().unwrap();
    let all = filtered.iter();
    all.map(|of| {
        (
            of["filter"]["title"].as_str().unwrap(),
            &of["keyword_matches"],
        )
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_say_on_the_way_out_what_they_match() {
    let (clock, now_ms) = test_clock!();
    let (world, _) = people_world(|app| app.people.use_clock(clock)).await;
    let mut feed = world.feed("feed").await;
    let with = |id, text: &str| Status {
        content: format!("<p>{text}</p>"),
        ..status(id)
    };
    let boost = Status {
        boost_of: Some(Box::new(with(1, "a Cat &amp; a dog"))),
        ..status(5)
    };
    let texts = [
        with(1, "a Cat &amp; a dog"),
        with(2, "concat<br>ネコ"),
        with(3, "子猫が"),
        with(4, "none"),
    ];
    feed.poll(&[&texts[..], &[boost]].concat()).await;
    let (ann, ben) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    );
    let path = "/api/v2/filters";
    for bad in [
        json!({ "title": "x" }),
        json!({ "title": "x", "context": ["nowhere"] }),
        json!({ "title": "", "context": ["home"] }),
        json!({ "title": "x", "context": ["home"], "filter_action": "burn" }),
    ] {
        let (status, _) = ann.send(Method::POST, path, &bad).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
    let pets = json!({
        "title": "pets", "context": ["home", "public"], "filter_action": "hide", "expires_in": 3600,
        "keywords_attributes": [{ "keyword": "cat" }, { "keyword": "猫" }],
    });
    let pets = ann.post_json(path, &pets).await;
    let filter = format!("{path}/{}", pets["id"].as_str().unwrap());
    assert_eq!(pets["context"], json!(["home", "public"]));
    assert_eq!(
        (&pets["filter_action"], &pets["statuses"]),
        (&json!("hide"), &json!([]))
    );
    assert!(pets["expires_at"].is_string());
    assert_eq!(pets["keywords"][0]["whole_word"], true);
    assert_eq!(ann.get(&filter).await, pets);
    assert_eq!(ann.get(path).await, json!([pets]));

    let page = ann.page(PUBLIC).await;
    let [boost, none, kitten, concat, cat] = &page[..] else {
        panic!("a page of five")
    };
    for status in [boost, &boost["reblog"], cat] {
        assert_eq!(matched(status), [("pets", &json!(["cat"]))]);
    }
    assert!(cat["filtered"][0]["filter"].get("keywords").is_none());
    assert_eq!(cat["filtered"][0]["status_matches"], Value::Null);
    assert_eq!(matched(kitten), [("pets", &json!(["猫"]))]);
    assert!(matched(none).is_empty() && matched(concat).is_empty());
    assert!(
        ben.page(PUBLIC)
            .await
            .iter()
            .all(|one| one["filtered"] == json!([]))
    );
    assert!(world.page(PUBLIC).await[0].get("filtered").is_none());

    // A part of a word, and a post by name.
    let keyword = pets["keywords"][0]["id"].as_str().unwrap();
    let keyword_path = format!("{path}/keywords/{keyword}");
    let changed = ann
        .ok(Method::PUT, &keyword_path, &json!({ "whole_word": false }))
        .await;
    assert_eq!(
        changed,
        json!({ "id": keyword, "keyword": "cat", "whole_word": false })
    );
    let added = ann
        .post_json(&format!("{filter}/keywords"), &json!({ "keyword": "dog" }))
        .await;
    assert_eq!(
        (&added["keyword"], &added["whole_word"]),
        (&json!("dog"), &json!(true))
    );
    let named = ann
        .post_json(
            &format!("{filter}/statuses"),
            &json!({ "status_id": none["id"] }),
        )
        .await;
    assert_eq!(named["status_id"], none["id"]);
    let again = ann
        .send(
            Method::POST,
            &format!("{filter}/statuses"),
            &json!({ "status_id": none["id"] }),
        )
        .await;
    assert_eq!(again.0, StatusCode::UNPROCESSABLE_ENTITY);
    let page = ann.page(PUBLIC).await;
    assert_eq!(matched(&page[3]), [("pets", &json!(["cat"]))]);
    assert_eq!(matched(&page[4]), [("pets", &json!(["cat", "dog"]))]);
    assert_eq!(
        page[1]["filtered"][0]["status_matches"],
        json!([none["id"]])
    );
    assert_eq!(page[1]["filtered"][0]["keyword_matches"], Value::Null);
    let single = ann.get(&format!("/api/v1/statuses/{}", id(none))).await;
    assert_eq!(single["filtered"], page[1]["filtered"]);

    // Another account.
    let part = format!("{path}/statuses/{}", named["id"].as_str().unwrap());
    for (method, path, body) in [
        (Method::GET, filter.clone(), Value::Null),
        (Method::PUT, filter.clone(), json!({ "title": "mine" })),
        (Method::DELETE, filter.clone(), Value::Null),
        (Method::GET, format!("{filter}/keywords"), Value::Null),
        (
            Method::POST,
            format!("{filter}/keywords"),
            json!({ "keyword": "x" }),
        ),
        (Method::GET, keyword_path.clone(), Value::Null),
        (Method::PUT, keyword_path.clone(), json!({ "keyword": "x" })),
        (Method::DELETE, keyword_path.clone(), Value::Null),
        (Method::GET, format!("{filter}/statuses"), Value::Null),
        (
            Method::POST,
            format!("{filter}/statuses"),
            json!({ "status_id": cat["id"] }),
        ),
        (Method::GET, part.clone(), Value::Null),
        (Method::DELETE, part.clone(), Value::Null),
    ] {
        let (status, _) = ben.send(method.clone(), &path, &body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
    }
    assert_eq!(ben.get(path).await, json!([]));
    assert_eq!(ann.page(&format!("{filter}/keywords")).await.len(), 3);
    assert_eq!(ann.get(&part).await, named);
    ann.ok(Method::DELETE, &part, &Value::Null).await;
    ann.ok(Method::DELETE, &keyword_path, &Value::Null).await;
    assert!(matched(&ann.page(PUBLIC).await[1]).is_empty());

    // It ends by itself, unless it is told not to.
    pass(now_ms, 3_600_000);
    assert!(
        ann.page(PUBLIC)
            .await
            .iter()
            .all(|one| matched(one).is_empty())
    );
    let changed = ann
        .ok(
            Method::PUT,
            &filter,
            &json!({ "expires_in": null, "title": "dogs" }),
        )
        .await;
    assert_eq!(
        (&changed["expires_at"], &changed["title"]),
        (&Value::Null, &json!("dogs"))
    );
    assert_eq!(
        matched(&ann.page(PUBLIC).await[4]),
        [("dogs", &json!(["dog"]))]
    );
    assert_eq!(
        ann.ok(Method::DELETE, &filter, &Value::Null).await,
        json!({})
    );
    assert!(
        ann.page(PUBLIC)
            .await
            .iter()
            .all(|one| matched(one).is_empty())
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_keyword_is_a_filter_of_version_1() {
    let (clock, now_ms) = test_clock!();
    let (world, _) = people_world(|app| app.people.use_clock(clock)).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1)]).await;
    let (ann, ben) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    );
    let (old, new) = ("/api/v1/filters", "/api/v2/filters");
    assert_eq!(ann.get(old).await, json!([]));
    for bad in [
        json!({ "context": ["home"] }),
        json!({ "phrase": "", "context": ["home"] }),
        json!({ "phrase": "post" }),
        json!({ "phrase": "post", "context": ["nowhere"] }),
        json!({ "phrase": "post", "context": ["home"], "expires_in": "soon" }),
    ] {
        let (status, _) = ann.send(Method::POST, old, &bad).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
    let body = json!({
        "phrase": "Post", "context": ["home", "public"], "irreversible": true, "expires_in": 3600,
    });
    let made = ann.post_json(old, &body).await;
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(
        made,
        json!({
            "id": id, "phrase": "Post", "context": ["home", "public"], "whole_word": true,
            "expires_at": made["expires_at"], "irreversible": true,
        })
    );
    assert!(made["expires_at"].is_string());
    // It is one of version 2, and counts as such.
    let filter = ann.page(new).await.remove(0);
    assert_eq!(
        (&filter["title"], &filter["filter_action"]),
        (&json!("Post"), &json!("hide"))
    );
    assert_eq!(
        filter["keywords"],
        json!([{ "id": id, "keyword": "Post", "whole_word": true }])
    );
    let page = ann.page(PUBLIC).await;
    assert_eq!(matched(&page[0]), [("Post", &json!(["Post"]))]);

    let path = format!("{old}/{id}");
    let changed = json!({ "phrase": "posts", "irreversible": "false", "whole_word": "0" });
    let changed = ann.ok(Method::PUT, &path, &changed).await;
    let expected = json!({
        "id": id, "phrase": "posts", "context": ["home", "public"], "whole_word": false,
        "expires_at": made["expires_at"], "irreversible": false,
    });
    assert_eq!(changed, expected);
    assert_eq!(ann.get(&path).await, expected);
    assert_eq!(ann.get(old).await, json!([expected]));
    let filter_path = format!("{new}/{}", filter["id"].as_str().unwrap());
    assert_eq!(ann.get(&filter_path).await["title"], "posts");
    assert_eq!(ann.get(&filter_path).await["filter_action"], "warn");

    // With another keyword, what both have in common cannot be changed for one alone.
    let other = json!({ "keyword": "tree" });
    let other = ann
        .post_json(&format!("{filter_path}/keywords"), &other)
        .await;
    let other = format!("{old}/{}", other["id"].as_str().unwrap());
    for shared in [
        json!({ "context": ["home"] }),
        json!({ "irreversible": true }),
        json!({ "expires_in": null }),
        json!({ "expires_in": 86_400 }),
    ] {
        let (status, answer) = ann.send(Method::PUT, &other, &shared).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    }
    pass(now_ms, 1_000);
    let all = json!({
        "phrase": "trees", "context": ["public", "home"], "irreversible": false, "expires_in": 3_600,
    });
    let changed = ann.ok(Method::PUT, &other, &all).await;
    assert_eq!(changed["phrase"], "trees");
    assert_eq!(changed["expires_at"], made["expires_at"]);
    assert_eq!(ann.get(&filter_path).await["title"], "posts");
    assert_eq!(ann.page(old).await.len(), 2);

    for (method, body) in [
        (Method::GET, Value::Null),
        (Method::PUT, json!({ "phrase": "mine" })),
        (Method::DELETE, Value::Null),
    ] {
        let (status, _) = ben.send(method, &path, &body).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    assert_eq!(ben.get(old).await, json!([]));

    // The last one takes the filter with it, unless that names posts.
    assert_eq!(
        ann.ok(Method::DELETE, &other, &Value::Null).await,
        json!({})
    );
    let (status, _) = ann.send(Method::GET, &other, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(ann.page(new).await.len(), 1);
    ann.ok(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(ann.get(new).await, json!([]));
    let made = ann.post_json(old, &body).await;
    let filter = ann.page(new).await.remove(0);
    let statuses = format!("{new}/{}/statuses", filter["id"].as_str().unwrap());
    ann.post_json(&statuses, &json!({ "status_id": page[0]["id"] }))
        .await;
    let path = format!("{old}/{}", made["id"].as_str().unwrap());
    ann.ok(Method::DELETE, &path, &Value::Null).await;
    assert_eq!(ann.get(old).await, json!([]));
    assert_eq!(ann.page(new).await.len(), 1);
    world.close().await;
}
