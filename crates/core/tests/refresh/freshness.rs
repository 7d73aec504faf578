//! What answers make of a post's freshness.

use driftline_core::{
    post::Counts,
    refresh::{Due, Freshness, LookupOutcome, LookupResult, Policy, RequestContext},
};
use proptest::prelude::*;

const CREATED_AT_MS: i64 = 1_800_000_000_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

fn counts(favourites: i64) -> Counts {
    Counts {
        favourites: Some(favourites),
        ..Counts::default()
    }
}

fn post() -> Freshness {
    Freshness::first(Some(CREATED_AT_MS), CREATED_AT_MS, counts(0))
}

fn asked(age_ms: i64) -> RequestContext {
    RequestContext {
        at_ms: CREATED_AT_MS + age_ms,
        now_ms: CREATED_AT_MS + age_ms + 300,
        due_ms: CREATED_AT_MS + age_ms - 1,
        random: 0,
        is_open: true,
    }
}

fn seen(favourites: i64, changed: bool) -> LookupResult {
    LookupResult::Seen {
        counts: counts(favourites),
        changed,
    }
}

#[test]
fn an_answer_is_taken_and_the_next_one_is_due_by_age() {
    let policy = Policy::default();
    let first = post().take(&policy, seen(5, true), asked(3 * MINUTE_MS));
    assert_eq!(first.outcome, LookupOutcome::Updated);
    assert_eq!(first.freshness.counts, counts(5));
    assert_eq!(first.due, Due::At(CREATED_AT_MS + 6 * MINUTE_MS));
    let second = first
        .freshness
        .take(&policy, seen(5, false), asked(6 * MINUTE_MS));
    assert_eq!(second.outcome, LookupOutcome::Unchanged);
    assert_eq!(second.freshness.refreshes, 2);
    assert_eq!(second.freshness.before.map(|before| before.total), Some(5));
}

#[test]
fn an_answer_asked_for_earlier_never_wins() {
    let policy = Policy::default();
    let newer = post().take(&policy, seen(9, true), asked(HOUR_MS));
    let late = newer
        .freshness
        .take(&policy, seen(5, true), asked(HOUR_MS - 1));
    assert_eq!(late.outcome, LookupOutcome::Superseded);
    assert_eq!(late.freshness, newer.freshness);
    assert_eq!(late.due, newer.due);
    for result in [
        LookupResult::Missing,
        LookupResult::Gone,
        LookupResult::Hidden,
    ] {
        let late = newer.freshness.take(&policy, result, asked(HOUR_MS - 1));
        assert_eq!(late.outcome, LookupOutcome::Superseded, "{result:?}");
    }
}

#[test]
fn what_is_left_out_is_asked_for_once_more_before_it_is_deleted() {
    let policy = Policy::default();
    let first = post().take(&policy, LookupResult::Missing, asked(HOUR_MS));
    assert_eq!(first.outcome, LookupOutcome::Missing);
    let recheck_at_ms = asked(HOUR_MS).now_ms + MINUTE_MS;
    assert_eq!(first.due, Due::At(recheck_at_ms));
    let second = first
        .freshness
        .take(&policy, LookupResult::Missing, asked(HOUR_MS + MINUTE_MS));
    assert_eq!(second.outcome, LookupOutcome::Deleted);
    assert_eq!(second.due, Due::Retired);
    let back = first
        .freshness
        .take(&policy, seen(1, true), asked(HOUR_MS + MINUTE_MS));
    assert_eq!(back.outcome, LookupOutcome::Updated);
    assert!(!back.freshness.missing);
}

#[test]
fn what_not_everyone_may_see_is_hidden_not_deleted() {
    let policy = Policy::default();
    let closed = |age_ms| RequestContext {
        is_open: false,
        ..asked(age_ms)
    };
    let first = post().take(&policy, LookupResult::Missing, closed(HOUR_MS));
    let second = first
        .freshness
        .take(&policy, LookupResult::Missing, closed(2 * HOUR_MS));
    assert_eq!(second.outcome, LookupOutcome::Hidden);
    assert_eq!(second.due, Due::At(CREATED_AT_MS + 4 * HOUR_MS));
    let hidden = post().take(&policy, LookupResult::Hidden, asked(HOUR_MS));
    assert_eq!(hidden.outcome, LookupOutcome::Hidden);
    assert_eq!(
        post()
            .take(&policy, LookupResult::Gone, asked(HOUR_MS))
            .outcome,
        LookupOutcome::Deleted
    );
}

#[test]
fn failures_back_off_until_the_post_retires() {
    let policy = Policy::default();
    let mut now = post();
    let mut waits = Vec::new();
    for _ in 0..40 {
        let failed = now.take(&policy, LookupResult::Nothing, asked(HOUR_MS));
        assert_eq!(failed.outcome, LookupOutcome::Failed);
        let Due::At(due_ms) = failed.due else {
            panic!("{failed:?}")
        };
        waits.push(due_ms - asked(HOUR_MS).now_ms);
        now = failed.freshness;
    }
    assert_eq!(waits[..4], [5_000, 5_000, 10_000, 20_000]);
    assert_eq!(waits[8], 5_000 << 7, "doubling");
    assert_eq!(
        waits[39],
        8 * 2 * HOUR_MS,
        "up to eight intervals of its age"
    );
    let answered = now.take(&policy, seen(1, true), asked(2 * HOUR_MS));
    assert_eq!(answered.freshness.failures, 0);
    let old = now.take(&policy, LookupResult::Nothing, asked(30 * DAY_MS));
    assert_eq!(old.due, Due::Retired);
}

#[test]
fn suspects_are_due_as_they_were_until_they_retire() {
    let policy = Policy::default();
    let suspected = post().take(&policy, LookupResult::Suspect, asked(HOUR_MS));
    assert_eq!(suspected.outcome, LookupOutcome::Failed);
    assert_eq!(suspected.freshness.failures, 1);
    assert_eq!(suspected.due, Due::At(asked(HOUR_MS).due_ms));
    let old = post().take(&policy, LookupResult::Suspect, asked(30 * DAY_MS));
    assert_eq!(old.due, Due::Retired);
}

#[test]
fn what_was_not_asked_for_is_no_fresher_and_is_looked_at_again_in_an_hour() {
    let policy = Policy::default();
    for (result, outcome) in [
        (LookupResult::NoCredential, LookupOutcome::NoCredential),
        (LookupResult::Unsupported, LookupOutcome::Unsupported),
    ] {
        let left = post().take(&policy, result, asked(HOUR_MS));
        assert_eq!((left.outcome, left.freshness), (outcome, post()));
        assert_eq!(left.due, Due::At(asked(HOUR_MS).now_ms + HOUR_MS));
        let old = post().take(&policy, result, asked(30 * DAY_MS));
        assert_eq!(old.due, Due::Retired);
    }
}

#[test]
fn libraries_are_told_of_a_tenth_or_of_a_new_band_and_at_most_hourly() {
    let policy = Policy::default();
    let notifies = |from: i64, to: i64, last_age_ms: i64, age_ms: i64| {
        let mut post = post();
        post.counts = counts(from);
        post.notified.total = from;
        post.notified.at_ms = CREATED_AT_MS + last_age_ms;
        let refreshed = post.take(&policy, seen(to, from != to), asked(age_ms));
        if refreshed.notify {
            assert_eq!(refreshed.freshness.notified.total, to);
            assert_eq!(refreshed.freshness.notified.at_ms, asked(age_ms).now_ms);
        } else {
            assert_eq!(refreshed.freshness.notified, post.notified);
        }
        refreshed.notify
    };
    assert!(notifies(100, 110, 2 * HOUR_MS, 4 * HOUR_MS), "a tenth");
    assert!(notifies(100, 90, 2 * HOUR_MS, 4 * HOUR_MS), "a tenth less");
    assert!(
        !notifies(100, 109, 2 * HOUR_MS, 4 * HOUR_MS),
        "less than that"
    );
    assert!(
        !notifies(100, 200, 2 * HOUR_MS, 3 * HOUR_MS - 301),
        "too soon"
    );
    assert!(
        notifies(100, 200, 2 * HOUR_MS, 3 * HOUR_MS - 300),
        "an hour on"
    );
    assert!(notifies(100, 101, 20 * HOUR_MS, 25 * HOUR_MS), "a new band");
    assert!(!notifies(100, 100, 20 * HOUR_MS, 25 * HOUR_MS), "unchanged");
    assert!(notifies(0, 1, 2 * HOUR_MS, 4 * HOUR_MS), "the first of all");
}

fn results() -> impl Strategy<Value = LookupResult> {
    prop_oneof![
        4 => (0i64..50, any::<bool>()).prop_map(|(n, changed)| seen(n, changed)),
        1 => Just(LookupResult::Missing),
        1 => Just(LookupResult::Gone),
        1 => Just(LookupResult::Hidden),
        2 => Just(LookupResult::Nothing),
        1 => Just(LookupResult::Suspect),
        1 => Just(LookupResult::Unsupported),
    ]
}

proptest! {
    /// Law 5 for one post: after every result it is due again, or deleted, or it has outlived the table.
    #[test]
    fn a_post_never_leaves_the_schedule_without_a_reason(
        steps in prop::collection::vec((results(), 0i64..DAY_MS, any::<bool>(), any::<u64>()), 1..60),
    ) {
        let policy = Policy::default();
        let mut now = post();
        let mut age_ms = 0;
        for (result, passed_ms, is_open, random) in steps {
            age_ms += passed_ms;
            let asked = RequestContext { is_open, random, ..asked(age_ms) };
            let refreshed = now.take(&policy, result, asked);
            prop_assert!(refreshed.freshness.refreshed_ms >= now.refreshed_ms);
            match refreshed.due {
                Due::At(due_ms) if result == LookupResult::Suspect => prop_assert_eq!(due_ms, asked.due_ms),
                Due::At(due_ms) => prop_assert!(due_ms > now.refreshed_ms),
                Due::Retired => {
                    let is_over = age_ms + 300 >= 30 * DAY_MS;
                    prop_assert!(refreshed.outcome == LookupOutcome::Deleted || is_over);
                    return Ok(());
                }
                Due::Never => prop_assert!(false, "a post with a creation time is due some time"),
            }
            now = refreshed.freshness;
        }
    }
}
