//! Posts that pages lack, where look-ups prove nothing.

use driftline_core::{
    answer::FailureKind,
    timeline::{GapKind, Rung},
};

use super::{
    harness::Harness,
    laws::{START_MS, settings},
    scenes::{post, world},
};

const SECOND_MS: i64 = 1_000;
const MINUTE_MS: i64 = 60 * SECOND_MS;

/// A busy source whose every tenth post is deleted soon, and that no look-up answers of.
fn unanswered(kind: FailureKind) -> Harness {
    let posts = (0..600).map(|n| {
        let mut post = post(START_MS + n * 500, n as u64, START_MS + n * 500);
        post.deleted_at_ms = (n % 10 == 3).then_some(START_MS + n * 500 + 5 * SECOND_MS);
        post
    });
    let mut harness = Harness::new(world(posts.collect()), settings(), START_MS, 31);
    harness.look_ups_fail = Some(kind);
    harness
}

#[test]
fn failing_look_ups_hold_nothing_up() {
    for kind in [
        FailureKind::Unauthorized,
        FailureKind::ServerError,
        FailureKind::BadId,
        FailureKind::TimedOut,
    ] {
        let mut harness = unanswered(kind);
        // A gap of several pages in the middle.
        harness.run(START_MS + 100 * SECOND_MS, Harness::assert_ledger_is_sound);
        harness.now_ms = START_MS + 200 * SECOND_MS;
        harness.run(START_MS + 320 * SECOND_MS, Harness::assert_ledger_is_sound);
        assert_eq!(harness.open_gaps(), 0, "{kind}");
        harness.settle(Harness::assert_ledger_is_sound);
        assert!(harness.missed().is_empty(), "{kind}");
        assert!(!harness.look_ups.is_empty());
        let for_s = (harness.now_ms - START_MS) / SECOND_MS;
        let look_ups = harness.look_ups.len() as i64;
        // One a second was what a refused one cost.
        assert!(look_ups < for_s / 10, "{kind}: {look_ups} in {for_s} s");
        assert_eq!(harness.machine().counters().deleted, 0);
        assert!(harness.machine().look_up_error().is_some());
    }
}

#[test]
fn a_post_is_asked_for_ever_more_rarely_and_then_left() {
    let posts = (0..40).map(|n| {
        let mut post = post(START_MS + n * 20_000, n as u64, START_MS + n * 20_000);
        post.deleted_at_ms = (n == 5).then_some(START_MS + 105 * SECOND_MS);
        post
    });
    let mut harness = Harness::new(world(posts.collect()), settings(), START_MS, 32);
    harness.look_ups_fail = Some(FailureKind::Unauthorized);
    harness.run(START_MS + 60 * MINUTE_MS, Harness::assert_ledger_is_sound);
    let first = harness.look_ups.first().expect("a look-up").0.clone();
    let of_first = harness.look_ups.iter().filter(|(id, _)| *id == first);
    let times: Vec<i64> = of_first.map(|(_, at_ms)| *at_ms).collect();
    // A second page lacks it after two minutes, and it has left: no later rung begins again.
    assert!((3..=8).contains(&times.len()), "{times:?}");
    let delays: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(
        delays[0] >= 5 * SECOND_MS && delays[1] >= 20 * SECOND_MS,
        "{delays:?}"
    );
    assert!(harness.machine().counters().not_confirmed > 0);
    let last_ms = harness.look_ups.last().unwrap().1;
    assert!(
        last_ms < START_MS + 40 * MINUTE_MS,
        "nothing repeats for ever"
    );
}

/// GoToSocial's public timeline without a token: look-ups need one, and the next rung comes hours
/// later, or never.
#[test]
fn where_look_ups_cannot_tell_a_second_page_within_five_minutes_ends_the_entry() {
    for (kind, knows_min_id) in [
        (FailureKind::Unauthorized, true),
        (FailureKind::Unauthorized, false),
        (FailureKind::ServerError, true),
    ] {
        let posts = (0..120).map(|n| {
            let mut post = post(START_MS + n * 500, n as u64, START_MS + n * 500);
            // After the second look, before the last rung.
            post.deleted_at_ms = (n % 10 == 3).then_some(START_MS + 90 * SECOND_MS);
            post
        });
        let mut harness = Harness::new(world(posts.collect()), settings(), START_MS, 34);
        harness.world.knows_min_id = knows_min_id;
        harness.look_ups_fail = Some(kind);
        harness.settings.rungs.pop();
        harness.settings.rungs[0].age_ms = 120 * SECOND_MS;
        // All is read at the last rung by then.
        harness.run(START_MS + 270 * SECOND_MS, Harness::assert_ledger_is_sound);
        let of = |harness: &Harness| harness.stored.values().filter(|row| row.left).count();
        assert!(of(&harness) < 12, "{kind}: one page is not enough");
        harness.run(START_MS + 9 * MINUTE_MS, Harness::assert_ledger_is_sound);
        assert_eq!(of(&harness), 12, "{kind}: two pages lacked them");
        // Then nothing is asked for any more.
        let before = harness.others_ms.len();
        harness.run(START_MS + 60 * MINUTE_MS, Harness::assert_ledger_is_sound);
        let pages = harness.others_ms.len() - before;
        assert!(pages < 80, "{kind}: {pages}");
    }
}

/// Where look-ups answer, no page is asked for twice.
#[test]
fn a_look_up_that_answers_makes_the_second_page_needless() {
    let mut harness = unanswered(FailureKind::ServerError);
    harness.look_ups_fail = None;
    harness.run(START_MS + 9 * MINUTE_MS, |harness| {
        assert!(harness.stored.values().all(|row| !row.left));
    });
    assert!(harness.machine().counters().deleted >= 50);
}

/// Else each of sixty posts would wait five times for its turn, five minutes each.
#[test]
fn where_no_look_up_ever_answers_each_post_is_asked_for_once() {
    let mut harness = unanswered(FailureKind::Unauthorized);
    harness.settings.every_ms = 10 * SECOND_MS;
    let end_ms = START_MS + 9 * 60 * MINUTE_MS;
    harness.run(end_ms, Harness::assert_ledger_is_sound);
    assert!(harness.machine().counters().not_confirmed > 20);
    let last_ms = harness.look_ups.last().expect("a look-up").1;
    assert!(last_ms < end_ms - 60 * MINUTE_MS, "asked for still");
}

/// What a timeline no longer reaches down to has not left it: the harness sees to that.
#[test]
fn posts_out_of_reach_are_looked_up_and_no_page_proves_them_absent() {
    let mut harness = unanswered(FailureKind::ServerError);
    harness.look_ups_fail = None;
    harness.world.reach = Some(60);
    harness.settings.rungs = vec![Rung {
        age_ms: 100 * SECOND_MS,
        period_ms: 50 * SECOND_MS,
    }];
    harness.run(START_MS + 320 * SECOND_MS, Harness::assert_ledger_is_sound);
    harness.settle(Harness::assert_ledger_is_sound);
    assert!(harness.machine().counters().deleted > 0);
}

/// Nothing shows whether the lowest posts are deleted, or no longer reached.
#[test]
fn a_range_whose_look_ups_prove_nothing_is_listed_as_unread() {
    for kind in [FailureKind::Unauthorized, FailureKind::ServerError] {
        let posts = (0..10).map(|n| {
            let mut post = post(START_MS - 20_000 + n * 2_000, n as u64, START_MS - 20_000);
            post.deleted_at_ms = (n < 3).then_some(START_MS + 5 * SECOND_MS);
            post
        });
        let mut harness = Harness::new(world(posts.collect()), settings(), START_MS, 33);
        harness.look_ups_fail = Some(kind);
        harness.run(START_MS + 40 * MINUTE_MS, Harness::assert_ledger_is_sound);
        let before = harness.requests;
        harness.run(START_MS + 50 * MINUTE_MS, Harness::assert_ledger_is_sound);
        // One poll a second, and hardly anything else.
        let others = harness.requests as i64 - before as i64 - 600;
        assert!(others < 30, "{kind}: {others} requests beside the polls");
        let gaps = harness.machine().ledger().gaps();
        let is_listed =
            |kind: &GapKind| matches!(kind, GapKind::Unrecoverable | GapKind::PassedOver { .. });
        assert!(gaps.iter().all(|gap| is_listed(&gap.kind)), "{gaps:?}");
        assert!(!gaps.is_empty());
    }
}
