//! The laws of both policies.

use std::collections::BTreeMap;

use driftline_core::refresh::{
    AgeTable, Cause, Due, EngagementSample, Policy, RefreshHistory, Scale, ValuePolicy,
    ValueSettings,
};
use proptest::prelude::*;

const CREATED_AT_MS: i64 = 1_700_000_000_000;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const FLOOR_MS: i64 = 30_000;

fn by_value() -> ValuePolicy {
    ValuePolicy {
        settings: ValueSettings::default(),
        scale: Scale::default(),
        sources: BTreeMap::new(),
        price: 1.0,
        stretch: 1.0,
    }
}

fn policy(by: ValuePolicy) -> Policy {
    let ages = AgeTable::default();
    Policy::Value { ages, by }
}

fn wait_ms(policy: &Policy, history: &RefreshHistory) -> i64 {
    match policy.due(history) {
        Due::At(due_ms) => due_ms - history.refreshed_ms,
        other => panic!("{other:?}"),
    }
}

/// A post that is still refreshed.
fn live() -> impl Strategy<Value = RefreshHistory> {
    let looks = (0..30 * DAY_MS, any::<bool>(), 0.0..1.0);
    let totals = (prop_oneof![0.0..50.0, 0.0..1e6], 0.0..1.0);
    (looks, totals, 0..5_u32).prop_map(
        |((age_ms, has_before, share), (total, part), refreshes): (_, (f64, f64), _)| {
            let before = EngagementSample {
                at_ms: CREATED_AT_MS + (age_ms as f64 * share) as i64,
                total: total * part,
            };
            RefreshHistory {
                refreshes,
                before: has_before.then_some(before),
                ..RefreshHistory::stored(Some(CREATED_AT_MS), CREATED_AT_MS + age_ms, total)
            }
        },
    )
}

fn value_policy() -> impl Strategy<Value = ValuePolicy> {
    let scale = (-5.0..5.0_f64, -7.0..3.0_f64);
    (scale, -14.0..14.0_f64, 0.0..5.0_f64, 0.0..1.0).prop_map(
        |((alpha, beta), price, stretch, memory)| ValuePolicy {
            scale: Scale {
                alpha: alpha.exp(),
                beta: beta.exp(),
            },
            price: price.exp(),
            stretch: stretch.exp(),
            settings: ValueSettings {
                memory,
                ..ValueSettings::default()
            },
            ..by_value()
        },
    )
}

/// Facts and figures of any kind.
fn hostile() -> impl Strategy<Value = (RefreshHistory, ValuePolicy)> {
    let refreshed_ms = prop_oneof![
        any::<i64>(),
        i64::MAX - 1_000..i64::MAX,
        Just(CREATED_AT_MS)
    ];
    let history = (
        any::<Option<i64>>(),
        proptest::option::weighted(0.7, 0..31 * DAY_MS),
        refreshed_ms,
        any::<u32>(),
        any::<f64>(),
    );
    let before = any::<Option<(i64, f64)>>();
    let settings = (
        any::<i64>(),
        any::<f64>(),
        any::<Vec<i64>>(),
        any::<i64>(),
        any::<f64>(),
    );
    let figures = proptest::array::uniform4(any::<f64>());
    (history, before, settings, figures).prop_map(|(history, before, settings, figures)| {
        let (created_at_ms, age_ms, refreshed_ms, refreshes, total) = history;
        // Most are of an age at which posts are still refreshed.
        let created_at_ms = age_ms.map_or(created_at_ms, |age_ms| refreshed_ms.checked_sub(age_ms));
        let (floor_ms, longest, probes_ms, probed_below_ms, memory) = settings;
        let [alpha, beta, price, stretch] = figures;
        let history = RefreshHistory {
            refreshes,
            before: before.map(|(at_ms, total)| EngagementSample { at_ms, total }),
            ..RefreshHistory::stored(created_at_ms, refreshed_ms, total)
        };
        let settings = ValueSettings {
            floor_ms,
            longest,
            probes_ms,
            probed_below_ms,
            memory,
            ..ValueSettings::default()
        };
        let by = ValuePolicy {
            settings,
            scale: Scale { alpha, beta },
            price,
            stretch,
            ..by_value()
        };
        (history, by)
    })
}

#[test]
fn a_post_that_gathers_much_is_due_sooner_and_says_why() {
    let policy = policy(ValuePolicy {
        price: 20.0,
        ..by_value()
    });
    let at = |age_ms, total| RefreshHistory {
        refreshes: 2,
        ..RefreshHistory::stored(Some(CREATED_AT_MS), CREATED_AT_MS + age_ms, total)
    };
    assert!(wait_ms(&policy, &at(HOUR_MS, 500.0)) < wait_ms(&policy, &at(HOUR_MS, 5.0)) / 3);
    assert_eq!(policy.due_because(&at(HOUR_MS, 500.0)).1, Cause::Value);
    assert_eq!(policy.due_because(&at(20 * DAY_MS, 0.0)).1, Cause::Bound);
    let new = RefreshHistory::stored(Some(CREATED_AT_MS), CREATED_AT_MS + 5_000, 0.0);
    assert_eq!(policy.due_because(&new).1, Cause::Bound);
    assert_eq!(wait_ms(&policy, &new), 6 * MINUTE_MS);
    let short = self::policy(ValuePolicy {
        price: 20.0,
        stretch: 9.0,
        ..by_value()
    });
    assert_eq!(short.due_because(&new).1, Cause::Probe);
    assert_eq!(wait_ms(&short, &new), 20 * MINUTE_MS);
}

#[test]
fn a_post_that_wakes_up_is_due_sooner_than_its_whole_life_says() {
    let policy = policy(by_value());
    let slept = RefreshHistory {
        refreshes: 9,
        ..RefreshHistory::stored(Some(CREATED_AT_MS), CREATED_AT_MS + 2 * DAY_MS, 40.0)
    };
    let look = |total| {
        Some(EngagementSample {
            at_ms: CREATED_AT_MS + DAY_MS,
            total,
        })
    };
    let woken = RefreshHistory {
        before: look(10.0),
        ..slept
    };
    let asleep = RefreshHistory {
        before: look(40.0),
        ..slept
    };
    assert!(wait_ms(&policy, &woken) < wait_ms(&policy, &asleep));
}

#[test]
fn a_total_without_sense_counts_as_none() {
    let policy = policy(by_value());
    let wait_of = |total| {
        wait_ms(
            &policy,
            &RefreshHistory::stored(Some(CREATED_AT_MS), CREATED_AT_MS + DAY_MS, total),
        )
    };
    for total in [-5.0, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!(wait_of(total), wait_of(0.0));
    }
    assert!(wait_of(f64::MAX) >= FLOOR_MS);
}

#[test]
fn posts_retire_and_are_refused_as_by_the_table() {
    let ages = AgeTable::default();
    let policy = policy(by_value());
    for (created_at_ms, at_ms) in [
        (None, CREATED_AT_MS),
        (Some(CREATED_AT_MS), CREATED_AT_MS + 30 * DAY_MS),
        (Some(CREATED_AT_MS + HOUR_MS), CREATED_AT_MS),
    ] {
        let history = RefreshHistory::stored(created_at_ms, at_ms, 1e6);
        assert_eq!(policy.due(&history), ages.due(created_at_ms, at_ms));
        assert_eq!(policy.value(&history, i64::MAX), 0.0);
    }
}

#[test]
fn a_stretched_table_shares_the_shortage() {
    let ages = AgeTable::default();
    let table = |stretch| Policy::Table {
        ages: ages.clone(),
        stretch,
    };
    for age_ms in [0, 30 * MINUTE_MS, 2 * HOUR_MS, 3 * DAY_MS, 20 * DAY_MS] {
        let history = RefreshHistory::stored(Some(CREATED_AT_MS), CREATED_AT_MS + age_ms, 0.0);
        let every_ms = ages.every_ms(age_ms).unwrap();
        assert_eq!(wait_ms(&table(1.0), &history), every_ms);
        assert_eq!(wait_ms(&table(2.5), &history), every_ms * 5 / 2);
        for nonsense in [0.0, -1.0, f64::NAN] {
            assert_eq!(wait_ms(&table(nonsense), &history), every_ms);
        }
    }
}

proptest! {
    /// Never before the floor, never past the bound, and the same whenever it is asked.
    #[test]
    fn waits_lie_between_the_floor_and_the_bound(history in live(), by in value_policy()) {
        let ages = AgeTable::default();
        let every_ms = ages.every_ms(history.refreshed_ms - CREATED_AT_MS).unwrap();
        let max_ms = every_ms as f64 * by.settings.longest * by.stretch;
        let probe_ms = by.settings.probes_ms.get(history.refreshes as usize).copied();
        let policy = policy(by);
        let wait_ms = wait_ms(&policy, &history);
        prop_assert!(wait_ms >= FLOOR_MS);
        prop_assert!(wait_ms as f64 <= max_ms + 1.0, "{wait_ms} > {max_ms}");
        if history.refreshed_ms - CREATED_AT_MS < DAY_MS {
            prop_assert!(wait_ms <= probe_ms.unwrap_or(i64::MAX), "a probe is not made");
        }
        prop_assert_eq!(policy.due(&history), policy.clone().due(&history));
    }

    /// More engagement: not later. A higher price or a longer stretch: not sooner.
    #[test]
    fn what_is_worth_more_is_not_due_later(
        history in live(),
        by in value_policy(),
        more in 1.0..100.0,
    ) {
        let default_ms = wait_ms(&policy(by.clone()), &history);
        let total = RefreshHistory { total: history.total * more, ..history };
        prop_assert!(wait_ms(&policy(by.clone()), &total) <= default_ms + 2);
        let dearer = ValuePolicy { price: by.price * more, ..by.clone() };
        prop_assert!(wait_ms(&policy(dearer), &history) >= default_ms - 2);
        let stretched = ValuePolicy { stretch: by.stretch * more, ..by };
        prop_assert!(wait_ms(&policy(stretched), &history) >= default_ms - 2);
    }

    /// The value is 1 when the post becomes due, and never falls while it waits.
    #[test]
    fn a_post_is_due_when_its_value_is_one(
        history in live(),
        by in value_policy(),
        later in 0.0..3.0,
        is_table in any::<bool>(),
    ) {
        let policy = if is_table {
            Policy::Table { ages: AgeTable::default(), stretch: by.stretch }
        } else {
            policy(by)
        };
        let wait_ms = wait_ms(&policy, &history);
        let value = |waited_ms: i64| policy.value(&history, history.refreshed_ms + waited_ms);
        prop_assert!(value(wait_ms + 2) >= 1.0 - 1e-6, "{}", value(wait_ms + 2));
        prop_assert!(value(wait_ms - 3) <= 1.0 + 1e-6, "{}", value(wait_ms - 3));
        let waited_ms = (wait_ms as f64 * later) as i64;
        prop_assert!(value(waited_ms) <= value(waited_ms + MINUTE_MS) + 1e-9);
        prop_assert_eq!(value(FLOOR_MS - 1) * f64::from(u8::from(!is_table)), 0.0);
    }

    /// No post starves: whatever the value of another post, waiting exceeds it in the end.
    #[test]
    fn who_waits_on_comes_first_at_last(
        waiting in live(),
        by in value_policy(),
        baseline in 0.0..14.0_f64,
    ) {
        let baseline = baseline.exp();
        let every_ms = AgeTable::default().every_ms(waiting.refreshed_ms - CREATED_AT_MS).unwrap();
        let bound_ms = every_ms as f64 * by.settings.longest * by.stretch;
        let patient_ms = (bound_ms * baseline.sqrt()) as i64 + 2;
        let value = policy(by).value(&waiting, waiting.refreshed_ms + patient_ms);
        prop_assert!(value >= baseline * (1.0 - 1e-6), "{value} < {baseline}");
    }

    /// No figures and no settings break it.
    #[test]
    fn hostile_facts_and_figures_do_no_harm(hostile in hostile(), now_ms in any::<i64>()) {
        let (history, by) = hostile;
        let policy = policy(by);
        if let Due::At(due_ms) = policy.due(&history) {
            prop_assert!(due_ms >= history.refreshed_ms);
        }
        let value = policy.value(&history, now_ms);
        prop_assert!(value >= 0.0, "{value}");
    }
}
