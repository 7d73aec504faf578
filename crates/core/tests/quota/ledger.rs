//! The ledger, case by case.

use driftline_core::{
    answer::Throttle,
    quota::{
        Grant::{self, Requests, Until},
        QuotaLedger,
        QuotaPurpose::{self, Poll, Refresh},
        QuotaView, Unit,
    },
};

const SHARE: f64 = 0.5;

fn throttle(limit: u32, remaining: u32, reset_at_ms: i64) -> Throttle {
    Throttle {
        limit,
        remaining,
        reset_at_ms,
        error_ms: 0,
    }
}

/// A ledger that knows a whole window of 300 requests in 300 s from 0 on.
fn known() -> QuotaLedger {
    let mut ledger = QuotaLedger::default();
    ledger.answered(Refresh, Some(&throttle(300, 300, 300_000)), 0);
    ledger
}

/// Takes requests for one post each.
fn take(ledger: &mut QuotaLedger, count: u32, purpose: QuotaPurpose, now_ms: i64) -> Grant {
    ledger.take(count, 1, purpose, SHARE, now_ms)
}

fn left(ledger: &QuotaLedger) -> u32 {
    ledger.windows()[0].remaining
}

#[test]
fn before_anything_is_known_requests_go_one_by_one() {
    let mut ledger = QuotaLedger::default();
    assert_eq!(ledger.take(8, 100, Poll, SHARE, 0), Requests(1));
    ledger.answered(Refresh, None, 10);
    assert_eq!(ledger.take(8, 100, Refresh, SHARE, 20), Requests(1));
}

#[test]
fn what_is_taken_is_gone_before_it_is_sent() {
    let mut ledger = known();
    assert_eq!(take(&mut ledger, 8, Poll, 0), Requests(8));
    assert_eq!(left(&ledger), 292);
}

#[test]
fn refreshing_leaves_polling_its_share_and_the_share_fades() {
    let mut ledger = known();
    assert_eq!(take(&mut ledger, 1_000, Refresh, 0), Requests(150));
    // One more is free when the rest of the window would bring 149 for polling.
    assert_eq!(take(&mut ledger, 8, Refresh, 0), Until(2_000));
    assert_eq!(take(&mut ledger, 8, Refresh, 2_000), Requests(1));
    assert_eq!(take(&mut ledger, 1_000, Poll, 2_000), Requests(149));
    assert_eq!(take(&mut ledger, 1, Poll, 2_000), Until(300_000));
    let mut unused = known();
    assert_eq!(take(&mut unused, 1_000, Refresh, 299_990), Requests(300));
}

#[test]
fn a_late_answer_never_raises_what_is_left() {
    let mut ledger = known();
    take(&mut ledger, 10, Poll, 0);
    ledger.answered(Refresh, Some(&throttle(300, 299, 300_500)), 50);
    assert_eq!(left(&ledger), 290);
    ledger.answered(Refresh, Some(&throttle(300, 250, 300_500)), 60);
    assert_eq!(left(&ledger), 250, "others used it too");
    assert_eq!(ledger.windows()[0].others, 40);
    ledger.answered(Refresh, Some(&throttle(300, 280, 300_500)), 70);
    assert_eq!(left(&ledger), 250);
}

#[test]
fn a_window_begins_anew_when_its_time_is_over() {
    let mut ledger = known();
    take(&mut ledger, 1_000, Poll, 0);
    assert_eq!(take(&mut ledger, 1, Poll, 299_999), Until(300_000));
    assert_eq!(
        take(&mut ledger, 8, Poll, 300_000),
        Requests(1),
        "one, until an answer reports it"
    );
    ledger.answered(Refresh, Some(&throttle(300, 299, 600_000)), 300_100);
    assert_eq!(take(&mut ledger, 8, Poll, 300_100), Requests(8));
    // An answer of the window before, which took long.
    ledger.answered(Refresh, Some(&throttle(300, 0, 300_000)), 300_200);
    assert_eq!(left(&ledger), 291);
}

#[test]
fn the_length_of_windows_is_learned() {
    let mut ledger = QuotaLedger::default();
    // First seen in its last 50 s.
    ledger.answered(Refresh, Some(&throttle(300, 20, 300_000)), 250_000);
    assert_eq!(take(&mut ledger, 1, Poll, 301_000), Requests(1));
    ledger.answered(Refresh, Some(&throttle(300, 299, 600_000)), 301_100);
    assert_eq!(ledger.windows()[0].length_ms, 300_000);
    assert_eq!(ledger.windows().len(), 1);
}

#[test]
fn every_window_binds() {
    let mut ledger = known();
    ledger.answered(Refresh, Some(&throttle(1_500, 4, 900_000)), 0);
    assert_eq!(take(&mut ledger, 8, Poll, 0), Requests(4));
    assert_eq!(take(&mut ledger, 8, Poll, 0), Until(900_000));
}

#[test]
fn what_only_pages_are_told_of_does_not_bind_look_ups() {
    let mut ledger = QuotaLedger::default();
    ledger.answered(Poll, Some(&throttle(300, 2, 900_000)), 0);
    ledger.answered(Refresh, Some(&throttle(300, 299, 300_000)), 10);
    assert_eq!(take(&mut ledger, 2, Refresh, 20), Requests(2));
    let left: Vec<u32> = ledger.windows().iter().map(|w| w.remaining).collect();
    assert_eq!(
        left,
        [2, 297],
        "look-ups are not taken from the pages' limit"
    );
    assert_eq!(take(&mut ledger, 8, Poll, 30), Requests(2));
    assert_eq!(take(&mut ledger, 1, Poll, 40), Until(900_000));
    assert_eq!(take(&mut ledger, 1, Refresh, 50), Requests(1));
    // A page's refusal is of the limit that ends with it.
    let reported = throttle(300, 0, 900_000);
    ledger.refused(Poll, Some(&reported), None, 0, 60);
    assert_eq!(take(&mut ledger, 1, Refresh, 70), Requests(1));
}

#[test]
fn what_a_look_up_is_told_of_binds_both() {
    let mut ledger = QuotaLedger::default();
    ledger.answered(Poll, Some(&throttle(300, 9, 300_000)), 0);
    for _ in 0..3 {
        assert_eq!(take(&mut ledger, 8, Refresh, 1), Requests(1));
    }
    ledger.answered(Refresh, Some(&throttle(300, 8, 300_000)), 2);
    assert_eq!(left(&ledger), 6, "two more are under way");
    assert_eq!(take(&mut ledger, 8, Poll, 3), Requests(6));
    let bound = take(&mut ledger, 1, Refresh, 4);
    assert!(matches!(bound, Until(_)), "{bound:?}");
    assert_eq!(ledger.windows().len(), 1);
}

#[test]
fn two_windows_that_end_together_are_told_apart_later() {
    let mut ledger = QuotaLedger::default();
    // 300 in 15 minutes for pages and 300 in 5 minutes for all, in the last 5 of the 15.
    ledger.answered(Poll, Some(&throttle(300, 290, 300_000)), 0);
    ledger.answered(Refresh, Some(&throttle(300, 299, 300_000)), 1);
    ledger.answered(Poll, Some(&throttle(300, 200, 1_200_000)), 300_001);
    ledger.answered(Refresh, Some(&throttle(300, 298, 600_000)), 300_002);
    ledger.answered(Poll, Some(&throttle(300, 0, 1_200_000)), 300_003);
    ledger.answered(Refresh, Some(&throttle(300, 297, 600_000)), 300_004);
    assert_eq!(take(&mut ledger, 1, Refresh, 300_005), Requests(1));
    let polls = take(&mut ledger, 1, Poll, 300_006);
    assert_eq!(polls, Until(1_200_000));
}

#[test]
fn a_lowered_limit_replaces_the_one_before() {
    let mut ledger = known();
    take(&mut ledger, 1, Poll, 300_000);
    ledger.answered(Refresh, Some(&throttle(100, 99, 600_000)), 300_100);
    assert_eq!(ledger.windows().len(), 1);
    assert_eq!(ledger.windows()[0].limit, 100);
}

#[test]
fn an_unexpected_refusal_is_use_by_others() {
    let mut ledger = known();
    take(&mut ledger, 10, Poll, 0);
    let reported = throttle(300, 0, 300_000);
    ledger.refused(Refresh, Some(&reported), None, 0, 100);
    assert_eq!(ledger.windows()[0].others, 290);
    assert_eq!(take(&mut ledger, 1, Poll, 100), Until(300_000));
}

#[test]
fn refusals_without_headers_back_off() {
    let mut ledger = QuotaLedger::default();
    ledger.refused(Refresh, None, Some(7_000), 0, 0);
    assert_eq!(take(&mut ledger, 1, Poll, 6_999), Until(7_000));
    ledger.refused(Refresh, None, None, 0, 10_000);
    ledger.refused(Refresh, None, None, 0, 40_000);
    assert_eq!(ledger.blocked_until_ms(), Some(70_000));
    ledger.answered(Refresh, None, 70_000);
    assert_eq!(ledger.blocked_until_ms(), None);
}

#[test]
fn a_cap_on_posts_is_spent_evenly_and_what_was_not_read_comes_back() {
    let mut ledger = known();
    ledger.set_cap(3_000_000, 30_000_000, 30_000_000);
    assert_eq!(ledger.take(8, 100, Refresh, SHARE, 0), Requests(8));
    let cap = *ledger.cap().expect("a cap");
    assert_eq!((cap.unit, cap.remaining), (Unit::Posts, 2_999_200));
    ledger.settle(100, 70);
    ledger.set_cap(3_000_000, 30_000_000, 30_000_000);
    assert_eq!(ledger.cap().expect("a cap").remaining, 2_999_230);
    ledger.settle(0, 31);
    assert_eq!(ledger.cap().expect("a cap").remaining, 2_999_199);
    assert_eq!(ledger.windows()[0].unit, Unit::Requests);
    assert_eq!(ledger.windows()[0].remaining, 292, "requests are no posts");
    let mut spent = known();
    spent.set_cap(250, 30_000_000, 30_000_000);
    assert_eq!(spent.take(8, 100, Poll, SHARE, 0), Requests(2));
    assert_eq!(spent.take(8, 100, Poll, SHARE, 0), Until(30_000_000));
}

#[test]
fn nothing_hostile_breaks_it() {
    let mut ledger = QuotaLedger::default();
    for reported in [
        throttle(0, 0, i64::MAX),
        throttle(u32::MAX, u32::MAX, 1),
        throttle(0, u32::MAX, i64::MIN),
        throttle(1, 7, i64::MAX - 1),
    ] {
        ledger.answered(Refresh, Some(&reported), 0);
        ledger.refused(Refresh, Some(&reported), Some(i64::MAX), 1, 5);
        ledger.take(u32::MAX, u32::MAX, Refresh, SHARE, i64::MAX - 3);
        ledger.take(0, 0, Poll, SHARE, i64::MIN);
    }
}

#[test]
fn requests_are_spaced_by_the_tightest_window_until_it_ends() {
    let mut ledger = QuotaLedger::default();
    assert_eq!(ledger.view(0), QuotaView::default());
    for reported in [throttle(300, 300, 900_000), throttle(300, 10, 300_000)] {
        ledger.answered(Poll, Some(&reported), 0);
    }
    let spacing_ms = |ledger: &QuotaLedger, now_ms| ledger.view(now_ms).spacing_ms;
    assert_eq!(spacing_ms(&ledger, 0), 30_000, "the short one is tighter");
    assert_eq!(ledger.view(0).tightest, Some(throttle(300, 10, 300_000)));
    assert_eq!(
        spacing_ms(&ledger, 300_000),
        2_000,
        "the long one is still in force"
    );
    assert_eq!(ledger.view(900_000), QuotaView::default());
}

#[test]
fn a_used_up_window_is_shown_and_does_not_space_requests() {
    let mut ledger = QuotaLedger::default();
    let reported = throttle(300, 1, 60_000);
    ledger.answered(Poll, Some(&reported), 0);
    take(&mut ledger, 1, Poll, 0);
    let view = ledger.view(0);
    assert_eq!(view.spacing_ms, 0);
    assert_eq!(view.tightest, Some(throttle(300, 0, 60_000)));
}
