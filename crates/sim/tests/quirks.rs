//! Each quirk shows, and none touches the truth.

use driftline_core::{
    answer::{FailureKind, LookUp, PageRequest},
    upstream_id::UpstreamId,
};
use driftline_sim::{
    FaultKind, IdLayout, SpanMs, Upstream, WorldConfig,
    quirks::{
        BoostLookUps, Escapes, Failing, Kinds, Leave, LeaveCause, Limit, Quirk, Quirks, Requests,
        Together,
    },
};

const MINUTE_MS: i64 = 60_000;

fn world(quirks: Quirks) -> WorldConfig {
    WorldConfig {
        quirks,
        ..WorldConfig::punctual(2.0)
    }
}

/// An upstream, and a time five minutes after its start.
fn upstream(config: WorldConfig) -> (Upstream, i64) {
    let now_ms = config.start_ms + 5 * MINUTE_MS;
    (Upstream::new(config, 3), now_ms)
}

fn ids(upstream: &mut Upstream, now_ms: i64, request: &PageRequest) -> Vec<UpstreamId> {
    let page = upstream.answer(now_ms, "t", request).expect("a page");
    let listed = page.listed.into_iter();
    listed.map(|listed| listed.position).collect()
}

/// Honest but for the change.
fn with(change: impl FnOnce(&mut Quirks)) -> Quirks {
    let mut quirks = Quirks::default();
    change(&mut quirks);
    quirks
}

fn bounded(limit: u16, bound: impl FnOnce(&mut PageRequest)) -> PageRequest {
    let mut request = newest(limit);
    bound(&mut request);
    request
}

fn newest(limit: u16) -> PageRequest {
    PageRequest {
        limit,
        ..PageRequest::default()
    }
}

#[test]
fn bounds_that_are_ignored_bound_nothing() {
    let plain = |quirks| upstream(world(quirks));
    let (mut honest, now_ms) = plain(Quirks::default());
    let top = ids(&mut honest, now_ms, &newest(20));
    let (fifth, tenth) = (&top[4], &top[9]);
    let since = bounded(20, |it| it.since_id = Some(tenth.clone()));
    let max = bounded(20, |it| it.max_id = Some(fifth.clone()));
    let min = bounded(5, |it| it.min_id = Some(tenth.clone()));
    let both = PageRequest {
        since_id: Some(tenth.clone()),
        ..max.clone()
    };
    let below_fifth = ids(&mut honest, now_ms, &max);
    assert_eq!(ids(&mut honest, now_ms, &since), top[..9]);
    assert_eq!(ids(&mut honest, now_ms, &both), top[5..9]);
    assert_eq!(ids(&mut honest, now_ms, &min), top[4..9]);
    let all = Kinds::ALL;
    let cases = [
        (
            with(|it| it.since_id_ignored = all),
            [&top[..], &below_fifth, &top[4..9], &below_fifth],
        ),
        (
            with(|it| it.max_id_ignored = all),
            [&top[..9], &top, &top[4..9], &top[..9]],
        ),
        (
            with(|it| it.min_id_ignored = all),
            [&top[..9], &below_fifth, &top[..5], &top[5..9]],
        ),
        (
            with(|it| it.together = Together::SinceIdIgnored),
            [&top[..9], &below_fifth, &top[4..9], &below_fifth],
        ),
        (
            with(|it| it.together = Together::BothIgnored),
            [&top[..9], &below_fifth, &top[4..9], &top],
        ),
    ];
    for (quirks, expected) in cases {
        let (mut upstream, _) = plain(quirks.clone());
        for (request, expected) in [&since, &max, &min, &both].into_iter().zip(expected) {
            let answered = ids(&mut upstream, now_ms, request);
            assert_eq!(answered, expected, "{quirks:?} {request:?}");
        }
    }
}

#[test]
fn pages_repeat_posts_and_ignore_the_limit() {
    let (mut honest, now_ms) = upstream(world(Quirks::default()));
    let top = ids(&mut honest, now_ms, &newest(40));
    let short = bounded(20, |it| it.since_id = Some(top[3].clone()));
    let quirks = with(|it| it.newest_repeated = Kinds::ALL);
    let (mut repeating, _) = upstream(world(quirks));
    let expected = [&top[..3], &top[..1]].concat();
    assert_eq!(ids(&mut repeating, now_ms, &short), expected);
    assert_eq!(ids(&mut repeating, now_ms, &newest(20)), top[..20]);
    for (limit, posts) in [(Limit::Ignored(30), 30), (Limit::Capped(5), 5)] {
        let quirks = with(|it| it.limit = limit);
        let (mut upstream, _) = upstream(world(quirks));
        assert_eq!(ids(&mut upstream, now_ms, &newest(20)), top[..posts]);
    }
    let quirks = with(|it| it.repeated_share = 0.5);
    let (mut upstream, _) = upstream(world(quirks));
    let page = ids(&mut upstream, now_ms, &newest(20));
    assert!((25..36).contains(&page.len()), "{}", page.len());
    assert!(page.iter().all(|id| top[..20].contains(id)));
}

#[test]
fn posts_of_a_second_come_in_any_order_and_each_is_on_a_page() {
    let quirks = Quirks {
        seconds_unordered: Kinds::ALL,
        bounds_by_place: Kinds::ALL,
        ..Quirks::default()
    };
    let config = WorldConfig {
        layout: IdLayout::Snac,
        ..world(quirks)
    };
    let (mut upstream, now_ms) = upstream(config);
    let truth = upstream.truth(now_ms).posts;
    let mut walked = ids(&mut upstream, now_ms, &newest(7));
    loop {
        let below = bounded(7, |it| it.max_id = walked.last().cloned());
        let page = ids(&mut upstream, now_ms, &below);
        if page.is_empty() {
            break;
        }
        walked.extend(page);
    }
    let seconds: Vec<&str> = walked.iter().map(|id| &id.as_str()[..10]).collect();
    assert!(seconds.is_sorted_by(|a, b| a >= b));
    let by_text = walked.is_sorted_by(|a, b| a.as_str() > b.as_str());
    assert!(!by_text, "the IDs of a second are in order");
    assert_eq!(walked.len(), truth.len());
    // A bound that names nothing.
    let nothing = || {
        Some(UpstreamId::from(
            "1760000100ffffffffffffffffffffffffffffffff",
        ))
    };
    let above = bounded(7, |it| it.since_id = nothing());
    assert_eq!(ids(&mut upstream, now_ms, &above), walked[..7]);
    let below = bounded(7, |it| it.max_id = nothing());
    assert!(ids(&mut upstream, now_ms, &below).is_empty());
}

#[test]
fn an_edit_changes_the_id_and_both_are_found() {
    let config = WorldConfig {
        layout: IdLayout::Snac,
        edited_share: 0.5,
        edited_after_ms: SpanMs::new(5_000, 20_000),
        ..world(with(|it| it.edits_change_ids = true))
    };
    let (mut upstream, now_ms) = upstream(config);
    let truth = upstream.truth(now_ms).posts;
    let edited = truth
        .iter()
        .filter_map(|post| Some((post, post.edited_id.clone()?)));
    let mut changed = 0;
    for (post, edited_id) in edited {
        assert_eq!(post.id.as_str()[10..30], edited_id.as_str()[10..30]);
        let status = upstream.world().look_up(now_ms, &post.id).expect("found");
        assert_eq!(status.id, edited_id);
        assert_eq!(
            upstream.world().look_up(now_ms, &edited_id),
            Some(status.clone())
        );
        let before = upstream
            .world()
            .look_up(post.visible_at_ms, &post.id)
            .expect("found");
        assert_eq!(before.id, post.id);
        assert_eq!(before.to_post().uri, status.to_post().uri);
        assert_eq!(upstream.world().first_id(&edited_id), Some(post.id.clone()));
        changed += usize::from(edited_id != post.id);
    }
    assert!(changed > 100, "{changed}");
}

#[test]
fn look_ups_are_refused_and_answer_what_was_not_asked() {
    let of = |quirks| {
        upstream(WorldConfig {
            boost_share: 0.5,
            ..world(quirks)
        })
    };
    let (mut honest, now_ms) = of(Quirks::default());
    let truth = honest.truth(now_ms).posts;
    let post = &truth
        .iter()
        .find(|it| it.boost_of.is_none())
        .expect("one")
        .id;
    let boost = &truth
        .iter()
        .find(|it| it.boost_of.is_some())
        .expect("one")
        .id;
    let found = |upstream: &mut Upstream, token, id| match upstream.look_up(now_ms, token, id) {
        Ok(LookUp::Found(_)) => Ok(true),
        Ok(LookUp::Gone | LookUp::Hidden) => Ok(false),
        Err(failure) => Err(failure.kind),
    };
    assert_eq!(found(&mut honest, "", post), Ok(true));
    assert_eq!(found(&mut honest, "", boost), Ok(true));
    let (mut closed, _) = of(Quirks::gotosocial());
    assert_eq!(found(&mut closed, "", post), Err(FailureKind::Unauthorized));
    assert_eq!(found(&mut closed, "t", post), Ok(true));
    let batch = closed.look_ups(now_ms, "", std::slice::from_ref(post));
    assert_eq!(batch.map_err(|it| it.kind), Err(FailureKind::Unauthorized));
    let (mut takahe, _) = of(Quirks {
        shown_late: Kinds::NONE,
        ..Quirks::takahe()
    });
    assert_eq!(found(&mut takahe, "t", boost), Ok(false));
    let (mut boosted, _) = of(with(|it| it.boosts = BoostLookUps::Boosted));
    assert_eq!(found(&mut boosted, "t", boost), Err(FailureKind::BadId));
    assert_eq!(found(&mut boosted, "t", post), Ok(true));
    let (mut other, _) = of(with(|it| it.other_found_share = 1.0));
    assert_eq!(found(&mut other, "t", post), Err(FailureKind::BadId));
    let (mut failing, _) = of(with(|it| {
        it.failing = vec![Failing {
            requests: Requests::LookUp,
            fault: FaultKind::InternalError,
            share: 1.0,
        }];
    }));
    assert_eq!(
        found(&mut failing, "t", post),
        Err(FailureKind::ServerError)
    );
    assert!(failing.answer(now_ms, "t", &newest(5)).is_ok());
}

#[test]
fn entries_leave_and_come_back_and_their_posts_stay() {
    for cause in [
        LeaveCause::Block,
        LeaveCause::Mute,
        LeaveCause::Unfollow,
        LeaveCause::Filter,
        LeaveCause::Unboost,
        LeaveCause::Rebuild,
    ] {
        let leave = Leave {
            cause,
            after_ms: 2 * MINUTE_MS,
            for_ms: Some(MINUTE_MS),
            share: 0.5,
        };
        let quirks = with(|it| it.leaves = vec![leave]);
        let of = |quirks| {
            upstream(WorldConfig {
                boost_share: 0.5,
                page_limit: 1_000,
                ..world(quirks)
            })
        };
        let (mut upstream, end_ms) = of(quirks);
        let (mut honest, _) = of(Quirks::default());
        assert_eq!(upstream.truth(end_ms), honest.truth(end_ms));
        let start_ms = end_ms - 5 * MINUTE_MS;
        let listed = |upstream: &mut Upstream, minutes: i64, seconds: i64| {
            let at_ms = start_ms + minutes * MINUTE_MS + seconds * 1_000;
            ids(upstream, at_ms, &newest(1_000))
        };
        for (minutes, seconds) in [(1, 59), (3, 1)] {
            let there = listed(&mut upstream, minutes, seconds);
            assert_eq!(there, listed(&mut honest, minutes, seconds), "{cause:?}");
        }
        let during = listed(&mut upstream, 2, 30);
        let whole = listed(&mut honest, 2, 30);
        let left: Vec<&UpstreamId> = whole.iter().filter(|id| !during.contains(id)).collect();
        assert!(left.len() > whole.len() / 10, "{cause:?}: {}", left.len());
        // A round trip later.
        let at_ms = start_ms + 151_000;
        for id in left {
            let found = upstream.look_up(at_ms, "t", id).expect("an answer");
            assert_eq!(found == LookUp::Gone, cause == LeaveCause::Unboost);
            let leaves = upstream.world().leaves(id);
            let span = (start_ms + 120_000, start_ms + 180_000);
            assert_eq!(leaves, [(cause, span.0, span.1)]);
        }
    }
}

#[test]
fn bodies_hold_escapes_repeated_keys_and_what_is_no_post() {
    let (mut honest, now_ms) = upstream(world(Quirks::default()));
    let body = |upstream: &mut Upstream| {
        let (body, headers) = upstream
            .answer_body(now_ms, "t", &newest(40))
            .expect("a page");
        assert_eq!(headers.body_bytes, body.len() as u64);
        body
    };
    let page = honest.answer(now_ms, "t", &newest(40)).expect("a page");
    let raw: Vec<String> = page.listed.into_iter().map(|it| it.post.raw).collect();
    assert_eq!(body(&mut honest), format!("[{}]", raw.join(",")).as_bytes());
    let (mut escaping, _) = upstream(world(with(|it| {
        it.look_up_escapes = Escapes {
            html: true,
            slash: true,
            non_ascii: true,
        }
    })));
    let id = ids(&mut escaping, now_ms, &newest(1)).remove(0);
    let one = escaping.look_up_body(now_ms, "t", &id).expect("an answer");
    let one = String::from_utf8(one.expect("a post").0).expect("text");
    let many = String::from_utf8(body(&mut escaping)).expect("text");
    assert!(one.is_ascii() && !one.contains('<') && one.contains("\\u003cp\\u003e"));
    assert!(!many.is_ascii() && many.contains("<p>"));
    let status = escaping.world().look_up(now_ms, &id).expect("found");
    let read: serde_json::Value = serde_json::from_str(&one).expect("JSON");
    assert_eq!(read["content"], status.content.as_str());
    let (mut repeating, _) = upstream(world(with(|it| it.repeated_keys_share = 1.0)));
    let text = String::from_utf8(body(&mut repeating)).expect("text");
    assert_eq!(text.matches("\"content\":").count(), 80);
    let (mut unreadable, _) = upstream(world(with(|it| it.unreadable_share = 0.3)));
    let read = unreadable.answer(now_ms, "t", &newest(40)).expect("a page");
    let truth = unreadable.truth(now_ms).posts.into_iter().rev().take(40);
    let readable = truth.filter(|post| !post.is_unreadable).count();
    assert_eq!(read.listed.len(), readable);
    assert!((20..36).contains(&readable), "{readable}");
}

#[test]
fn posts_are_shown_late_and_requests_of_each_kind_fail() {
    let (mut honest, now_ms) = upstream(world(Quirks::default()));
    let (mut late, _) = upstream(world(Quirks {
        shown_late: Kinds::ALL,
        shown_late_ms: SpanMs::new(10_000, 20_000),
        ..Quirks::default()
    }));
    let visible = |upstream: &mut Upstream| upstream.truth(now_ms).posts;
    let shown: Vec<_> = visible(&mut late);
    assert!(shown.len() > 400 && shown.len() < visible(&mut honest).len());
    assert!(
        shown
            .iter()
            .all(|post| (10_000..=20_000).contains(&post.lateness_ms()))
    );
    let (mut failing, _) = upstream(world(Quirks::of(&[Quirk::RequestsFail], 1)));
    let bounded = bounded(5, |it| it.since_id = Some("1".into()));
    for request in [newest(5), bounded] {
        let failed = (0..400)
            .filter(|n| failing.answer(now_ms + n, "t", &request).is_err())
            .count();
        assert!((8..200).contains(&failed), "{failed}");
    }
}

#[test]
fn every_quirk_can_be_drawn_by_its_name() {
    for &quirk in Quirk::ALL {
        assert_eq!(quirk.to_string().parse(), Ok(quirk));
        let made = Quirks::of(&[quirk], 5);
        assert_ne!(made, Quirks::default(), "{quirk}");
        assert_eq!(made, Quirks::of(&[quirk], 5));
    }
    let (drawn, made) = Quirks::draw(Quirk::ALL, 7);
    assert!((1..=4).contains(&drawn.len()));
    assert_eq!(made, Quirks::of(&drawn, 7));
}
