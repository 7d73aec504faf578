//! Reports whose ends are known with an error: answers take their time, and a `Date` is exact to a second.

use driftline_core::{
    answer::Throttle,
    quota::{Grant, QuotaLedger, QuotaPurpose::Refresh, Unit, Window},
};
use proptest::prelude::*;

/// A limit of a server, in windows that follow each other.
struct Limit {
    limit: u32,
    length_ms: i64,
    window: i64,
    used: u32,
}

impl Limit {
    fn count(&mut self, now_ms: i64) {
        let window = now_ms / self.length_ms;
        if window != self.window {
            (self.window, self.used) = (window, 0);
        }
        self.used += 1;
    }

    /// What an answer reports of it that was written at `seen_ms` and received at `back_ms`.
    fn report(&self, seen_ms: i64, back_ms: i64, took_ms: i64) -> Throttle {
        let date_ms = seen_ms / 1_000 * 1_000;
        Throttle {
            limit: self.limit,
            remaining: self.limit.saturating_sub(self.used),
            reset_at_ms: (self.window + 1) * self.length_ms + back_ms - date_ms,
            error_ms: took_ms + 1_000,
        }
    }
}

struct OnItsWay {
    seen_ms: i64,
    back_ms: i64,
    took_ms: i64,
    answer: Option<Throttle>,
}

fn of_requests(ledger: &QuotaLedger) -> Vec<Window> {
    let windows = ledger.windows().iter().copied();
    windows
        .filter(|window| window.unit == Unit::Requests)
        .collect()
}

/// Requests that nobody else's are counted with, a few at a time on their way. Returns the most windows that the
/// ledger had at a time, and the most that one was used by others.
fn run(limits: &mut [Limit], took_ms: &[i64], ends_ms: i64) -> (usize, u32) {
    let mut ledger = QuotaLedger::default();
    let mut on_their_way: [Option<OnItsWay>; PROCESSES] = [const { None }; PROCESSES];
    let mut took = took_ms.iter().copied().cycle();
    let (mut most, mut others) = (0, 0);
    for now_ms in (0..ends_ms).step_by(250) {
        for way in &mut on_their_way {
            if let Some(sent) = way {
                if sent.answer.is_none() && now_ms >= sent.seen_ms {
                    for limit in limits.iter_mut() {
                        limit.count(sent.seen_ms);
                    }
                    let left = |limit: &&Limit| limit.limit.saturating_sub(limit.used);
                    let tightest = limits.iter().min_by_key(left).expect("a limit");
                    let report = tightest.report(sent.seen_ms, sent.back_ms, sent.took_ms);
                    sent.answer = Some(report);
                }
                if now_ms >= sent.back_ms {
                    ledger.answered(Refresh, sent.answer.as_ref(), now_ms);
                    *way = None;
                }
            } else if let Grant::Requests(_) = ledger.take(1, 1, Refresh, 0.0, now_ms) {
                let took_ms = took.next().expect("endless");
                *way = Some(OnItsWay {
                    seen_ms: now_ms + took_ms / 3,
                    back_ms: now_ms + took_ms,
                    took_ms,
                    answer: None,
                });
            }
        }
        let windows = of_requests(&ledger);
        most = most.max(windows.len());
        others = others.max(windows.iter().map(|w| w.others).max().unwrap_or(0));
    }
    (most, others)
}

const PROCESSES: usize = 3;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Each limit is one window, and what a request in flight is counted in is all that differs.
    #[test]
    fn slow_answers_make_no_windows_and_no_others(
        took_ms in prop::collection::vec(50i64..9_000, 1..40),
    ) {
        let limit = |limit, length_ms| Limit { limit, length_ms, window: 0, used: 0 };
        let mut limits = [limit(300, 300_000), limit(1_500, 900_000), limit(100, 60_000)];
        let (windows, others) = run(&mut limits, &took_ms, 3_600_000);
        prop_assert!(windows <= 3, "{windows} windows");
        prop_assert!(others <= 2 * PROCESSES as u32, "{others} used by others");
    }
}

/// A limit that no answer reports for a while keeps a guessed length (1,251 ms), and one whose end an answer
/// may have passed is no limit of pages alone (2,751 ms).
#[test]
fn answers_that_all_take_as_long_make_no_windows_and_no_others() {
    for took_ms in (51..9_000).step_by(100) {
        let limit = |limit, length_ms| Limit {
            limit,
            length_ms,
            window: 0,
            used: 0,
        };
        let mut limits = [
            limit(300, 300_000),
            limit(1_500, 900_000),
            limit(100, 60_000),
        ];
        let (windows, others) = run(&mut limits, &[took_ms], 3_600_000);
        assert!(windows <= 3, "{windows} windows at {took_ms} ms");
        assert!(others <= 6, "{others} used by others at {took_ms} ms");
    }
}

fn throttle(remaining: u32, reset_at_ms: i64, error_ms: i64) -> Throttle {
    Throttle {
        limit: 300,
        remaining,
        reset_at_ms,
        error_ms,
    }
}

#[test]
fn the_end_that_is_known_best_counts() {
    let mut ledger = QuotaLedger::default();
    ledger.answered(Refresh, Some(&throttle(200, 307_000, 8_000)), 100_000);
    ledger.answered(Refresh, Some(&throttle(199, 300_200, 1_300)), 101_000);
    ledger.answered(Refresh, Some(&throttle(198, 308_500, 9_000)), 102_000);
    let windows = of_requests(&ledger);
    assert_eq!(windows.len(), 1, "{windows:?}");
    assert_eq!((windows[0].remaining, windows[0].others), (198, 2));
    assert_eq!(windows[0].reset_at_ms, 300_200);
}

#[test]
fn a_late_answer_of_the_window_before_is_no_use_by_others() {
    for (reset_at_ms, error_ms) in [
        // The answer was written before the end and came after it.
        (303_000, 4_000),
        // Another process's clock is behind: the window was begun too early.
        (302_000, 500),
    ] {
        let mut ledger = QuotaLedger::default();
        ledger.answered(Refresh, Some(&throttle(299, 300_000, 1_000)), 0);
        let next = ledger.take(1, 1, Refresh, 0.0, 300_500);
        assert_eq!(next, Grant::Requests(1));
        let late = throttle(58, reset_at_ms, error_ms);
        ledger.answered(Refresh, Some(&late), 300_600);
        ledger.answered(Refresh, Some(&throttle(290, 600_000, 1_000)), 310_000);
        let windows = of_requests(&ledger);
        assert_eq!(windows.len(), 1, "{windows:?}");
        assert!(windows[0].others <= 10, "{windows:?}");
        assert_eq!(windows[0].reset_at_ms, 600_000, "{windows:?}");
        assert!(windows[0].length_ms >= 298_000, "{windows:?}");
    }
}

/// The end of a window is known by its latest time: the server's next one has begun before.
#[test]
fn a_window_that_begins_early_is_no_second_one() {
    let mut ledger = QuotaLedger::default();
    ledger.answered(Refresh, Some(&throttle(200, 300_900, 1_000)), 0);
    ledger.answered(Refresh, Some(&throttle(299, 600_400, 1_000)), 300_200);
    ledger.answered(Refresh, Some(&throttle(280, 600_500, 1_000)), 310_000);
    let windows = of_requests(&ledger);
    assert_eq!(windows.len(), 1, "{windows:?}");
    assert_eq!((windows[0].remaining, windows[0].assumed), (280, false));
}

#[test]
fn a_refusal_at_the_end_of_a_window_is_of_that_one() {
    let mut ledger = QuotaLedger::default();
    ledger.answered(Refresh, Some(&throttle(1, 300_000, 1_000)), 0);
    ledger.take(1, 1, Refresh, 0.0, 300_500);
    let late = throttle(0, 303_000, 4_000);
    ledger.refused(Refresh, Some(&late), None, 0, 300_600);
    assert_eq!(of_requests(&ledger)[0].others, 0);
    let waits = ledger.take(1, 1, Refresh, 0.0, 300_700);
    assert_eq!(waits, Grant::Until(303_000));
    assert_eq!(ledger.take(1, 1, Refresh, 0.0, 303_000), Grant::Requests(1));
}

/// As an earlier version stored it: one limit in four windows.
#[test]
fn windows_that_were_taken_for_several_become_one() {
    let window = |remaining, reset_at_ms: i64, length_ms, assumed| {
        serde_json::json!({
            "unit": "requests", "limit": 300, "remaining": remaining, "reset_at_ms": reset_at_ms,
            "length_ms": length_ms, "others": 0, "assumed": assumed, "late": 0,
        })
    };
    let stored = serde_json::json!({
        "windows": [
            window(120, 300_000, 300_000, false),
            window(118, 301_500, 300_000, false),
            window(119, 302_900, 200_000, false),
            window(290, 420_000, 70_000, true),
        ],
        "as_of_ms": 0,
    });
    let mut ledger: QuotaLedger = serde_json::from_value(stored).expect("a ledger");
    ledger.answered(Refresh, Some(&throttle(117, 301_000, 1_200)), 100_000);
    let windows = of_requests(&ledger);
    assert_eq!(windows.len(), 2, "{windows:?}");
    assert_eq!(windows[0].remaining, 117);
    // No answer reports the other one.
    for minute in 6..20 {
        let at_ms = minute * 60_000;
        ledger.take(1, 1, Refresh, 0.0, at_ms);
        let reset_at_ms = (at_ms / 300_000 + 1) * 300_000 + 1_000;
        ledger.answered(Refresh, Some(&throttle(100, reset_at_ms, 1_200)), at_ms);
    }
    assert_eq!(of_requests(&ledger).len(), 1, "{:?}", ledger.windows());
}
