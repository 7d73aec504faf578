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
    let (one, mut two) = (fast(&policy), Lesson::default());
    let slow = Refreshed::stored(Some(0), HOUR_MS, 5.0);
    two.grew(&policy, &slow, 9 * HOUR_MS, 50.0);
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
