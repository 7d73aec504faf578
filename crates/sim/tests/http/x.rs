//! X's version 2.

use std::collections::HashSet;

use driftline_core::{api::Api, upstream_id::UpstreamId};
use driftline_sim::{
    FaultsConfig, Growth, Hiding, PostsCap, ThrottleRule, WorldConfig,
    http::{READER_ID, ServerConfig, SetClock, SimServer},
};
use serde_json::Value;

use crate::raw::{Raw, ask, frozen_server};

async fn x(world: WorldConfig) -> (SimServer, SetClock) {
    let config = ServerConfig {
        world,
        lists: 1,
        api: Api::X,
        ..ServerConfig::default()
    };
    frozen_server(config).await
}

fn busy() -> WorldConfig {
    WorldConfig {
        boost_share: 0.3,
        growth: Some(Growth::default()),
        ..WorldConfig::punctual(10.0)
    }
}

fn data_ids(body: &Value) -> Vec<String> {
    let posts = body["data"].as_array().into_iter().flatten();
    posts
        .map(|post| post["id"].as_str().expect("text").to_owned())
        .collect()
}

fn home(query: &str) -> String {
    format!("/2/users/{READER_ID}/timelines/reverse_chronological?{query}")
}

async fn whole_home(server: &SimServer) -> Vec<String> {
    let mut ids = Vec::new();
    let mut path = home("max_results=100");
    loop {
        let body = ask(server, &path, "t").await.json();
        ids.extend(data_ids(&body));
        match body["meta"]["next_token"].as_str() {
            Some(token) => path = home(&format!("max_results=100&pagination_token={token}")),
            None => return ids,
        }
    }
}

#[tokio::test]
async fn bounds_are_exclusive_and_lists_have_none() {
    let (server, _) = x(WorldConfig::punctual(10.0)).await;
    let ids = whole_home(&server).await;
    let first = ask(&server, &home("max_results=50"), "t").await.json();
    let meta = &first["meta"];
    assert_eq!(
        (&meta["result_count"], &meta["newest_id"]),
        (&50.into(), &ids[0].as_str().into())
    );
    assert_eq!(meta["oldest_id"], ids[49].as_str());
    let between = home(&format!("since_id={}&until_id={}", ids[30], ids[10]));
    let body = ask(&server, &between, "t").await.json();
    assert_eq!(data_ids(&body), ids[11..30]);
    assert!(body["meta"]["next_token"].is_null());
    let nothing = ask(&server, &home(&format!("since_id={}", ids[0])), "t").await;
    assert_eq!(
        nothing.json(),
        serde_json::json!({ "meta": { "result_count": 0 } })
    );
    let list = ask(&server, "/2/lists/1/tweets?max_results=20", "t").await;
    assert_eq!(data_ids(&list.json()).len(), 20);
    let bounded = ask(&server, "/2/lists/1/tweets?since_id=12", "t").await;
    assert_eq!(bounded.status(), "400");
    assert_eq!(bounded.json()["title"], "Invalid Request");
    assert_eq!(ask(&server, "/2/lists/9/tweets", "t").await.status(), "404");
}

#[tokio::test]
async fn accounts_and_mentions_have_timelines_and_rules() {
    let (server, _) = x(WorldConfig::punctual(10.0)).await;
    let user = "/2/users/77/tweets?tweet.fields=author_id&max_results=5";
    let body = ask(&server, user, "t").await.json();
    let posts = body["data"].as_array().expect("a list");
    assert!(posts.len() == 5 && posts.iter().all(|post| post["author_id"] == "77"));
    let mentions = format!("/2/users/{READER_ID}/mentions");
    let body = ask(&server, &mentions, "t").await.json();
    assert_eq!(data_ids(&body).len(), 10, "the default");
    for (path, status) in [
        ("/2/users/77/tweets?max_results=4".to_owned(), "400"),
        (format!("{mentions}?max_results=101"), "400"),
        (home("max_results=0"), "400"),
        (home("pagination_token=abc"), "400"),
        (home("since_id=x"), "400"),
        ("/2/users/77/mentions".to_owned(), "403"),
        (home("tweet.fields=nothing"), "400"),
        ("/2/nothing".to_owned(), "404"),
    ] {
        let answer = ask(&server, &path, "t").await;
        assert_eq!(answer.status(), status, "{path}");
        assert!(answer.json()["title"].is_string(), "{path}");
    }
    let me = ask(&server, "/2/users/me", "t").await.json();
    assert_eq!(me["data"]["id"], READER_ID.to_string());
}

#[tokio::test]
async fn fields_are_shown_when_asked_for() {
    let (server, clock) = x(busy()).await;
    clock.set(clock.now_ms() + 3_600_000);
    let until = ask(&server, &home("max_results=100"), "t").await.json();
    let bare = until["data"][0].as_object().expect("a post");
    let keys: HashSet<&str> = bare.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        HashSet::from(["id", "text", "edit_history_tweet_ids"])
    );
    assert!(until["includes"].is_null());
    let full = home(
        "max_results=100&tweet.fields=created_at,public_metrics,referenced_tweets\
         &expansions=author_id,referenced_tweets.id,referenced_tweets.id.author_id\
         &user.fields=created_at",
    );
    let body = ask(&server, &full, "t").await.json();
    let list = |of: &Value| of.as_array().cloned().expect("a list");
    let ids = |of: &Value| -> HashSet<String> {
        let all = list(of).into_iter();
        all.map(|it| it["id"].as_str().expect("text").to_owned())
            .collect()
    };
    let (users, originals) = (
        ids(&body["includes"]["users"]),
        ids(&body["includes"]["tweets"]),
    );
    let mut reposts = 0;
    for post in list(&body["data"]) {
        assert!(users.contains(post["author_id"].as_str().expect("text")));
        assert!(
            post["created_at"]
                .as_str()
                .expect("text")
                .ends_with(".000Z")
        );
        let Some(original) = post["referenced_tweets"][0]["id"].as_str() else {
            continue;
        };
        reposts += 1;
        assert!(originals.contains(original));
        assert!(post["text"].as_str().expect("text").starts_with("RT @"));
        assert_eq!(post["public_metrics"]["like_count"], 0);
    }
    assert!(reposts > 10);
    for original in list(&body["includes"]["tweets"]) {
        assert!(users.contains(original["author_id"].as_str().expect("text")));
    }
}

#[tokio::test]
async fn look_ups_say_what_became_of_each() {
    let (server, _) = x(WorldConfig::punctual(10.0)).await;
    let mut ids = whole_home(&server).await;
    ids.truncate(99);
    server.change_faults(|faults| {
        faults.hidings.push(Hiding {
            id: UpstreamId::new(ids[5].clone()),
            token: None,
            after_ms: 0,
        });
    });
    let path = format!("/2/tweets?ids={},12", ids.join(","));
    let body = ask(&server, &path, "t").await.json();
    assert_eq!(data_ids(&body).len(), 98);
    let errors = body["errors"].as_array().expect("a list");
    let problem = |n: usize| {
        let name = errors[n]["type"].as_str().expect("text");
        let id = errors[n]["resource_id"].as_str().expect("text");
        (name.rsplit('/').next().expect("a name"), id)
    };
    assert_eq!(errors.len(), 2);
    assert_eq!(problem(0), ("not-authorized-for-resource", ids[5].as_str()));
    assert_eq!(problem(1), ("resource-not-found", "12"));
    let none = ask(&server, "/2/tweets?ids=12", "t").await;
    assert_eq!(none.status(), "200");
    assert!(none.json()["data"].is_null());
    let many = vec!["12"; 101].join(",");
    for ids in [many.as_str(), "", "x"] {
        let refused = ask(&server, &format!("/2/tweets?ids={ids}"), "t").await;
        assert_eq!(refused.status(), "400", "{ids}");
    }
}

#[tokio::test]
async fn each_endpoint_has_a_window_from_its_first_request() {
    let world = WorldConfig {
        faults: FaultsConfig::x(),
        ..WorldConfig::punctual(1.0)
    };
    let (server, clock) = x(world).await;
    let reset = |raw: &Raw| raw.header("x-rate-limit-reset").map(str::to_owned);
    let first = ask(&server, &home(""), "t").await;
    let ends = (clock.now_ms() + 900_000 + 999) / 1_000;
    assert_eq!(first.header("x-rate-limit-limit"), Some("180"));
    assert_eq!(reset(&first), Some(ends.to_string()));
    for _ in 1..180 {
        assert_eq!(ask(&server, &home(""), "t").await.status(), "200");
    }
    let refused = ask(&server, &home(""), "t").await;
    assert_eq!(refused.status(), "429");
    assert_eq!(refused.header("x-rate-limit-remaining"), Some("0"));
    assert!(refused.header("retry-after").is_none());
    assert_eq!(refused.json()["title"], "Too Many Requests");
    let list = ask(&server, "/2/lists/1/tweets", "t").await;
    assert_eq!(list.header("x-rate-limit-remaining"), Some("899"));
    clock.set(clock.now_ms() + 900_000);
    assert_eq!(ask(&server, &home(""), "t").await.status(), "200");
}

#[tokio::test]
async fn the_cap_on_posts_is_apart_from_the_windows() {
    for (forbidden, status) in [(false, "429"), (true, "403")] {
        let world = WorldConfig {
            faults: FaultsConfig {
                throttles: vec![ThrottleRule::all(1_000, 900_000)],
                posts_cap: Some(PostsCap {
                    posts: 150,
                    period_ms: 86_400_000,
                    forbidden,
                }),
                ..FaultsConfig::default()
            },
            ..WorldConfig::punctual(10.0)
        };
        let (server, clock) = x(world).await;
        for _ in 0..2 {
            let page = ask(&server, &home("max_results=100"), "t").await;
            assert_eq!(page.status(), "200");
        }
        for path in [home(""), "/2/tweets?ids=12".to_owned()] {
            let capped = ask(&server, &path, "u").await;
            assert_eq!(capped.status(), status);
            assert_eq!(capped.json()["title"], "UsageCapExceeded");
            assert_ne!(capped.header("x-rate-limit-remaining"), Some("0"));
        }
        clock.set(clock.now_ms() + 86_400_000);
        assert_eq!(ask(&server, &home(""), "u").await.status(), "200");
    }
}

#[tokio::test]
async fn without_credentials_nothing_is_shown() {
    let (server, _) = x(WorldConfig::punctual(1.0)).await;
    let anonymous = ask(&server, "/2/users/me", "").await;
    assert_eq!(anonymous.status(), "401");
    assert_eq!(anonymous.json()["title"], "Unauthorized");
}
