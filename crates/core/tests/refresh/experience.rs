//! What refreshes teach, and how it reaches the policy.

use driftline_core::refresh::{Due, Experience, Lesson, Plan, Policy, Refreshed, ValueSettings};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

fn by_worth() -> Plan {
    Plan {
        by_worth: Some(ValueSettings::default()),
        ..Plan::default()
    }
}

/// Posts that get all of their engagement within minutes.
fn fast(policy: &Policy) -> Lesson {
    let mut lesson = Lesson::default();
    for _ in 0..400 {
        let first = Refreshed::stored(Some(0), MINUTE_MS, 20.0);
        lesson.grew(policy, &first, 10 * MINUTE_MS, 100.0);
        let second = first.refreshed(10 * MINUTE_MS, 100.0);
        lesson.grew(policy, &second, 20 * HOUR_MS, 100.0);
    }
    lesson
}

#[test]
fn without_experience_the_table_is_as_configured() {
    let policy = Experience::new(0).policy(&Plan::default());
    assert_eq!(policy, Policy::default());
}

#[test]
fn a_short_quota_stretches_the_table_and_a_long_one_brings_it_back() {
    let plan = Plan::default();
    let mut experience = Experience::new(0);
    let mut now_ms = 0;
    let mut settle = |experience: &mut Experience, overdue| {
        now_ms += 20 * MINUTE_MS;
        let post = Refreshed::stored(Some(now_ms - 300 * HOUR_MS), now_ms - 200 * HOUR_MS, 0.0);
        let mut lesson = Lesson::default();
        for _ in 0..100 {
            lesson.answered(&experience.policy(&plan), &post, now_ms);
        }
        experience.learn(&lesson);
        let offered_per_ms = 100.0 / (20.0 * MINUTE_MS as f64);
        experience.settle(&plan, offered_per_ms, overdue, now_ms);
    };
    for _ in 0..20 {
        settle(&mut experience, 5_000);
    }
    assert!(experience.stretch() > 2.0, "{}", experience.stretch());
    let post = Refreshed::stored(Some(0), 0, 0.0);
    let Due::At(due_ms) = experience.policy(&plan).due(&post) else {
        panic!("it is due")
    };
    assert!(due_ms > 6 * MINUTE_MS, "{due_ms}");
    for _ in 0..200 {
        // Nothing was due: the quota is long.
        now_ms += 20 * MINUTE_MS;
        experience.settle(&plan, 1.0, 0, now_ms);
    }
    assert!(experience.stretch() < 1.01, "{}", experience.stretch());
}

#[test]
fn time_without_quota_moves_nothing() {
    let mut experience = Experience::new(0);
    let before = experience.policy(&by_worth());
    experience.settle(&by_worth(), 0.0, 1_000_000, 6 * HOUR_MS);
    assert_eq!(experience.policy(&by_worth()), before);
}

#[test]
fn workers_lessons_add_up_in_any_order() {
    let policy = Experience::new(0).policy(&by_worth());
    let (mut one, mut two) = (fast(&policy), Lesson::default());
    one.add(&of(1, &policy, false));
    one.add(&of(2, &policy, true));
    let slow = Refreshed::stored(Some(0), HOUR_MS, 5.0);
    two.grew(&policy, &slow, 9 * HOUR_MS, 50.0);
    two.add(&of(1, &policy, true));
    let learned = |lessons: [&Lesson; 2]| {
        let mut experience = Experience::new(0);
        lessons
            .into_iter()
            .for_each(|lesson| experience.learn(lesson));
        experience
    };
    assert_eq!(learned([&one, &two]), learned([&two, &one]));
    let mut both = one.clone();
    both.add(&two);
    assert_eq!(learned([&both, &Lesson::default()]), learned([&one, &two]));
}

#[test]
fn growth_that_was_seen_changes_when_posts_are_due() {
    let plan = by_worth();
    let mut experience = Experience::new(0);
    let before = experience.policy(&plan);
    experience.learn(&fast(&before));
    let after = experience.policy(&plan);
    let old = Refreshed::stored(Some(0), 0, 0.0)
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
    let text = serde_json::to_string(&experience).expect("JSON");
    let read: Experience = serde_json::from_str(&text).expect("an experience");
    assert_eq!(read, experience);
}

/// What refreshes of a source's posts show that get all of their engagement within minutes, or
/// most of it within days.
fn of(source: u64, policy: &Policy, is_fast: bool) -> Lesson {
    let mut lesson = Lesson::default();
    let totals = if is_fast {
        [100.0, 100.0, 100.0, 100.0]
    } else {
        [3.0, 6.0, 30.0, 100.0]
    };
    for _ in 0..400 {
        let mut post = Refreshed {
            source: Some(source),
            ..Refreshed::stored(Some(0), MINUTE_MS, 2.0)
        };
        for (minutes, total) in [10, 60, 600, 3_600].into_iter().zip(totals) {
            lesson.grew(policy, &post, minutes * MINUTE_MS, total);
            post = post.refreshed(minutes * MINUTE_MS, total);
        }
    }
    lesson
}

fn share(policy: &Policy, source: Option<u64>, age_ms: i64) -> f64 {
    match policy {
        Policy::Value { by, .. } => by.growth(source).0.share(age_ms),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_source_learns_how_its_own_posts_grow() {
    let plan = by_worth();
    let mut experience = Experience::new(0);
    let policy = experience.policy(&plan);
    experience.learn(&of(1, &policy, true));
    experience.learn(&of(2, &policy, false));
    let policy = experience.policy(&plan);
    let (fast, slow) = (
        share(&policy, Some(1), 20 * MINUTE_MS),
        share(&policy, Some(2), 20 * MINUTE_MS),
    );
    assert!(fast > 0.8, "{fast}");
    assert!(slow < 0.2, "{slow}");
    let post = |source| {
        Refreshed {
            source: Some(source),
            ..Refreshed::stored(Some(0), 0, 0.0)
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
    let plan = by_worth();
    let mut experience = Experience::new(0);
    let before = experience.policy(&plan);
    experience.learn(&of(1, &before, true));
    let after = experience.policy(&plan);
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
    let plan = by_worth();
    let policy = Experience::new(0).policy(&plan);
    let (mut of_source, mut of_all) = (Experience::new(0), Experience::new(0));
    for is_fast in [true, false] {
        of_source.learn(&of(7, &policy, is_fast));
    }
    let text = serde_json::to_string(&of_source).expect("JSON");
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    json["growth"] = json["sources"]["7"].clone();
    json["sources"] = serde_json::json!({});
    of_all.clone_from(&serde_json::from_value(json).expect("an experience"));
    let (of_source, of_all) = (of_source.policy(&plan), of_all.policy(&plan));
    for minutes in [1, 10, 60, 600, 6_000] {
        let (one, all) = (
            share(&of_source, Some(7), minutes * MINUTE_MS),
            share(&of_all, None, minutes * MINUTE_MS),
        );
        assert!((one - all).abs() < 1e-6, "{minutes} min: {one} and {all}");
    }
}

/// As it was stored before sources were told apart.
#[test]
fn an_old_experience_is_what_each_source_begins_with() {
    let plan = by_worth();
    let mut experience = Experience::new(0);
    experience.learn(&fast(&experience.policy(&plan)));
    let mut json = serde_json::to_value(&experience).expect("JSON");
    let known = json.as_object_mut().expect("an object").remove("sources");
    assert_eq!(known, Some(serde_json::json!({})), "it has no source's");
    let mut read: Experience = serde_json::from_value(json).expect("an old experience");
    assert_eq!(read, experience);
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
    assert!(others > 2.0 * own, "{others} beside {own}");
}
