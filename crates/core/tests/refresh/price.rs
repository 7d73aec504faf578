//! The price of quota follows shortage, and nothing else.

use driftline_core::refresh::{MAX_STEP, QuotaPrice, QuotaUse};
use proptest::{collection::vec, prelude::*};

const MINUTE_MS: i64 = 60_000;

fn used(offered: f64, due: f64, overdue: f64) -> QuotaUse {
    QuotaUse {
        elapsed_ms: 15 * MINUTE_MS,
        offered,
        due,
        overdue,
        ..QuotaUse::default()
    }
}

fn any_use() -> impl Strategy<Value = QuotaUse> {
    let count = || prop_oneof![any::<f64>(), 0.0..1e4, Just(0.0), Just(f64::NAN)];
    (any::<i64>(), count(), count(), count(), count(), count()).prop_map(
        |(elapsed_ms, offered, due, probes, bounds, overdue)| QuotaUse {
            elapsed_ms,
            offered,
            due,
            probes,
            bounds,
            overdue,
        },
    )
}

#[test]
fn it_rises_with_shortage_and_falls_with_unused_quota() {
    let price = QuotaPrice::of_refresh();
    assert!(price.after(&used(100.0, 100.0, 500.0)).level() > price.level());
    assert!(price.after(&used(100.0, 20.0, 0.0)).level() < price.level());
    assert_eq!(
        QuotaPrice::of_stretch()
            .after(&used(100.0, 20.0, 0.0))
            .level(),
        1.0
    );
}

/// An outage of hours, then a backlog that is worked off: the price does not run away.
#[test]
fn an_outage_does_not_wind_it_up() {
    let steady = QuotaPrice::new(5.0, 1e-6, 1e6);
    let mut price = steady;
    for _ in 0..4 * 24 {
        price = price.after(&used(0.0, 0.0, 50_000.0));
    }
    assert_eq!(price, steady, "time without quota does not move it");
    let (mut backlog, mut highest) = (800.0_f64, 0.0_f64);
    for _ in 0..4 * 24 {
        // A dearer refresh is asked for less.
        let demand = 90.0 * 5.0 / price.level();
        let done = (backlog + demand).min(100.0);
        backlog = backlog + demand - done;
        price = price.after(&used(100.0, done, backlog));
        highest = highest.max(price.level());
    }
    assert!(highest < 5.0 * 4.0, "{highest}");
    assert!((price.level() / 5.0).ln().abs() < 0.3, "{price:?}");
}

/// What probes and bounds take does not make a refresh dearer: in the first simulations it drove
/// the price up without end, for it cannot drive them away.
#[test]
fn it_does_not_chase_what_it_does_not_move() {
    let forced = QuotaUse {
        probes: 60.0,
        bounds: 35.0,
        ..used(100.0, 100.0, 2_000.0)
    };
    let price = QuotaPrice::of_refresh();
    assert!(price.after(&forced.of_value()).level() < price.level());
    let stretch = QuotaPrice::of_stretch();
    assert!(stretch.after(&forced.of_bounds()).level() > 1.0);
}

#[test]
fn figures_without_sense_do_not_move_it() {
    let price = QuotaPrice::of_refresh();
    for (elapsed_ms, overdue) in [(0, f64::INFINITY), (MINUTE_MS, f64::NAN)] {
        let nonsense = QuotaUse {
            elapsed_ms,
            ..used(100.0, 90.0, overdue)
        };
        assert_eq!(price.after(&nonsense), price);
    }
}

#[test]
fn stored_prices_are_put_right() {
    let price: QuotaPrice = serde_json::from_str("[-3.0, 10.0, 0.1]").unwrap();
    assert_eq!(price, QuotaPrice::new(0.1, 0.1, 10.0));
    let text = serde_json::to_string(&price).unwrap();
    assert_eq!(serde_json::from_str::<QuotaPrice>(&text).unwrap(), price);
}

proptest! {
    #[test]
    fn it_stays_finite_within_bounds_and_moves_in_small_steps(
        start in proptest::array::uniform3(any::<f64>()),
        uses in vec(any_use(), 0..60),
    ) {
        let [level, least, most] = start;
        let mut price = QuotaPrice::new(level, least, most);
        for used in uses {
            for used in [used, used.of_value(), used.of_bounds()] {
                let after = price.after(&used);
                prop_assert!(after.level().is_finite() && after.level() > 0.0);
                let step = (after.level() / price.level()).ln().abs();
                prop_assert!(step <= MAX_STEP + 1e-9, "{step}");
                price = after;
            }
        }
    }

    /// Whatever has happened to it, it comes back in steady use.
    #[test]
    fn it_recovers(uses in vec(any_use(), 0..200), fair in -7.0..7.0_f64) {
        let fair = fair.exp();
        let mut price = QuotaPrice::new(1.0, 1e-4, 1e4);
        for used in uses {
            price = price.after(&used);
        }
        for _ in 0..4 * 24 * 5 {
            let demand = 90.0 * fair / price.level();
            price = price.after(&used(100.0, demand.min(100.0), (demand - 100.0).max(0.0)));
        }
        prop_assert!((price.level() / fair).ln().abs() < 0.2, "{price:?} for {fair}");
    }
}
