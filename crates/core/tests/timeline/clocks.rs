//! A local clock that is set, both ways, while a source is read and between two processes.

use driftline_core::{
    answer::{Abilities, Failure, FailureKind},
    timeline::{Machine, RequestPurpose, Settings, Step},
};

use super::{
    harness::Harness,
    laws::{START_MS as NOW_MS, settings},
    scenes::{post, world},
};

const MINUTE_MS: i64 = 60_000;
const STEPS_MS: [i64; 6] = [
    20 * MINUTE_MS,
    -20 * MINUTE_MS,
    120 * MINUTE_MS,
    -120 * MINUTE_MS,
    2_880 * MINUTE_MS,
    -2_880 * MINUTE_MS,
];
const ABILITIES: Abilities = Abilities {
    page_limit: 40,
    min_id: true,
};

/// A machine whose first poll was refused with `Retry-After: 120`.
fn refused() -> Machine {
    let mut machine = Machine::default();
    let failure = Failure {
        retry_after_ms: Some(120_000),
        ..Failure::new(FailureKind::Throttled, "later")
    };
    let settings = Settings::default();
    machine.failed(&settings, &RequestPurpose::Poll, &failure, NOW_MS, 0);
    machine
}

fn wait_ms(machine: &mut Machine, now_ms: i64) -> i64 {
    match machine.next(&Settings::default(), ABILITIES, now_ms, false) {
        Step::Wait { until_ms } => until_ms - now_ms,
        _ => 0,
    }
}

#[test]
fn a_wait_lasts_as_long_as_it_was_to_last_whatever_the_clock_does_meanwhile() {
    for step_ms in STEPS_MS {
        let mut machine = refused();
        machine.clock_stepped(step_ms);
        let later_ms = NOW_MS + 30_000 + step_ms;
        assert_eq!(wait_ms(&mut machine, later_ms), 90_000, "{step_ms}");
    }
}

#[test]
fn a_wait_that_a_clock_ahead_has_stored_lasts_no_longer_than_its_length() {
    for step_ms in STEPS_MS.into_iter().filter(|ms| *ms < 0) {
        let stored = serde_json::to_string(&refused()).unwrap();
        let mut machine: Machine = serde_json::from_str(&stored).unwrap();
        assert_eq!(wait_ms(&mut machine, NOW_MS + step_ms), 120_000);
        assert_eq!(wait_ms(&mut machine, NOW_MS + step_ms + 50_000), 70_000);
        assert_eq!(wait_ms(&mut machine, NOW_MS + step_ms + 120_000), 0);
    }
}

#[test]
fn polls_go_on_when_the_clock_is_set_and_set_back_also_while_no_process_runs() {
    for step_ms in STEPS_MS {
        for restarts in [false, true] {
            let posts = (0..600).map(|n| {
                let at_ms = NOW_MS + n * 1_000;
                post(at_ms, n as u64, at_ms)
            });
            let world = world(posts.collect());
            let mut harness = Harness::new(world, settings(), NOW_MS + MINUTE_MS, 3);
            harness.run(NOW_MS + 5 * MINUTE_MS, |_| ());
            for error_ms in [step_ms, 0] {
                if restarts {
                    harness.restart();
                }
                harness.clock_error_ms = error_ms;
                let (requests, until_ms) = (harness.requests, harness.now_ms + 20_000);
                harness.run(until_ms, Harness::assert_ledger_is_sound);
                let requests = harness.requests - requests;
                let all = format!("{requests} requests at {step_ms}, restarts: {restarts}");
                assert!((3..60).contains(&requests), "{all}");
            }
        }
    }
}
