//! Both policies in made-up worlds, at equal requests.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use driftline_core::refresh::RefreshPlan;
use driftline_sim::{
    refresh_policies::{Baseline, History, PolicyOutcome, Quota, Scenario, World, run},
    seeds,
};

const HOUR_MS: i64 = 3_600_000;

/// A tenth of the benchmark's posts in batches of a tenth: as many requests.
fn small() -> Vec<Scenario> {
    Scenario::all(6.0, 10)
}

/// Every scenario, with another quota under each seed.
#[test]
fn the_value_policy_sees_more_than_the_table_at_equal_requests() {
    seeds::run(2, |seed| {
        let (mut product, mut count) = (1.0, 0_u8);
        for (index, scenario) in small().into_iter().enumerate() {
            let world = scenario.world_config.world(seed);
            assert!(world.len() >= 1_200);
            let refreshes = [42.0, 14.0, 7.0][(index + seed as usize) % 3];
            let (table, others) = scenario.compare(&world, refreshes, &[Baseline::Value]);
            let ratio = others[0].unseen_h / table.unseen_h;
            let summary = format!("{}, {refreshes} a post: {ratio:.3}", scenario.name);
            assert!(others[0].refreshes <= table.refreshes, "{summary}");
            eprintln!("{summary}");
            assert!(ratio < 0.85, "{summary}");
            product *= ratio;
            count += 1;
        }
        let mean = f64::powf(product, 1.0 / f64::from(count));
        assert!(mean < 0.6, "{mean:.3}");
    });
}

/// A twentieth of what the table takes: while the price chased what bounds and probes took, the
/// policy collapsed.
#[test]
fn the_value_policy_does_not_collapse_when_quota_is_very_short() {
    seeds::run(2, |seed| {
        let scenario = &small()[1];
        let world = scenario.world_config.world(seed);
        let (table, others) = scenario.compare(&world, 2.0, &[Baseline::Value]);
        let ratio = others[0].unseen_h / table.unseen_h;
        assert!(ratio < 0.8, "{ratio:.3}");
        assert!(others[0].price < 1e5, "{}", others[0].price);
    });
}

#[test]
fn the_same_seed_is_the_same_run() {
    let scenario = &small()[5];
    let outcome =
        |seed| scenario.compare(&scenario.world_config.world(seed), 2.0, &[Baseline::Value]);
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
}

fn by_table(world: &World, quota: &Quota, until_ms: i64) -> PolicyOutcome {
    run(world, quota, &RefreshPlan::default(), until_ms, None)
}

/// One post, one change: the table looks after 3, 6, 9, 12 minutes.
#[test]
fn unseen_change_is_counted_to_the_ms() {
    let post = |changes: &[(i64, f64)]| {
        World::new([History {
            created_at_ms: 0,
            first_stored_ms: 0,
            changes: changes.to_vec(),
        }])
    };
    let quota = |outages: &[(i64, i64)]| Quota {
        batch: 100,
        every_ms: 60_000,
        outages: outages.to_vec(),
    };
    let until_ms = 15 * 60_000;
    let unseen_ms = |changes: &[(i64, f64)], outages: &[(i64, i64)]| {
        let outcome = by_table(&post(changes), &quota(outages), until_ms);
        (outcome.unseen_h * HOUR_MS as f64).round() as i64
    };
    assert_eq!(unseen_ms(&[], &[]), 0);
    assert_eq!(unseen_ms(&[(0, 5.0)], &[]), 0, "it was stored with them");
    assert_eq!(unseen_ms(&[(170_000, 2.0)], &[]), 20_000);
    assert_eq!(unseen_ms(&[(170_000, 2.0), (175_000, -1.0)], &[]), 15_000);
    assert_eq!(unseen_ms(&[(170_000, 2.0)], &[(180_000, 240_000)]), 140_000);
    assert_eq!(
        unseen_ms(&[(until_ms - 1_000, 3.0)], &[]),
        3_000,
        "to the end"
    );
    let outcome = by_table(&post(&[]), &quota(&[]), until_ms);
    assert_eq!((outcome.refreshes, outcome.longest_ms), (4, 180_000));
}

/// No request is larger than a batch, none is sent in an outage, and no baseline has more than the
/// table in any.
#[test]
fn the_quota_is_kept_request_by_request() {
    let scenario = &small()[1];
    let world = scenario.world_config.world(1);
    let quota = scenario.quota(7.0);
    let baselines = [Baseline::Value, Baseline::Uniform];
    let (table, others) = scenario.compare(&world, 7.0, &baselines);
    for outcome in others.iter().chain([&table]) {
        let posts: u64 = outcome.requests.iter().map(|&posts| u64::from(posts)).sum();
        assert_eq!(posts, outcome.refreshes);
        for (index, (&posts, &most)) in outcome.requests.iter().zip(&table.requests).enumerate() {
            let at_ms = (index as i64 + 1) * quota.every_ms;
            let is_out = quota.outages.iter().any(|it| (it.0..it.1).contains(&at_ms));
            assert!(posts <= most && posts as usize <= quota.batch && !(is_out && posts > 0));
        }
    }
}
