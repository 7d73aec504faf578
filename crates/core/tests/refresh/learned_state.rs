//! What refreshes teach, and how it reaches the policy.

use driftline_core::refresh::{
    Due, LearnedState, Policy, RefreshHistory, RefreshObservation, RefreshPlan, ValueSettings,
};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

fn by_value() -> RefreshPlan {
    RefreshPlan {
        by_value: Some(ValueSettings::default()),
        ..RefreshPlan::default()
    }
}

/// Posts that get all of their engagement within minutes.
fn fast(policy: &Policy) -> RefreshObservation {
    let mut observation = RefreshObservation::default();
    for _ in 0..400 {
        let first = RefreshHistory::stored(Some(0), MINUTE_MS, 20.0);
        observation.grew(policy, &first, 10 * MINUTE_MS, 100.0);
        let second = first.refreshed(10 * MINUTE_MS, 100.0);
        observation.grew(policy, &second, 20 * HOUR_MS, 100.0);
    }
    observation
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
fn workers_lessons_add_up_in_any_order() {
    let policy = LearnedState::new(0).policy(&by_value());
    let (mut one, mut two) = (fast(&policy), RefreshObservation::default());
    one.add(&of(1, &policy, false));
    one.add(&of(2, &policy, true));
    let slow = RefreshHistory::stored(Some(0), HOUR_MS, 5.0);
    two.grew(&policy, &slow, 9 * HOUR_MS, 50.0);
    two.add(&of(1, &policy, true));
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
    assert_eq!(
        learned([&both, &RefreshObservation::default()]),
        learned([&one, &two])
    );
}

#[test]
fn growth_that_was_seen_changes_when_posts_are_due() {
    let plan = by_value();
    let mut learned_state = LearnedState::new(0);
    let before = learned_state.policy(&plan);
    learned_state.learn(&fast(&before));
    let after = learned_state.policy(&plan);
    let old = RefreshHistory::stored(Some(0), 0, 0.0)
        .refreshed(10 * MINUTE_MS, 80.0)
        .refreshed(5 * HOUR_MS, 80.0);
    let due = |policy: &Policy| match policy.due(&old) {
        Due::At(due_ms) => due_ms,
        other => panic!("{other:?}"),
    };
    assert!(
        due(&after) >= due(&before),
        "what has stopped growing can wait"
    );
    let text = serde_json::to_string(&learned_state).expect("JSON");
    let read: LearnedState = serde_json::from_str(&text).expect("a state");
    assert_eq!(read, learned_state);
}

/// What refreshes of a source's posts show that get all of their engagement within minutes, or
/// most of it within days.
fn of(source: u64, policy: &Policy, is_fast: bool) -> RefreshObservation {
    let mut observation = RefreshObservation::default();
    let totals = if is_fast {
        [100.0, 100.0, 100.0, 100.0]
    } else {
        [3.0, 6.0, 30.0, 100.0]
    };
    for _ in 0..400 {
        let mut post = RefreshHistory {
            source: Some(source),
            ..RefreshHistory::stored(Some(0), MINUTE_MS, 2.0)
        };
        for (minutes, total) in [10, 60, 600, 3_600].into_iter().zip(totals) {
            observation.grew(policy, &post, minutes * MINUTE_MS, total);
            post = post.refreshed(minutes * MINUTE_MS, total);
        }
    }
    observation
}

fn share(policy: &Policy, source: Option<u64>, age_ms: i64) -> f64 {
    match policy {
        Policy::Value { by, .. } => by.growth(source).0.share(age_ms),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_source_learns_how_its_own_posts_grow() {
    let plan = by_value();
    let mut learned_state = LearnedState::new(0);
    let policy = learned_state.policy(&plan);
    learned_state.learn(&of(1, &policy, true));
    learned_state.learn(&of(2, &policy, false));
    let policy = learned_state.policy(&plan);
    let (fast, slow) = (
        share(&policy, Some(1), 20 * MINUTE_MS),
        share(&policy, Some(2), 20 * MINUTE_MS),
    );
    assert!(fast > 0.8, "{fast}");
    assert!(slow < 0.2, "{slow}");
    let post = |source| {
        RefreshHistory {
            source: Some(source),
            ..RefreshHistory::stored(Some(0), 0, 0.0)
        }
        .refreshed(5 * MINUTE_MS, 40.0)
        .refreshed(HOUR_MS, 100.0)
    };
    let due_ms = |source| match policy.due(&post(source)) {
        Due::At(due_ms) => due_ms,
        other => panic!("{other:?}"),
    };
    assert!(due_ms(1) > due_ms(2), "what has stopped growing can wait");
}

#[test]
fn a_source_begins_with_what_the_others_have_taught() {
    let plan = by_value();
    let mut learned_state = LearnedState::new(0);
    let before = learned_state.policy(&plan);
    learned_state.learn(&of(1, &before, true));
    let after = learned_state.policy(&plan);
    let age_ms = 20 * MINUTE_MS;
    let (configured, known) = (share(&before, None, age_ms), share(&after, Some(1), age_ms));
    for source in [Some(2), None] {
        let begun = share(&after, source, age_ms);
        assert!(begun > configured + 0.3, "{source:?}: {begun}");
        assert!(
            (begun - known).abs() < 0.05,
            "{source:?}: {begun} for {known}"
        );
    }
}

#[test]
fn alone_a_source_learns_as_an_instance_without_sources_does() {
    let plan = by_value();
    let policy = LearnedState::new(0).policy(&plan);
    let (mut of_source, mut of_all) = (LearnedState::new(0), LearnedState::new(0));
    for is_fast in [true, false] {
        of_source.learn(&of(7, &policy, is_fast));
    }
    let text = serde_json::to_string(&of_source).expect("JSON");
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    json["growth"] = json["sources"]["7"].clone();
    json["sources"] = serde_json::json!({});
    of_all.clone_from(&serde_json::from_value(json).expect("a state"));
    let (of_source, of_all) = (of_source.policy(&plan), of_all.policy(&plan));
    for minutes in [1, 10, 60, 600, 6_000] {
        let (one, all) = (
            share(&of_source, Some(7), minutes * MINUTE_MS),
            share(&of_all, None, minutes * MINUTE_MS),
        );
        assert!((one - all).abs() < 1e-6, "{minutes} min: {one} and {all}");
    }
}

/// As it was stored before sources were distinguished.
#[test]
fn an_old_experience_is_what_each_source_begins_with() {
    let plan = by_value();
    let mut learned_state = LearnedState::new(0);
    learned_state.learn(&fast(&learned_state.policy(&plan)));
    let mut json = serde_json::to_value(&learned_state).expect("JSON");
    let known = json.as_object_mut().expect("an object").remove("sources");
    assert_eq!(known, Some(serde_json::json!({})), "it has no source's");
    let mut read: LearnedState = serde_json::from_value(json).expect("an old state");
    assert_eq!(read, learned_state);
    let before = read.policy(&plan);
    let age_ms = 20 * MINUTE_MS;
    assert_eq!(
        share(&before, Some(3), age_ms),
        share(&before, None, age_ms)
    );
    read.learn(&of(3, &before, false));
    let after = read.policy(&plan);
    let (own, others) = (
        share(&after, Some(3), age_ms),
        share(&after, Some(4), age_ms),
    );
    let begun = share(&before, Some(3), age_ms);
    assert!(
        own < begun / 2.0,
        "it learns its own: {own}, {begun} before"
    );
    assert!(others > 2.0 * own, "{others} against {own}");
}
