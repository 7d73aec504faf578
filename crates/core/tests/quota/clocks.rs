//! The ledger under clocks that step, and in processes whose clocks differ.

use driftline_core::{
    answer::Throttle,
    clock::ClockReading,
    quota::{Grant, LedgerAge, QuotaLedger, QuotaPurpose, Unit},
};
use proptest::prelude::*;

const NOW_MS: i64 = 1_800_000_000_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const POLL: QuotaPurpose = QuotaPurpose::Poll;

/// A process: its wall clock, and what it remembers of the ledger.
#[derive(Default)]
struct Process {
    wall_ahead_ms: i64,
    begun_ms: i64,
    last: Option<LedgerAge>,
}

impl Process {
    fn clocks(&self, real_ms: i64) -> ClockReading {
        ClockReading {
            wall_ms: real_ms + self.wall_ahead_ms,
            steady_ms: real_ms - self.begun_ms,
        }
    }

    fn restart(&mut self, real_ms: i64) {
        (self.begun_ms, self.last) = (real_ms, None);
    }

    /// Takes a request of the stored ledger. Real ms until which it has to wait.
    fn take(&mut self, stored: &mut QuotaLedger, real_ms: i64) -> Result<(), i64> {
        let (mut ledger, clocks) = (stored.clone(), self.clocks(real_ms));
        let is_ahead = ledger.is_ahead(clocks.wall_ms);
        let age = ledger.sync(clocks, self.last);
        match ledger.take(1, 1, POLL, 0.0, clocks.wall_ms) {
            Grant::Requests(_) => {
                self.store(stored, ledger, clocks);
                Ok(())
            }
            Grant::Until(until_ms) => {
                match is_ahead {
                    true => self.store(stored, ledger, clocks),
                    false => self.last = Some(age),
                }
                Err(until_ms - self.wall_ahead_ms)
            }
        }
    }

    /// Stores an answer that reports a window with that end, real ms, or a refusal.
    fn answered(
        &mut self,
        stored: &mut QuotaLedger,
        (throttle, is_refused, retry_after_ms): (Option<Throttle>, bool, Option<i64>),
        real_ms: i64,
    ) {
        let (mut ledger, clocks) = (stored.clone(), self.clocks(real_ms));
        let throttle = throttle.map(|throttle| Throttle {
            reset_at_ms: throttle.reset_at_ms + self.wall_ahead_ms,
            ..throttle
        });
        let _ = ledger.sync(clocks, self.last);
        let (throttle, now_ms) = (throttle.as_ref(), clocks.wall_ms);
        match is_refused {
            true => ledger.refused(POLL, throttle, retry_after_ms, 0, now_ms),
            false => ledger.answered(POLL, throttle, now_ms),
        }
        self.store(stored, ledger, clocks);
    }

    fn store(&mut self, stored: &mut QuotaLedger, ledger: QuotaLedger, clocks: ClockReading) {
        self.last = Some(ledger.stored(clocks));
        *stored = ledger;
    }
}

fn used_up(ends_ms: i64) -> Option<Throttle> {
    Some(Throttle {
        limit: 300,
        remaining: 0,
        reset_at_ms: ends_ms,
        error_ms: 0,
    })
}

#[test]
fn a_window_that_was_reported_while_the_clock_was_ahead_ends_after_its_length() {
    let mut ledger = QuotaLedger::default();
    let mut ahead = Process {
        wall_ahead_ms: 2 * DAY_MS,
        ..Process::default()
    };
    let ends_ms = NOW_MS + 5 * MINUTE_MS;
    ahead.answered(&mut ledger, (used_up(ends_ms), false, None), NOW_MS);
    let mut other = Process::default();
    assert_eq!(
        other.take(&mut ledger, NOW_MS + 1_000),
        Err(ends_ms + 1_000)
    );
    // Asked again, it does not wait for longer.
    assert_eq!(other.take(&mut ledger, ends_ms), Err(ends_ms + 1_000));
    assert_eq!(other.take(&mut ledger, ends_ms + 1_000), Ok(()));
}

#[test]
fn a_wait_survives_a_restart_and_is_lengthened_by_no_step() {
    for step_ms in [20 * MINUTE_MS, 2 * HOUR_MS, 2 * DAY_MS] {
        let (mut ledger, mut process) = (QuotaLedger::default(), Process::default());
        let refusal = (None, true, Some(2 * MINUTE_MS));
        process.wall_ahead_ms = step_ms;
        process.answered(&mut ledger, refusal, NOW_MS);
        process.wall_ahead_ms = 0;
        let until_ms = NOW_MS + 2 * MINUTE_MS;
        let at_ms = NOW_MS + 30_000;
        assert_eq!(process.take(&mut ledger, at_ms), Err(until_ms), "{step_ms}");
        process.wall_ahead_ms = step_ms;
        assert_eq!(process.take(&mut ledger, at_ms), Err(until_ms), "{step_ms}");
        process.wall_ahead_ms = 0;
        process.answered(&mut ledger, (None, false, None), at_ms);
        process.restart(at_ms);
        assert_eq!(process.take(&mut ledger, at_ms), Err(until_ms), "{step_ms}");
        assert_eq!(process.take(&mut ledger, until_ms), Ok(()), "{step_ms}");
    }
}

#[test]
fn posts_of_a_month_stay_counted_when_the_clock_shows_another_month_meanwhile() {
    let mut ledger = QuotaLedger::default();
    let (this_ms, next_ms) = (NOW_MS + DAY_MS, NOW_MS + 31 * DAY_MS);
    let used = |ledger: &QuotaLedger| ledger.cap().map(|cap| cap.limit - cap.remaining);
    ledger.set_cap(1_000, this_ms, 30 * DAY_MS);
    ledger.settle(0, 600);
    ledger.set_cap(1_000, next_ms, 30 * DAY_MS);
    assert_eq!(used(&ledger), Some(0));
    ledger.settle(0, 50);
    ledger.set_cap(1_000, this_ms, 30 * DAY_MS);
    assert_eq!(used(&ledger), Some(600));
    ledger.set_cap(1_000, next_ms, 30 * DAY_MS);
    assert_eq!(used(&ledger), Some(50));
}

#[derive(Debug, Clone, Copy)]
enum Act {
    /// The clock of a process is that far ahead from now on, ms.
    Step(i64),
    Restart,
    Nothing,
}

fn act() -> impl Strategy<Value = Act> {
    let ahead_ms = prop::sample::select(vec![
        0,
        0,
        20 * MINUTE_MS,
        -20 * MINUTE_MS,
        2 * HOUR_MS,
        -2 * HOUR_MS,
        2 * DAY_MS,
        -2 * DAY_MS,
    ]);
    prop_oneof![
        3 => ahead_ms.prop_map(Act::Step),
        1 => Just(Act::Restart),
        6 => Just(Act::Nothing),
    ]
}

const LIMIT: u32 = 40;
const LENGTH_MS: i64 = 5 * MINUTE_MS;
const WINDOWS: i64 = 6;

/// Processes with endless work share a ledger while their clocks step. Returns the server's refusals, the restarts, and
/// the longest time without a request, ms.
fn run(acts: &[(usize, Act)], pace_ms: i64, processes: usize) -> (u32, u32, i64) {
    let mut ledger = QuotaLedger::default();
    let mut processes: Vec<Process> = (0..processes).map(|_| Process::default()).collect();
    let count = processes.len();
    let (mut window, mut used, mut refused, mut restarts) = (0, 0, 0, 0);
    let (mut asked_ms, mut longest_ms) = (NOW_MS, 0);
    let mut acts = acts.iter().cycle();
    for (turn, real_ms) in (NOW_MS..NOW_MS + WINDOWS * LENGTH_MS)
        .step_by(pace_ms as usize)
        .enumerate()
    {
        if turn > 0
            && turn % 7 == 0
            && let Some((which, act)) = acts.next()
        {
            let process = &mut processes[which % count];
            match *act {
                Act::Step(ahead_ms) => process.wall_ahead_ms = ahead_ms,
                // Alone, it would have to know how long it was away.
                Act::Restart if count > 1 => {
                    restarts += 1;
                    process.restart(real_ms);
                }
                Act::Restart | Act::Nothing => {}
            }
        }
        let process = &mut processes[turn % count];
        if process.take(&mut ledger, real_ms).is_err() {
            continue;
        }
        longest_ms = longest_ms.max(real_ms - asked_ms);
        asked_ms = real_ms;
        let now = real_ms / LENGTH_MS;
        used = if now == window { used + 1 } else { 1 };
        window = now;
        let is_refused = used > LIMIT;
        refused += u32::from(is_refused);
        let throttle = Throttle {
            limit: LIMIT,
            remaining: LIMIT.saturating_sub(used),
            reset_at_ms: (now + 1) * LENGTH_MS,
            error_ms: 0,
        };
        process.answered(&mut ledger, (Some(throttle), is_refused, None), real_ms);
    }
    let requests = ledger.windows().iter().filter(|w| w.unit == Unit::Requests);
    assert!(requests.count() <= 8);
    (
        refused,
        restarts,
        longest_ms.max(NOW_MS + WINDOWS * LENGTH_MS - asked_ms),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Whatever the clock of a running process does, no window is overrun, and no wait lasts longer than a window.
    #[test]
    fn no_step_of_the_clock_overruns_a_window_or_prolongs_it(
        acts in prop::collection::vec((0usize..1, act()), 1..60),
        pace_ms in 200i64..9_000,
    ) {
        let (refused, _, longest_ms) = run(&acts, pace_ms, 1);
        prop_assert_eq!(refused, 0);
        prop_assert!(longest_ms <= LENGTH_MS + 3_000 + 2 * pace_ms, "{longest_ms}");
    }

    /// Processes whose clocks differ, and those that start with a wrong one, cannot know how old the ledger is: each may
    /// send one request too many in a window, or count it from its own beginning.
    #[test]
    fn processes_with_wrong_clocks_overrun_a_window_by_one_request_each(
        acts in prop::collection::vec((0usize..2, act()), 1..60),
        pace_ms in 200i64..9_000,
    ) {
        let (refused, restarts, longest_ms) = run(&acts, pace_ms, 2);
        let allowed = 2 * WINDOWS as u32 + restarts;
        prop_assert!(refused <= allowed, "{refused} refused, {restarts} restarts");
        let allowed_ms = i64::from(1 + restarts) * LENGTH_MS + 3_000 + 2 * pace_ms;
        prop_assert!(longest_ms <= allowed_ms, "{longest_ms} of {allowed_ms}");
    }
}
