//! Twitter's version 1.1.

use driftline_core::api::Api;
use driftline_sim::{
    FaultsConfig, WorldConfig,
    http::{OAuth1Keys, ServerConfig, SetClock, SimServer},
};
use serde_json::Value;

use crate::raw::{ask, ask_as, frozen_server};

async fn twitter(world: WorldConfig) -> (SimServer, SetClock) {
    let config = ServerConfig {
        world,
        lists: 1,
        api: Api::Twitter,
        ..ServerConfig::default()
    };
    frozen_server(config).await
}

fn ids(page: &Value) -> Vec<u64> {
    let posts = page.as_array().expect("a list").iter();
    posts
        .map(|post| post["id"].as_u64().expect("a number"))
        .collect()
}

const HOME: &str = "/1.1/statuses/home_timeline.json?count=200";

#[tokio::test]
async fn every_timeline_answers_in_its_form() {
    let world = WorldConfig {
        boost_share: 0.3,
        ..WorldConfig::punctual(10.0)
    };
    let (server, clock) = twitter(world).await;
    clock.set(clock.now_ms() + 600_000);
    for path in [
        "statuses/home_timeline.json?a=b",
        "statuses/user_timeline.json?user_id=77",
        "statuses/mentions_timeline.json?a=b",
        "lists/statuses.json?list_id=1",
    ] {
        let path = format!("/1.1/{path}");
        let page = ask(&server, &path, "t").await.json();
        assert_eq!(ids(&page).len(), 20, "{path}");
        let more = format!("{path}&count=900&tweet_mode=extended");
        let page = ask(&server, &more, "t").await.json();
        assert_eq!(ids(&page).len(), 200, "{path}");
        for post in page.as_array().expect("a list") {
            assert!(post["id"].as_u64() > Some(1 << 53));
            assert_eq!(
                post["id"].to_string(),
                post["id_str"].as_str().expect("text")
            );
            assert!(post["full_text"].is_string() && post["text"].is_null());
            assert_eq!(path.contains("user_timeline"), post["user"]["id"] == 77);
        }
        let posts = page.as_array().expect("a list").iter();
        let reposts = posts.filter(|post| post["retweeted_status"].is_object());
        assert!(reposts.count() > 20, "{path}");
    }
    let me = ask(&server, "/1.1/account/verify_credentials.json", "t").await;
    assert_eq!(me.json()["screen_name"], "reader");
}

#[tokio::test]
async fn max_id_is_included_and_since_id_is_not() {
    let (server, _) = twitter(WorldConfig::punctual(10.0)).await;
    let all = ids(&ask(&server, HOME, "t").await.json());
    let path = format!("{HOME}&max_id={}&since_id={}", all[10], all[30]);
    assert_eq!(ids(&ask(&server, &path, "t").await.json()), all[10..30]);
    let bad = ask(&server, &format!("{HOME}&max_id=x"), "t").await;
    assert_eq!(bad.status(), "400");
}

#[tokio::test]
async fn quotas_and_refusals_are_twitters() {
    let world = WorldConfig {
        faults: FaultsConfig::twitter(),
        ..WorldConfig::punctual(10.0)
    };
    let (server, _) = twitter(world).await;
    for _ in 0..15 {
        assert_eq!(ask(&server, HOME, "t").await.status(), "200");
    }
    let refused = ask(&server, HOME, "t").await;
    assert_eq!(refused.status(), "429");
    assert_eq!(refused.json()["errors"][0]["code"], 88);
    let reset = refused.header("x-rate-limit-reset").expect("a reset");
    assert!(reset.parse::<u64>().expect("seconds") > 1_760_000_000);
    assert_eq!(ask(&server, HOME, "").await.status(), "401");
}

#[tokio::test]
async fn a_signature_is_needed_where_keys_are_set() {
    let keys = OAuth1Keys {
        consumer_key: "ck".into(),
        consumer_secret: "cs".into(),
        token: "t".into(),
        token_secret: "ts".into(),
    };
    let header = "OAuth oauth_consumer_key=\"ck\", oauth_nonce=\"n\", oauth_signature=\"AAAA\", \
                  oauth_signature_method=\"HMAC-SHA1\", oauth_timestamp=\"1\", oauth_token=\"t\"";
    for (oauth1, status) in [(vec![], "200"), (vec![keys], "401")] {
        let config = ServerConfig {
            world: WorldConfig::punctual(1.0),
            api: Api::Twitter,
            oauth1,
            ..ServerConfig::default()
        };
        let (server, _) = frozen_server(config).await;
        assert_eq!(ask_as(&server, HOME, header).await.status(), status);
        let broken = header.replace("oauth_nonce", "nonce");
        assert_eq!(ask_as(&server, HOME, &broken).await.status(), "401");
    }
}
