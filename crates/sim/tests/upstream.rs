//! An upstream in virtual time.

use std::collections::HashSet;

use driftline_core::{
    answer::{FailureKind, Finding, LookUp, PageRequest},
    upstream_id::UpstreamId,
};
use driftline_sim::{FaultsConfig, Hiding, SpanMs, Upstream, WorldConfig};

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
    let headers = &page.headers;
    assert_eq!(headers.sent_at_ms, sent_at_ms);
    assert_eq!(headers.received_at_ms, sent_at_ms + 50);
    assert_eq!(upstream.received_at_ms(), headers.received_at_ms);
    assert_eq!(headers.round_trip_ms, 50);
    assert_eq!(
        headers.date_ms,
        Some((sent_at_ms + 25 - 700) / 1_000 * 1_000)
    );
    assert_eq!(
        headers.throttle.map(|throttle| throttle.remaining),
        Some(299)
    );
    let bodies: Vec<&str> = page
        .listed
        .iter()
        .map(|listed| listed.post.raw.as_str())
        .collect();
    assert_eq!(
        headers.body_bytes,
        format!("[{}]", bodies.join(",")).len() as u64
    );
    assert_eq!(upstream.traffic().posts_served, 40);
    assert_eq!(upstream.traffic().page_requests, 1);
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
            LookUp::Hidden => panic!("nothing is hidden: {post:?}"),
        }
    }
    let none = upstream.look_up(now_ms, "t", &"12".into());
    assert_eq!(none, Ok(LookUp::Gone));
}

fn some_ids(upstream: &mut Upstream, now_ms: i64, count: usize) -> Vec<UpstreamId> {
    let page = upstream.world().page(now_ms, &whole_page());
    let ids = page.into_iter().map(|status| status.id);
    ids.take(count).collect()
}

#[test]
fn a_batch_finds_each_post_and_leaves_out_what_is_missing() {
    let mut config = WorldConfig::punctual(20.0);
    config.faults = FaultsConfig::mastodon();
    let now_ms = config.start_ms + 60_000;
    let mut upstream = Upstream::new(config, 1);
    let mut ids = some_ids(&mut upstream, now_ms, 18);
    upstream.change_faults(|faults| {
        faults.hidings.push(Hiding {
            id: ids[2].clone(),
            token: Some("t".into()),
            after_ms: 0,
        });
    });
    ids.push("12".into());
    let answer = upstream.look_ups(now_ms, "t", &ids).expect("an answer");
    let throttle = answer.headers.throttle.expect("headers");
    assert_eq!(throttle.remaining, 299, "one request");
    assert_eq!(answer.findings.len(), 19);
    for (id, finding) in &answer.findings {
        if id.as_str() == "12" || *id == ids[2] {
            assert_eq!(*finding, Finding::Missing);
        } else {
            assert!(matches!(finding, Finding::Found(post) if post.id == *id));
        }
    }
    assert_eq!(upstream.traffic().batches, 1);
    assert_eq!(upstream.traffic().posts_refreshed, 17);
    let one = upstream.look_up(now_ms, "t", &ids[2]);
    assert_eq!(one, Ok(LookUp::Gone));
    let shown = upstream.answer(now_ms, "t", &whole_page()).expect("a page");
    assert!(shown.listed.iter().all(|listed| listed.post.id != ids[2]));
}
