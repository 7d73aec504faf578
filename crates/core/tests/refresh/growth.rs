//! The curve, and how it is learned.

use std::sync::LazyLock;

use driftline_core::refresh::{AGE_ENDS_MS, BINS, Growth, GrowthCurve, GrowthSums, Scale};
use driftline_sim::seeds;
use proptest::{collection::vec, prelude::*};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const FIRST_MS: i64 = 20_000;

/// Any growth at all, most of it nonsense.
fn hostile() -> impl Strategy<Value = Growth> {
    let age = prop_oneof![any::<i64>(), 0..40 * DAY_MS, 0..2 * HOUR_MS];
    let total = prop_oneof![
        any::<f64>(),
        0.0..1e4,
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MAX),
        Just(-7.0),
    ];
    (age.clone(), total.clone(), age, total, any::<bool>()).prop_map(
        |(from_age_ms, from, to_age_ms, to, is_first)| Growth {
            from_age_ms,
            from,
            to_age_ms,
            to,
            is_first,
        },
    )
}

fn curve() -> impl Strategy<Value = GrowthCurve> {
    prop_oneof![
        vec(any::<f64>(), 0..40).prop_map(GrowthCurve::of_shares),
        vec(0.0..1.0, BINS + 1).prop_map(GrowthCurve::of_shares),
        (any::<i64>(), any::<f64>()).prop_map(|(half, day)| GrowthCurve::of_half_life(half, day)),
        (MINUTE_MS..DAY_MS, 0.6..0.99).prop_map(|(half, day)| GrowthCurve::of_half_life(half, day)),
    ]
}

fn assert_rises(curve: &GrowthCurve) {
    let shares = curve.shares();
    assert_eq!(shares.len(), BINS + 1);
    assert!(
        shares.windows(2).all(|ends| ends[0] <= ends[1]),
        "{shares:?}"
    );
    assert!(
        shares.iter().all(|share| (0.0..=1.0).contains(share)),
        "{shares:?}"
    );
    assert_eq!(curve.share(30 * DAY_MS), 1.0);
    assert_eq!(curve.share(i64::MAX), 1.0);
    assert_eq!(curve.share(0), 0.0);
    assert_eq!(curve.share(i64::MIN), 0.0);
}

fn summed(growths: &[Growth]) -> GrowthSums {
    let mut sums = GrowthSums::default();
    for growth in growths {
        sums.observe(growth, &GrowthCurve::default());
    }
    sums
}

#[test]
fn the_default_is_as_measured() {
    let curve = GrowthCurve::default();
    assert!((curve.share(80 * MINUTE_MS) - 0.5).abs() < 0.01);
    assert!((curve.share(DAY_MS) - 0.95).abs() < 0.01);
}

/// `W(s)` against the sum that its formula says.
#[test]
fn regret_is_what_its_formula_says() {
    let curve = GrowthCurve::default();
    for (age_ms, wait_ms) in [
        (0, 40_000),
        (0, HOUR_MS),
        (30_000, HOUR_MS),
        (HOUR_MS, DAY_MS),
        (3 * DAY_MS, 40 * DAY_MS),
    ] {
        let unseen = |waited_ms: i64| curve.share(age_ms + waited_ms) - curve.share(age_ms);
        let steps = 20_000;
        let step_h = wait_ms as f64 / HOUR_MS as f64 / f64::from(steps);
        let middles =
            (0..steps).map(|step| wait_ms * (2 * i64::from(step) + 1) / (2 * i64::from(steps)));
        let integral_h: f64 = middles.map(|at_ms| unseen(at_ms) * step_h).sum();
        let stated_h = wait_ms as f64 / HOUR_MS as f64 * unseen(wait_ms) - integral_h;
        let regret_h = curve.regret_h(age_ms, wait_ms);
        assert!(
            (regret_h - stated_h).abs() < 1e-4 * stated_h.max(0.01),
            "{age_ms} {wait_ms}: {regret_h} for {stated_h}"
        );
    }
}

proptest! {
    #[test]
    fn every_curve_rises_from_nothing_to_all(curve in curve(), ages in vec(0..31 * DAY_MS, 2)) {
        assert_rises(&curve);
        let (younger, older) = (ages[0].min(ages[1]), ages[0].max(ages[1]));
        prop_assert!(curve.share(younger) <= curve.share(older));
    }

    #[test]
    fn regret_never_falls_and_the_wait_is_where_it_is_reached(
        curve in curve(),
        age_ms in 0..35 * DAY_MS,
        wait_ms in 1..40 * DAY_MS,
        more_ms in 0..DAY_MS,
        pending_h in 1e-6..100.0,
    ) {
        let less = curve.regret_h(age_ms, wait_ms);
        let more = curve.regret_h(age_ms, wait_ms + more_ms);
        prop_assert!(less >= 0.0 && more >= less - 1e-9, "{less} {more}");
        match curve.wait_ms(age_ms, pending_h) {
            Some(found_ms) => {
                let reached_h = curve.regret_h(age_ms, found_ms + 2);
                prop_assert!(reached_h >= pending_h * (1.0 - 1e-6), "{found_ms}: {reached_h}");
                let before_h = curve.regret_h(age_ms, found_ms - 3);
                let is_least = found_ms < 3 || before_h <= pending_h * (1.0 + 1e-6);
                prop_assert!(is_least, "{found_ms}: {before_h}");
            }
            None => prop_assert!(curve.regret_h(age_ms, 1 << 50) <= pending_h * (1.0 + 1e-6)),
        }
    }

    /// Whatever is observed, what is learned is a curve.
    #[test]
    fn hostile_observations_do_no_harm(
        growths in vec(hostile(), 0..60),
        prior in curve(),
        weight in any::<f64>(),
        alpha in any::<f64>(),
    ) {
        let mut sums = summed(&growths);
        let (learned, scale) = sums.learned(&prior, Scale { alpha, beta: 0.05 }, weight);
        assert_rises(&learned);
        prop_assert!(scale.alpha > 0.0 && scale.beta > 0.0 && scale.expected(0.0, 0.0).is_finite());
        sums.fade();
        assert_rises(&sums.learned(&prior, scale, 1.0).0);
    }

    /// Hostile posts among many sound ones: one viral or broken post does not carry the curve away.
    #[test]
    fn one_post_moves_the_curve_little(hostile in hostile()) {
        static SOUND: LazyLock<GrowthSums> = LazyLock::new(|| summed(&sound(1, 1_000, 80.0)));
        let mut all = SOUND.clone();
        all.observe(&hostile, &GrowthCurve::default());
        let learned = |sums: &GrowthSums| {
            sums.learned(&GrowthCurve::default(), Scale::default(), 50.0).0
        };
        let (without, with) = (learned(&SOUND), learned(&all));
        let pairs = without.shares().iter().zip(with.shares());
        let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        prop_assert!(apart < 0.05, "{apart}");
    }

    #[test]
    fn merging_is_in_any_order_and_loses_nothing(
        growths in vec(hostile(), 0..30),
        cuts in vec(0..31_usize, 2),
    ) {
        let (first, second) = (cuts[0].min(cuts[1]), cuts[0].max(cuts[1]));
        let part = |from: usize, to: usize| {
            let length = growths.len();
            summed(&growths[from.min(length)..to.min(length)])
        };
        let (a, b, c) = (part(0, first), part(first, second), part(second, usize::MAX));
        let merged = |parts: &[&GrowthSums]| {
            let mut sums = GrowthSums::default();
            parts.iter().for_each(|part| sums.merge(part));
            sums
        };
        let whole = summed(&growths);
        prop_assert_eq!(&merged(&[&a, &b, &c]), &whole);
        prop_assert_eq!(&merged(&[&c, &a, &b]), &whole);
        prop_assert_eq!(&merged(&[&a, &merged(&[&c, &b])]), &whole);
    }

    #[test]
    fn sums_survive_storage_and_stay_small(growths in vec(hostile(), 0..30)) {
        let sums = summed(&growths);
        let stored = serde_json::to_string(&sums).unwrap();
        prop_assert!(stored.len() < 5_000, "{}", stored.len());
        prop_assert_eq!(serde_json::from_str::<GrowthSums>(&stored).unwrap(), sums);
    }

    #[test]
    fn curves_survive_storage(curve in curve()) {
        let stored = serde_json::to_string(&curve).unwrap();
        let read: GrowthCurve = serde_json::from_str(&stored).unwrap();
        let pairs = curve.shares().iter().zip(read.shares());
        prop_assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn stored_sums_of_another_size_are_read() {
    let short = r#"[{"grown":1,"exposed":2,"times":3}]"#;
    let sums: GrowthSums = serde_json::from_str(short).unwrap();
    assert_rises(
        &sums
            .learned(&GrowthCurve::default(), Scale::default(), 50.0)
            .0,
    );
    let ratio = format!("{{\"grown\":{0},\"exposed\":{0},\"times\":{0}}}", u64::MAX);
    let long = format!("[{}]", vec![ratio; 1_000].join(","));
    let mut sums: GrowthSums = serde_json::from_str(&long).unwrap();
    assert!(serde_json::to_string(&sums).unwrap().len() < 8_000);
    sums.merge(&sums.clone());
    assert_rises(
        &sums
            .learned(&GrowthCurve::default(), Scale::default(), 50.0)
            .0,
    );
}

/// Looks at posts that grow along a log-logistic curve with this half-life in minutes, at ages
/// that are drawn again for each, more often where more has been counted.
fn sound(seed: u64, posts: usize, half_minutes: f64) -> Vec<Growth> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut growths = Vec::new();
    for _ in 0..posts {
        let expected = (3.0 / rng.random_range(0.02..1.0_f64)).powf(1.2);
        let mut ages: Vec<f64> = (0..expected as usize)
            .map(|_| {
                let share: f64 = rng.random_range(0.001..0.999);
                half_minutes * MINUTE_MS as f64 * share / (1.0 - share)
            })
            .collect();
        ages.sort_by(f64::total_cmp);
        let seen = |age_ms: i64| ages.iter().filter(|age| **age <= age_ms as f64).count() as f64;
        let mut from_age_ms = FIRST_MS;
        let mut is_first = true;
        while from_age_ms < 30 * DAY_MS {
            let busy = if seen(from_age_ms) > 5.0 { 1.5 } else { 4.0 };
            let factor = rng.random_range(1.05..busy);
            let to_age_ms = (from_age_ms as f64 * factor) as i64 + MINUTE_MS;
            growths.push(Growth {
                from_age_ms,
                from: seen(from_age_ms),
                to_age_ms,
                to: seen(to_age_ms),
                is_first,
            });
            (from_age_ms, is_first) = (to_age_ms, false);
        }
    }
    growths
}

/// Priors that are wrong tenfold either way, heavy tails, and looks that depend on the counts.
#[test]
fn the_true_curve_is_learned_whatever_was_expected() {
    seeds::run(3, |seed| {
        for half_minutes in [8.0, 80.0, 800.0] {
            let (mut sums, prior) = (GrowthSums::default(), GrowthCurve::default());
            let mut learned = prior.clone();
            for chunk in sound(seed, 2_000, half_minutes).chunks(5_000) {
                chunk
                    .iter()
                    .for_each(|growth| sums.observe(growth, &learned));
                learned = sums.learned(&prior, Scale::default(), 50.0).0;
            }
            for end_ms in *AGE_ENDS_MS {
                let odds = end_ms / MINUTE_MS as f64 / half_minutes;
                let truth = (odds / (1.0 + odds)).min(0.999) / 0.999;
                let share = learned.share(end_ms as i64);
                assert!(
                    (share - truth).abs() < 0.06,
                    "half-life {half_minutes}, at {end_ms}: {share} for {truth}"
                );
            }
        }
    });
}
