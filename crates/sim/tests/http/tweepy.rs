//! tweepy, the most used client library of Twitter's APIs, against both.

use std::process::Command;

use driftline_core::{api::Api, upstream_id::UpstreamId};
use driftline_sim::{
    FaultsConfig, Growth, WorldConfig,
    http::{OAuth1Keys, READER_ID, ServerConfig, SetClock, SimServer, Timeline},
};
use serde_json::{Value, json};

use crate::raw::frozen_server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tweepy_reads_both_versions() {
    let (first, clock) = server(Api::Twitter, FaultsConfig::twitter()).await;
    let (second, _) = server(Api::X, FaultsConfig::x()).await;
    let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/read_tweets.py");
    let urls = [first.url(), second.url()];
    let output = tokio::task::spawn_blocking(move || {
        let mut command = Command::new(python);
        command.arg(script).args(urls).output().expect("runs")
    })
    .await
    .expect("ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "the script failed (is tweepy there? `cargo xtask setup` installs it):\n{said}"
    );
    let read: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    check_first(&read["first"], &first, &clock);
    check_second(&read["second"], &second, &clock);
}

/// The keys hold characters that must be escaped in signatures.
async fn server(api: Api, faults: FaultsConfig) -> (SimServer, SetClock) {
    let config = ServerConfig {
        world: WorldConfig {
            boost_share: 0.2,
            growth: Some(Growth {
                median_total: 100.0,
                ..Growth::default()
            }),
            publish_for_ms: Some(60_000),
            faults,
            ..WorldConfig::punctual(10.0)
        },
        lists: 1,
        api,
        oauth1: vec![OAuth1Keys {
            consumer_key: "ck".into(),
            consumer_secret: "consumer secret".into(),
            token: "1-token".into(),
            token_secret: "token/secret&".into(),
        }],
        ..ServerConfig::default()
    };
    let (server, clock) = frozen_server(config).await;
    clock.set(clock.now_ms() + 5_400_000);
    (server, clock)
}

fn check_pages(read: &Value, server: &SimServer) {
    for (name, timeline) in [
        ("home", Timeline::Home),
        ("user", Timeline::Account(77)),
        ("mentions", Timeline::Mentions),
        ("list", Timeline::List(1)),
    ] {
        let truth = server.truth(&timeline).expect("it exists").posts;
        let newest_first: Vec<u64> = truth
            .iter()
            .rev()
            .map(|post| post.id.as_str().parse().expect("a number"))
            .collect();
        assert!(newest_first.len() > 400, "{name}");
        assert_eq!(read["pages"][name], json!(newest_first), "{name}");
    }
    assert_eq!(read["me"], READER_ID);
    let asked = read["asked"].as_array().expect("a list");
    let found: Vec<&Value> = found(read).iter().map(|post| &post["id"]).collect();
    assert_eq!(found, asked[..98].iter().collect::<Vec<_>>());
}

fn found(read: &Value) -> &[Value] {
    read["found"].as_array().expect("a list")
}

/// The counts of a post that is no repost, and the time when it was written.
fn truth_of(
    post: &Value,
    server: &SimServer,
    clock: &SetClock,
) -> (driftline_core::post::Counts, String) {
    let id = UpstreamId::new(post["id"].to_string());
    let counts = server.counts_at(clock.now_ms(), &id);
    let world = server.world(&Timeline::Home).expect("home");
    let status = world.lock().expect("no panic").look_up(clock.now_ms(), &id);
    let made_at_ms = status.expect("it is there").created_at_ms / 1_000 * 1_000;
    let made_at = jiff::Timestamp::from_millisecond(made_at_ms).expect("a time");
    (
        counts.expect("it is there"),
        made_at.to_string().replace('Z', "+00:00"),
    )
}

fn check_first(read: &Value, server: &SimServer, clock: &SetClock) {
    check_pages(read, server);
    assert_eq!(read["limit"], "900");
    let remaining: u32 = read["remaining"]
        .as_str()
        .expect("text")
        .parse()
        .expect("n");
    assert!((890..900).contains(&remaining), "{remaining}");
    let reset_ms = 1_000
        * read["reset"]
            .as_str()
            .expect("text")
            .parse::<i64>()
            .expect("s");
    assert!((0..=901_000).contains(&(reset_ms - clock.now_ms())));
    assert_eq!(read["too_many"], json!([18]));
    assert_eq!(read["authors"], json!([77]));
    assert!(read["repost_of"].as_u64() > Some(1 << 53));
    let mut likes = 0;
    for post in found(read) {
        let (counts, made_at) = truth_of(post, server, clock);
        assert_eq!(post["created_at"], made_at.as_str());
        if !post["text"].as_str().expect("text").starts_with("RT @") {
            assert_eq!(post["likes"].as_i64(), counts.favourites);
            assert_eq!(post["retweets"].as_i64(), counts.boosts);
            likes += counts.favourites.unwrap_or(0);
        }
    }
    assert!(likes > 1_000);
}

fn check_second(read: &Value, server: &SimServer, clock: &SetClock) {
    check_pages(read, server);
    assert_eq!(read["limit"], "5000");
    assert_eq!(
        read["newer"],
        json!(read["pages"]["home"].as_array().expect("a list")[..10])
    );
    assert_eq!(
        read["errors"],
        json!([["12", "Not Found Error"], ["13", "Not Found Error"]])
    );
    assert_eq!(read["refused"].as_array().map(Vec::len), Some(1));
    let listed = |name: &str, value: &Value| {
        let all = read[name].as_array().expect("a list");
        all.contains(value)
    };
    let (mut reposts, mut views) = (0, 0);
    for post in found(read) {
        let (counts, made_at) = truth_of(post, server, clock);
        assert_eq!(post["created_at"], made_at.as_str());
        assert!(listed("users", &post["author"]));
        let metrics = &post["metrics"];
        match post["reposts"].as_array().expect("a list").first() {
            Some(original) => {
                reposts += 1;
                assert!(listed("originals", original));
                assert!(metrics["retweet_count"].as_i64() >= Some(0));
            }
            None => {
                assert_eq!(metrics["like_count"].as_i64(), counts.favourites);
                assert_eq!(metrics["reply_count"].as_i64(), counts.replies);
                assert_eq!(metrics["impression_count"].as_i64(), counts.views);
                views += counts.views.unwrap_or(0);
            }
        }
    }
    assert!(reposts > 5 && views > 10_000);
}
