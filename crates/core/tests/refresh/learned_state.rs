//! What refreshes teach, and how it reaches the policy.

use driftline_core::refresh::{
    Due, LearnedState, Policy, RefreshHistory, RefreshObservation, RefreshPlan, ValueSettings,
};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
/// The final engagement that is expected of a post before any was seen.
const EXPECTED: f64 = 10.0;

fn by_value() -> RefreshPlan {
    RefreshPlan {
        by_value: Some(ValueSettings::default()),
        ..RefreshPlan::default()
    }
}

/// New posts of a source, each with so much more engagement after an hour.
fn of(source: u64, more: f64) -> RefreshObservation {
    let mut observation = RefreshObservation::default();
    let post = RefreshHistory {
        source: Some(source),
        ..RefreshHistory::stored(Some(0), MINUTE_MS, 0.0)
    };
    for _ in 0..2_000 {
        observation.grew(&post, HOUR_MS, more);
    }
    observation
}

/// The final engagement that is expected of a new post.
fn mean(policy: &Policy, source: Option<u64>) -> f64 {
    match policy {
        Policy::Value { by, .. } => by.scale_of(source).expected(0.0, 0.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_experience_the_table_is_as_configured() {
    let policy = LearnedState::new(0).policy(&RefreshPlan::default());
    assert_eq!(policy, Policy::default());
}

#[test]
fn a_short_quota_stretches_the_table_and_a_long_one_brings_it_back() {
    let plan = RefreshPlan::default();
    let mut learned_state = LearnedState::new(0);
    let mut now_ms = 0;
    let mut settle = |learned_state: &mut LearnedState, overdue| {
        now_ms += 20 * MINUTE_MS;
        let post =
            RefreshHistory::stored(Some(now_ms - 300 * HOUR_MS), now_ms - 200 * HOUR_MS, 0.0);
        let mut observation = RefreshObservation::default();
        for _ in 0..100 {
            observation.answered(&learned_state.policy(&plan), &post, now_ms);
        }
        learned_state.learn(&observation);
        let offered_per_ms = 100.0 / (20.0 * MINUTE_MS as f64);
        learned_state.settle(&plan, offered_per_ms, overdue, now_ms);
    };
    for _ in 0..20 {
        settle(&mut learned_state, 5_000);
    }
    assert!(learned_state.stretch() > 2.0, "{}", learned_state.stretch());
    let post = RefreshHistory::stored(Some(0), 0, 0.0);
    let Due::At(due_ms) = learned_state.policy(&plan).due(&post) else {
        panic!("it is due")
    };
    assert!(due_ms > 6 * MINUTE_MS, "{due_ms}");
    for _ in 0..200 {
        // Nothing was due: the quota is long.
        now_ms += 20 * MINUTE_MS;
        learned_state.settle(&plan, 1.0, 0, now_ms);
    }
    assert!(
        learned_state.stretch() < 1.01,
        "{}",
        learned_state.stretch()
    );
}

#[test]
fn time_without_quota_moves_nothing() {
    let mut learned_state = LearnedState::new(0);
    let before = learned_state.policy(&by_value());
    learned_state.settle(&by_value(), 0.0, 1_000_000, 6 * HOUR_MS);
    assert_eq!(learned_state.policy(&by_value()), before);
}

#[test]
fn workers_observations_add_up_in_any_order() {
    let (mut one, mut two) = (of(1, 20.0), RefreshObservation::default());
    one.add(&of(2, 1.0));
    two.grew(
        &RefreshHistory::stored(Some(0), MINUTE_MS, 5.0),
        HOUR_MS,
        50.0,
    );
    two.add(&of(1, 3.0));
    let learned = |observations: [&RefreshObservation; 2]| {
        let mut learned_state = LearnedState::new(0);
        observations
            .into_iter()
            .for_each(|observation| learned_state.learn(observation));
        learned_state
    };
    assert_eq!(learned([&one, &two]), learned([&two, &one]));
    let mut both = one.clone();
    both.add(&two);
    let both = learned([&both, &RefreshObservation::default()]);
    assert_eq!(both, learned([&one, &two]));
    let text = serde_json::to_string(&both).expect("JSON");
    assert_eq!(
        serde_json::from_str::<LearnedState>(&text).expect("a state"),
        both
    );
}

#[test]
fn each_source_learns_what_its_own_posts_get() {
    let mut learned_state = LearnedState::new(0);
    learned_state.learn(&of(1, 100.0));
    learned_state.learn(&of(2, 1.0));
    let policy = learned_state.policy(&by_value());
    let (busy, quiet) = (mean(&policy, Some(1)), mean(&policy, Some(2)));
    assert!(
        busy > 15.0 * EXPECTED && quiet < 2.0 * EXPECTED,
        "{busy}, {quiet}"
    );
    let due_ms = |source| {
        let post = RefreshHistory {
            source: Some(source),
            ..RefreshHistory::stored(Some(0), MINUTE_MS, 0.0)
        };
        match policy.due(&post.refreshed(HOUR_MS, 5.0).refreshed(5 * HOUR_MS, 20.0)) {
            Due::At(due_ms) => due_ms,
            other => panic!("{other:?}"),
        }
    };
    assert!(
        due_ms(1) < due_ms(2),
        "what is likely to grow is due sooner"
    );
}

#[test]
fn a_source_begins_with_what_the_others_have_taught() {
    let mut learned_state = LearnedState::new(0);
    let mean_of =
        |learned_state: &LearnedState, source| mean(&learned_state.policy(&by_value()), source);
    assert!((mean_of(&learned_state, None) - EXPECTED).abs() < 1e-9);
    learned_state.learn(&of(1, 100.0));
    let known = mean_of(&learned_state, Some(1));
    assert!(known > 15.0 * EXPECTED, "{known}");
    for source in [Some(2), None] {
        assert_eq!(mean_of(&learned_state, source), known, "{source:?}");
    }
}
