//! The estimate, the proof and the plan over whole workloads, scaled down to minutes: the last rung
//! stands at ten minutes, and a hundred posts come a second.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use driftline_core::timeline::{Backfill, Overlap, Rung, Settings};
use driftline_sim::{
    seeds,
    workload::{Length, PollerOutcome, Tail, Workload, run},
};

const HOUR_MS: i64 = 3_600_000;

fn settings() -> Settings {
    let rung = |age_ms, period_ms| Rung { age_ms, period_ms };
    Settings {
        every_ms: 2_000,
        spacing_ms: 5,
        backfill: Backfill::None,
        rungs: vec![rung(120_000, 30_000), rung(600_000, 60_000)],
        refreshed: true,
        ..Settings::default()
    }
}

fn workload(tails: &[Tail]) -> Workload {
    Workload {
        tails: tails.to_vec(),
        ..Workload::tweets(100.0)
    }
}

const LENGTH: Length = Length {
    unproven_ms: 8 * HOUR_MS,
    proven_ms: HOUR_MS + HOUR_MS / 2,
};

fn describe(outcome: &PollerOutcome) -> String {
    format!(
        "{} of {} missed, {} listed; proven after {:?} ms; {:.2}, then {:.2} fetches a post; p99 {} ms; {:?}",
        outcome.missed,
        outcome.posts,
        outcome.listed,
        outcome.proven_after_ms,
        outcome.fetches_before,
        outcome.fetches_after,
        outcome.delays.quantile_ms(0.99),
        outcome.plans,
    )
}

/// A tail that begins an hour after the proof: until then the plan keeps to its budget; a probe that
/// finds otherwise changes it at once, and what it had passed over is read again. When the tail has
/// ended, shorter looks are tried until the plan is the one that it was. How soon a probe meets the
/// tail, and its end, is chance: of 61 seeds 49 are as soon as is asked here.
#[test]
fn a_proven_plan_keeps_to_its_budget_until_a_probe_refutes_it() {
    let (ran, late) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    seeds::run(1, |seed| {
        let begins = Tail {
            begins_ms: Tail::AFTER_PROOF,
            lasts_ms: HOUR_MS,
            ..Tail::always(0.01, 30_000.0, 90_000.0)
        };
        let length = Length {
            proven_ms: 8 * HOUR_MS,
            ..LENGTH
        };
        let outcome = run(&workload(&[begins]), &settings(), length, seed, &mut |_| ());
        let text = describe(&outcome);
        let proven_ms = outcome
            .proven_after_ms
            .expect("30,000 pages were read again");
        let began_ms = proven_ms + HOUR_MS;
        assert!(
            proven_ms > 12_000_000,
            "not before 1.2 million posts: {text}"
        );
        assert_eq!(outcome.missed, outcome.listed, "{text}");
        assert!(outcome.fetches_after <= 3.5, "{text}");
        assert!(
            outcome.fetches_before > outcome.fetches_after + 0.5,
            "{text}"
        );
        let first = outcome.plans.iter().find(|plan| plan.at_ms >= proven_ms);
        assert_eq!(first.map(|plan| plan.looks_ms.len()), Some(1), "{text}");
        let covers = |looks: &[i64]| looks.last().is_some_and(|look_ms| *look_ms >= 90_000);
        let after = |ms| outcome.plans.iter().rfind(move |plan| plan.at_ms < ms);
        assert!(
            after(began_ms).is_some_and(|plan| !covers(&plan.looks_ms)),
            "{text}"
        );
        let ten_minutes_later = after(began_ms + 600_000);
        let is_found = ten_minutes_later.is_some_and(|plan| covers(&plan.looks_ms));
        let looks = |ms| after(ms).map(|plan| &plan.looks_ms);
        let is_back = looks(i64::MAX) == looks(began_ms);
        ran.fetch_add(1, Ordering::Relaxed);
        if outcome.missed > 2 || !is_found || !is_back {
            late.lock().expect("no panic").push(text);
        }
    });
    let (ran, late) = (ran.into_inner(), late.into_inner().expect("no panic"));
    let most = ran as usize / 3;
    assert!(
        late.len() <= most,
        "{} of {ran} seeds: {late:#?}",
        late.len()
    );
}

/// Without an overlap nothing is lost, since later looks find it; but it is found later.
#[test]
fn the_bound_on_delay_catches_a_missing_overlap() {
    let delay_ms = |overlap| {
        let settings = Settings {
            overlap,
            every_ms: 30_000,
            second_look_ms: 120_000,
            rungs: vec![Rung {
                age_ms: 600_000,
                period_ms: 60_000,
            }],
            ..settings()
        };
        let length = Length {
            unproven_ms: 3 * HOUR_MS,
            proven_ms: 0,
        };
        let outcome = run(&Workload::tweets(10.0), &settings, length, 1, &mut |_| ());
        assert_eq!(outcome.missed, 0, "{}", describe(&outcome));
        assert!(outcome.late_delays.count() > 300);
        outcome.late_delays.quantile_ms(0.95)
    };
    const BOUND_MS: i64 = 60_000;
    let (with, without) = (delay_ms(Overlap::Adaptive), delay_ms(Overlap::Fixed(0)));
    assert!(with < BOUND_MS, "{with} ms");
    assert!(
        without > BOUND_MS,
        "no overlap is not noticed: {without} ms"
    );
}
