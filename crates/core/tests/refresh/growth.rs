//! The curve, and how the engagement of posts is learned.

use std::sync::LazyLock;

use driftline_core::refresh::{
    EngagementSums, Growth, Scale,
    growth_curve::{regret_h, share, wait_ms},
};
use driftline_sim::seeds;
use proptest::{collection::vec, prelude::*};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The weight of what is expected.
const WEIGHT: f64 = 50.0;

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

fn summed(growths: &[Growth]) -> EngagementSums {
    let mut sums = EngagementSums::default();
    growths.iter().for_each(|growth| sums.observe(growth));
    sums
}

/// The final engagement that is expected of a new post.
fn mean(sums: &EngagementSums) -> f64 {
    sums.scale(Scale::default(), WEIGHT).expected(0.0, 0.0)
}

#[test]
fn the_curve_is_as_measured() {
    assert!((share(80 * MINUTE_MS) - 0.5).abs() < 1e-9);
    assert!((share(DAY_MS) - 0.95).abs() < 0.01);
    assert_eq!((share(i64::MIN), share(0)), (0.0, 0.0));
    assert!((0.999..=1.0).contains(&share(i64::MAX)));
    for (pending_h, expected_ms) in [
        (-1.0, 0),
        (0.0, 0),
        (f64::MAX, i64::MAX),
        (f64::NAN, i64::MAX),
    ] {
        assert_eq!(wait_ms(0, pending_h), expected_ms, "{pending_h}");
    }
}

/// `W(s)` against the sum that its formula says.
#[test]
fn regret_is_what_its_formula_says() {
    for (age_ms, wait_ms) in [
        (0, 40_000),
        (0, HOUR_MS),
        (30_000, HOUR_MS),
        (HOUR_MS, DAY_MS),
        (3 * DAY_MS, 40 * DAY_MS),
    ] {
        let unseen = |waited_ms: i64| share(age_ms + waited_ms) - share(age_ms);
        let steps = 20_000;
        let step_h = wait_ms as f64 / HOUR_MS as f64 / f64::from(steps);
        let middles =
            (0..steps).map(|step| wait_ms * (2 * i64::from(step) + 1) / (2 * i64::from(steps)));
        let integral_h: f64 = middles.map(|at_ms| unseen(at_ms) * step_h).sum();
        let stated_h = wait_ms as f64 / HOUR_MS as f64 * unseen(wait_ms) - integral_h;
        let regret_h = regret_h(age_ms, wait_ms);
        assert!(
            (regret_h - stated_h).abs() < 1e-4 * stated_h.max(0.01),
            "{age_ms} {wait_ms}: {regret_h} for {stated_h}"
        );
    }
}

proptest! {
    #[test]
    fn regret_never_falls_and_the_wait_is_where_it_is_reached(
        age_ms in 0..35 * DAY_MS,
        waited_ms in 1..40 * DAY_MS,
        more_ms in 0..DAY_MS,
        pending_h in prop_oneof![1e-6..100.0, 1e-6..1e-3],
    ) {
        prop_assert!(share(age_ms) <= share(age_ms + more_ms));
        let (less, more) = (regret_h(age_ms, waited_ms), regret_h(age_ms, waited_ms + more_ms));
        prop_assert!(less >= 0.0 && more >= less - 1e-9, "{less} {more}");
        let found_ms = wait_ms(age_ms, pending_h);
        if found_ms < 1 << 50 {
            let reached_h = regret_h(age_ms, found_ms + 2);
            prop_assert!(reached_h >= pending_h * (1.0 - 1e-6), "{found_ms}: {reached_h}");
        }
        let before_h = regret_h(age_ms, found_ms - 3);
        prop_assert!(found_ms < 3 || before_h <= pending_h * (1.0 + 1e-6), "{found_ms}: {before_h}");
    }

    #[test]
    fn hostile_figures_do_no_harm(
        growths in vec(hostile(), 0..60),
        (alpha, beta, weight, pending_h) in any::<(f64, f64, f64, f64)>(),
        age_ms in any::<i64>(),
    ) {
        let mut sums = summed(&growths);
        for _ in 0..2 {
            let scale = sums.scale(Scale { alpha, beta }, weight);
            prop_assert!(scale.alpha > 0.0 && scale.beta > 0.0, "{scale:?}");
            prop_assert!(scale.expected(0.0, 0.0).is_finite());
            sums.merge(&sums.clone());
            sums.fade_if_full();
        }
        prop_assert!(wait_ms(age_ms, pending_h) >= 0);
    }

    /// A hostile post among many sound ones: no viral or broken post carries the scale away.
    #[test]
    fn one_post_moves_the_scale_little(hostile in hostile()) {
        static SOUND: LazyLock<EngagementSums> = LazyLock::new(|| summed(&sound(1, 3_000, 20.0)));
        let mut all = SOUND.clone();
        all.observe(&hostile);
        let moved = mean(&all) / mean(&SOUND);
        prop_assert!((0.8..1.25).contains(&moved), "{moved}");
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
        let merged = |parts: &[&EngagementSums]| {
            let mut sums = EngagementSums::default();
            parts.iter().for_each(|part| sums.merge(part));
            sums
        };
        let whole = summed(&growths);
        prop_assert_eq!(&merged(&[&a, &b, &c]), &whole);
        prop_assert_eq!(&merged(&[&c, &a, &b]), &whole);
        prop_assert_eq!(&merged(&[&a, &merged(&[&c, &b])]), &whole);
        prop_assert_eq!(whole.without(&merged(&[&a, &b])), c);
    }
}

/// Looks at posts that grow along the curve to such a total on average, at ages that are drawn again
/// for each, more often where more has been counted.
fn sound(seed: u64, posts: usize, mean: f64) -> Vec<Growth> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut growths = Vec::new();
    for _ in 0..posts {
        let expected = -mean * rng.random_range(0.0..1.0_f64).max(1e-9).ln();
        let total = expected as usize + usize::from(rng.random_bool(expected.fract()));
        let ages: Vec<f64> = (0..total)
            .map(|_| {
                let share: f64 = rng.random_range(0.0..1.0);
                80.0 * MINUTE_MS as f64 * share / (1.0 - share)
            })
            .collect();
        let seen = |age_ms: i64| ages.iter().filter(|age| **age <= age_ms as f64).count() as f64;
        let (mut from_age_ms, mut is_first) = (20_000, true);
        while from_age_ms < 30 * DAY_MS {
            let busy = if seen(from_age_ms) > 5.0 { 1.5 } else { 4.0 };
            let to_age_ms =
                (from_age_ms as f64 * rng.random_range(1.05..busy)) as i64 + 10 * MINUTE_MS;
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

/// An engagement of ten per post is expected.
#[test]
fn the_true_engagement_is_learned_whatever_was_expected() {
    seeds::run(3, |seed| {
        for truth in [1.0, 10.0, 100.0] {
            let learned = mean(&summed(&sound(seed, 40_000, truth)));
            assert!((learned / truth).ln().abs() < 0.25, "{learned} for {truth}");
        }
    });
}

#[test]
fn later_engagement_counts_more_once_much_was_seen() {
    let grown = |to| Growth {
        from_age_ms: 0,
        from: 0.0,
        to_age_ms: HOUR_MS,
        to,
        is_first: true,
    };
    let mut sums = summed(&vec![grown(100.0); 10_000]);
    let before = mean(&sums);
    sums.fade_if_full();
    assert!((mean(&sums) / before - 1.0).abs() < 0.05);
    let mut kept = summed(&vec![grown(100.0); 10_000]);
    let later = summed(&vec![grown(1.0); 10_000]);
    sums.merge(&later);
    kept.merge(&later);
    assert!(mean(&sums) < 0.8 * mean(&kept));
}
