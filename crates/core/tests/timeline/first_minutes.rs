//! The first minutes of a source, from a machine that knows nothing, at the default ladder.

use driftline_core::timeline::{Backfill, Settings};
use driftline_sim::workload::{
    Delays, EARLY_MS, EarlyPost, Length, PollerOutcome, Tail, Workload, run,
};

const HISTORY_MS: i64 = 600_000;

/// The first ten minutes of a timeline that began ten minutes before, and all that comes of age.
fn first_minutes(
    rate_per_s: f64,
    tails: &[Tail],
    backfill: Backfill,
    every_ms: i64,
) -> PollerOutcome {
    let workload = Workload {
        history_ms: HISTORY_MS,
        tails: tails.to_vec(),
        ..Workload::tweets(rate_per_s)
    };
    let settings = Settings {
        every_ms,
        backfill,
        refreshed: true,
        ..Settings::default()
    };
    let length = Length {
        unproven_ms: HISTORY_MS + 600_000,
        proven_ms: 0,
    };
    let outcome = run(&workload, &settings, length, 1, &mut |_| ());
    assert_eq!(outcome.missed, 0, "{outcome:?}");
    let expected = rate_per_s * EARLY_MS as f64 / 1_000.0;
    assert!(
        outcome.early.len() as f64 > expected * 0.9,
        "{} posts were visible in the first two minutes",
        outcome.early.len()
    );
    outcome
}

#[test]
fn a_late_post_of_the_first_two_minutes_waits_for_a_second_look_in_time() {
    let mut slow = Vec::new();
    for rate_per_s in [5.0, 20.0] {
        for backfill in [Backfill::None, Backfill::All] {
            for every_ms in [1_000, 3_000] {
                let outcome = first_minutes(rate_per_s, &[], backfill, every_ms);
                let early = outcome.early.iter().map(|post| post.delay_ms);
                let early = Delays::from(early.collect::<Vec<_>>());
                let p999_ms = early.quantile_ms(0.999);
                if p999_ms > 25_000 {
                    slow.push((rate_per_s, backfill, every_ms, p999_ms));
                }
            }
        }
    }
    assert!(slow.is_empty(), "p99.9 above 25 s: {slow:?}");
}

/// The second look, at 15 s, comes too early for what is 20 to 90 s late.
#[test]
fn what_is_late_by_more_than_the_second_look_is_stored_by_the_first_rung() {
    let rung = Settings::default().rungs[0];
    for every_ms in [1_000, 3_000] {
        let late = Tail::always(0.02, 20_000.0, 90_000.0);
        let outcome = first_minutes(20.0, &[late], Backfill::None, every_ms);
        let is_late = |post: &&EarlyPost| post.late_ms >= 20_000;
        let ages = outcome.early.iter().filter(is_late);
        let ages: Vec<i64> = ages.map(|post| post.late_ms + post.delay_ms).collect();
        assert!(ages.len() > 20, "{outcome:?}");
        let last_ms = ages.into_iter().max().unwrap_or(0);
        assert!(
            last_ms <= rung.age_ms + rung.period_ms + SLACK_MS,
            "stored {last_ms} ms after it was written"
        );
    }
}

/// The server's time is known to a second and a round trip, and other requests are sent first.
const SLACK_MS: i64 = 10_000;
