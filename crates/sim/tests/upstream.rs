//! An upstream in virtual time.

use std::collections::HashSet;

use driftline_core::answer::{FailureKind, LookUp, PageRequest};
use driftline_sim::{FaultsConfig, SpanMs, Upstream, WorldConfig};

fn whole_page() -> PageRequest {
    PageRequest {
        limit: 40,
        ..PageRequest::default()
    }
}

#[test]
fn the_same_questions_get_the_same_answers() {
    let answers = || {
        let config = WorldConfig::hard(20.0);
        let start_ms = config.start_ms;
        let mut upstream = Upstream::new(config, 6);
        (0..300)
            .map(|n| upstream.answer(start_ms + n * 4_000, "t", &whole_page()))
            .collect::<Vec<_>>()
    };
    let first = answers();
    assert_eq!(first, answers());
    let kinds: HashSet<_> = first
        .iter()
        .filter_map(|answer| answer.as_ref().err().map(|failure| failure.kind))
        .collect();
    for kind in [
        FailureKind::Throttled,
        FailureKind::ServerError,
        FailureKind::TimedOut,
        FailureKind::Truncated,
        FailureKind::NotJson,
        FailureKind::ErrorBody,
        FailureKind::BadJson,
    ] {
        assert!(kinds.contains(&kind), "no {kind}");
    }
}

#[test]
fn facts_are_those_of_the_answer() {
    let config = WorldConfig {
        faults: FaultsConfig {
            date_offset_ms: -700,
            round_trip_ms: SpanMs::new(50, 50),
            ..FaultsConfig::mastodon()
        },
        ..WorldConfig::punctual(20.0)
    };
    let sent_at_ms = config.start_ms + 60_000;
    let mut upstream = Upstream::new(config, 1);
    let page = upstream
        .answer(sent_at_ms, "t", &whole_page())
        .expect("a page");
    let facts = &page.facts;
    assert_eq!(facts.sent_at_ms, sent_at_ms);
    assert_eq!(facts.received_at_ms, sent_at_ms + 50);
    assert_eq!(upstream.received_at_ms(), facts.received_at_ms);
    assert_eq!(facts.round_trip_ms, 50);
    assert_eq!(facts.date_ms, Some((sent_at_ms + 25 - 700) / 1_000 * 1_000));
    assert_eq!(facts.throttle.map(|throttle| throttle.remaining), Some(299));
    let bodies: Vec<&str> = page
        .listed
        .iter()
        .map(|listed| listed.post.raw.as_str())
        .collect();
    assert_eq!(
        facts.body_bytes,
        format!("[{}]", bodies.join(",")).len() as u64
    );
    assert_eq!(upstream.traffic().posts_served, 40);
    assert_eq!(upstream.traffic().page_requests, 1);
}

#[test]
fn a_budget_is_refused_when_used_up_and_comes_back() {
    let config = WorldConfig {
        faults: FaultsConfig::mastodon(),
        ..WorldConfig::punctual(1.0)
    };
    let start_ms = config.start_ms;
    let mut upstream = Upstream::new(config, 1);
    for n in 0..300 {
        assert!(upstream.answer(start_ms + n, "t", &whole_page()).is_ok());
    }
    let failure = upstream
        .answer(start_ms + 300, "t", &whole_page())
        .expect_err("throttled");
    assert_eq!(failure.kind, FailureKind::Throttled);
    let throttle = failure.throttle.expect("headers");
    assert_eq!((throttle.limit, throttle.remaining), (300, 0));
    assert!(
        upstream
            .answer(start_ms + 301, "other", &whole_page())
            .is_ok()
    );
    assert!(
        upstream
            .answer(throttle.reset_at_ms, "t", &whole_page())
            .is_ok()
    );
}

#[test]
fn a_look_up_finds_what_is_there_and_nothing_else() {
    let config = WorldConfig {
        deleted_share: 0.5,
        deleted_after_ms: SpanMs::new(1_000, 2_000),
        ..WorldConfig::punctual(5.0)
    };
    let now_ms = config.start_ms + 20_000;
    let mut upstream = Upstream::new(config, 1);
    // A look-up is read within its round trip, so posts settled before count.
    for post in upstream.truth(now_ms).posts {
        if post.visible_at_ms > now_ms - 3_000 {
            continue;
        }
        let found = upstream.look_up(now_ms, "t", &post.id).expect("an answer");
        match found {
            LookUp::Found(found) => assert!(post.deleted_at_ms.is_none() && found.id == post.id),
            LookUp::Gone => assert!(post.deleted_at_ms.is_some()),
        }
    }
    let none = upstream.look_up(now_ms, "t", &"12".into());
    assert_eq!(none, Ok(LookUp::Gone));
}
