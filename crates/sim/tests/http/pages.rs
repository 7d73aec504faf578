//! Mastodon's pages: every fault really happens.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use driftline_core::api::Api;
use driftline_sim::{
    FaultKind, FaultsConfig, Mishap, SpanMs, ThrottleRule, WorldConfig,
    http::{Clock, ServerConfig, SimServer, Timeline},
};
use serde_json::Value;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::raw::{HOME, Raw, ask, frozen_server};

async fn with_fault(fault: FaultKind) -> SimServer {
    let faults = FaultsConfig {
        mishaps: vec![Mishap { after_ms: 0, fault }],
        stall_ms: SpanMs::new(300, 300),
        delay_ms: SpanMs::new(300, 300),
        ..FaultsConfig::default()
    };
    let world = WorldConfig {
        faults,
        ..WorldConfig::punctual(20.0)
    };
    frozen_server(world.into()).await.0
}

#[tokio::test]
async fn a_slash_at_the_end_changes_nothing() {
    for (api, paths) in [
        (
            Api::Mastodon,
            &[
                "/api/v1/instance",
                "/api/v2/instance",
                "/api/v1/timelines/home",
                "/api/v1/accounts/verify_credentials",
            ],
        ),
        (
            Api::X,
            &[
                "/2/users/me",
                "/2/users/1/mentions",
                "/2/users/77/tweets",
                "/2/users/1/tweets",
            ],
        ),
        (
            Api::Twitter,
            &[
                "/1.1/account/verify_credentials.json",
                "/1.1/statuses/home_timeline.json",
                "/1.1/statuses/mentions_timeline.json",
                "/1.1/statuses/lookup.json",
            ],
        ),
    ] {
        let config = ServerConfig {
            world: WorldConfig::punctual(20.0),
            api,
            ..ServerConfig::default()
        };
        let (server, _) = frozen_server(config).await;
        for path in paths {
            let query = if path.ends_with("lookup.json") {
                "?id=12"
            } else {
                ""
            };
            let plain = ask(&server, &format!("{path}{query}"), "t").await;
            let slashed = ask(&server, &format!("{path}/{query}"), "t").await;
            assert_eq!(plain.status(), "200", "{path}: {}", plain.text);
            assert_eq!(slashed.status(), plain.status(), "{path}/");
            assert_eq!(slashed.body(), plain.body(), "{path}/");
        }
    }
}

#[tokio::test]
async fn pages_walk_by_their_links_both_ways() {
    let (server, _) = frozen_server(WorldConfig::punctual(20.0).into()).await;
    let first = ask(&server, HOME, "t").await;
    assert_eq!(first.status(), "200");
    assert_eq!(
        first.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(first.ids().len(), 40);
    let links = first.header("link").expect("links").to_owned();
    let link = |rel: &str| {
        let suffix = format!("rel=\"{rel}\"");
        let link = links
            .split(", ")
            .find(|link| link.ends_with(&suffix))
            .expect("a link");
        let url = link
            .trim_start_matches('<')
            .split('>')
            .next()
            .expect("a URL");
        url.trim_start_matches(&server.url()).to_owned()
    };
    assert!(link("next").contains("max_id=") && link("prev").contains("min_id="));
    let second = ask(&server, &link("next"), "t").await;
    assert!(second.ids().first() < first.ids().last());
    let back = format!("{HOME}&min_id={}", second.ids()[0]);
    assert_eq!(ask(&server, &back, "t").await.ids(), first.ids());
    assert!(ask(&server, &link("prev"), "t").await.ids().is_empty());
    assert_eq!(
        ask(&server, "/api/v1/timelines/home", "t")
            .await
            .ids()
            .len(),
        20
    );
}

#[tokio::test]
async fn every_path_answers() {
    let config = ServerConfig {
        world: WorldConfig {
            non_public_share: 0.5,
            ..WorldConfig::punctual(20.0)
        },
        lists: 2,
        ..ServerConfig::default()
    };
    let (server, _) = frozen_server(config).await;
    let get = async |path: &str| ask(&server, &format!("/api/{path}"), "t").await;
    let all = |page: Raw, is: fn(&Value) -> bool| {
        let page = page.json();
        page.as_array().expect("a list").iter().all(is)
    };
    let mut seen = HashSet::new();
    for path in ["home", "public", "tag/tide", "list/1", "list/2"] {
        let raw = get(&format!("v1/timelines/{path}?limit=40")).await;
        assert_eq!(raw.ids().len(), 40, "{path}");
        let is_new = raw.ids().into_iter().all(|id| seen.insert(id));
        assert!(is_new, "IDs differ between timelines");
        let is_public = all(raw, |post| post["visibility"] == "public");
        assert_eq!(is_public, ["public", "tag/tide"].contains(&path), "{path}");
    }
    let account = get("v1/accounts/77/statuses").await;
    assert!(all(account, |post| post["account"]["id"] == "77"));
    for path in [
        "timelines/list/3",
        "timelines/list/x",
        "statuses/12",
        "nothing",
    ] {
        assert_eq!(get(&format!("v1/{path}")).await.status(), "404");
    }
    let id = ask(&server, HOME, "t").await.ids()[0].clone();
    let one = get(&format!("v1/statuses/{id}")).await.json();
    assert_eq!(one["id"], id.as_str());
    assert_eq!(get("v1/instance").await.json()["version"], "4.4.0");
    let second = get("v2/instance").await.json();
    assert_eq!(second["api_versions"]["mastodon"], 2);
    assert!(server.truth(&Timeline::List(2)).is_some());
    assert!(server.truth(&Timeline::List(3)).is_none());
}

#[tokio::test]
async fn errors_and_odd_bodies_come_as_they_should() {
    for (fault, status, body) in [
        (FaultKind::Throttled, "429", "Too many requests"),
        (FaultKind::InternalError, "500", "\"error\""),
        (FaultKind::BadGateway, "502", "<!DOCTYPE html>"),
        (FaultKind::Unavailable, "503", "<!DOCTYPE html>"),
        (FaultKind::Html, "200", "<!DOCTYPE html>"),
        (FaultKind::ErrorObject, "200", "{\"error\""),
        (FaultKind::BadJson, "200", "null]"),
        (FaultKind::EmptyPage, "200", "[]"),
    ] {
        let server = with_fault(fault).await;
        let raw = ask(&server, HOME, "t").await;
        assert_eq!(raw.status(), status, "{fault:?}");
        assert!(
            raw.body().contains(body) && raw.whole(),
            "{fault:?}: {}",
            raw.body()
        );
        if fault == FaultKind::Throttled {
            assert_eq!(raw.header("x-ratelimit-remaining"), Some("0"));
            assert!(raw.header("retry-after").is_none());
        }
        assert_eq!(ask(&server, HOME, "t").await.ids().len(), 40, "only once");
        assert_eq!(
            ask(&server, HOME, "u").await.status(),
            status,
            "once for each token"
        );
        assert_eq!(server.traffic().failures, 2);
    }
}

#[tokio::test]
async fn a_cut_body_ends_before_its_length() {
    let server = with_fault(FaultKind::Cut).await;
    let raw = ask(&server, HOME, "t").await;
    assert_eq!(raw.status(), "200");
    let length: usize = raw
        .header("content-length")
        .expect("a length")
        .parse()
        .expect("n");
    assert!(raw.body().len() > 1_000, "{} bytes came", raw.body().len());
    assert!(raw.body().len() < length);
    assert!(ask(&server, HOME, "t").await.whole());
}

#[tokio::test]
async fn a_stall_holds_the_socket_and_then_says_nothing() {
    let server = with_fault(FaultKind::Stall).await;
    let begun = Instant::now();
    let raw = ask(&server, HOME, "t").await;
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(raw.text, "");
}

#[tokio::test]
async fn a_delayed_answer_shows_what_was_there_before() {
    let server = with_fault(FaultKind::Delay).await;
    let begun = Instant::now();
    let raw = ask(&server, HOME, "t").await;
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(raw.ids().len(), 40);
}

#[tokio::test]
async fn budgets_are_per_token_and_resets_are_iso_8601() {
    let world = WorldConfig {
        faults: FaultsConfig {
            throttles: vec![ThrottleRule::all(2, 3_600_000)],
            ..FaultsConfig::default()
        },
        ..WorldConfig::punctual(20.0)
    };
    let (server, clock) = frozen_server(world.into()).await;
    for (status, remaining) in [("200", "1"), ("200", "0"), ("429", "0")] {
        let raw = ask(&server, HOME, "a").await;
        assert_eq!(raw.status(), status);
        assert_eq!(raw.header("x-ratelimit-limit"), Some("2"));
        assert_eq!(raw.header("x-ratelimit-remaining"), Some(remaining));
        let reset = raw.header("x-ratelimit-reset").expect("a reset");
        assert!(reset.ends_with(".000000Z"), "{reset}");
        let reset: jiff::Timestamp = reset.parse().expect("ISO 8601");
        let ends_ms = (clock.now_ms() / 3_600_000 + 1) * 3_600_000;
        assert_eq!(reset.as_millisecond(), ends_ms);
    }
    assert_eq!(ask(&server, HOME, "b").await.status(), "200");
}

#[tokio::test]
async fn the_date_is_the_front_ends() {
    let world = WorldConfig {
        faults: FaultsConfig {
            date_offset_ms: -90_500,
            ..FaultsConfig::default()
        },
        ..WorldConfig::punctual(20.0)
    };
    let (server, clock) = frozen_server(world.into()).await;
    let raw = ask(&server, HOME, "t").await;
    let date = httpdate::parse_http_date(raw.header("date").expect("a date")).expect("a date");
    let since = date
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    assert_eq!(since.as_secs() as i64, (clock.now_ms() - 90_500) / 1_000);
    assert_eq!(raw.head().matches("date: ").count(), 1);
}

#[tokio::test]
async fn it_stops_though_clients_hang() {
    let world = WorldConfig {
        faults: FaultsConfig {
            shares: [(FaultKind::Stall, 1.0)].into(),
            ..FaultsConfig::default()
        },
        ..WorldConfig::measured(20.0)
    };
    let server = SimServer::start(world, 1, Clock::Real)
        .await
        .expect("starts");
    let address = server.address();
    let mut hanging = TcpStream::connect(address).await.expect("connects");
    let request = format!("GET {HOME} HTTP/1.1\r\nHost: x\r\n\r\n");
    hanging.write_all(request.as_bytes()).await.expect("sends");
    let _idle = TcpStream::connect(address).await.expect("connects");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    server.shutdown().await;
    // Less than its timeout: the stall ended.
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn history_is_there_from_the_start_under_the_real_clock() {
    let config = ServerConfig {
        world: WorldConfig::measured(20.0),
        lists: 200,
        history_ms: 60_000,
        ..ServerConfig::default()
    };
    let server = SimServer::start(config, 1, Clock::Real)
        .await
        .expect("starts");
    let truth = server.truth(&Timeline::List(200)).expect("a truth");
    assert!((900..1_500).contains(&truth.posts.len()));
    assert_eq!(
        ask(&server, "/api/v1/timelines/list/200?limit=40", "t")
            .await
            .ids()
            .len(),
        40
    );
}
