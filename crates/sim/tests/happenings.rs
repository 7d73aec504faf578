//! What becomes of posts after they appeared: counts, hiding, events.

use driftline_core::answer::PageRequest;
use driftline_sim::{
    Found, Growth, Happening, SpanMs, TruePost, Truth, World, WorldConfig, content_hash,
};
use serde_json::{Value, json};

fn lively() -> WorldConfig {
    WorldConfig {
        boost_share: 0.1,
        edited_share: 0.2,
        edited_after_ms: SpanMs::new(0, 20_000),
        deleted_share: 0.2,
        deleted_after_ms: SpanMs::new(0, 20_000),
        filtered_share: 0.1,
        ..WorldConfig::measured(20.0)
    }
}

/// FNV-1a over every page's JSON of a minute and the truth's, as they were
/// before growth, hiding and events existed.
#[test]
fn worlds_without_the_new_knobs_are_what_they_were() {
    for (config, seed, hash) in [
        (WorldConfig::demo(), 3, HASH_OF_DEMO),
        (WorldConfig::hard(20.0), 4, HASH_OF_HARD),
    ] {
        let mut world = World::new(config.clone(), seed);
        let mut text = String::new();
        for second in 0..60 {
            let request = PageRequest {
                limit: 40,
                ..PageRequest::default()
            };
            let page = world.page(config.start_ms + second * 1_000, &request);
            page.iter()
                .for_each(|status| text += &in_order(&status.to_json()));
        }
        let truth = world.truth(config.start_ms + 60_000);
        text += &truth
            .posts
            .iter()
            .map(true_json)
            .collect::<Value>()
            .to_string();
        assert_eq!(content_hash(&text), hash);
    }
}

fn true_json(post: &TruePost) -> Value {
    let mut value = json!({
        "id": post.id,
        "visible_at_ms": post.visible_at_ms,
        "id_time_ms": post.id_time_ms,
        "deleted_at_ms": post.deleted_at_ms,
        "edited_at_ms": post.edited_at_ms,
        "visible_for_ms": post.visible_for_ms,
        "content_hash": post.content_hash.to_string(),
    });
    if let Some(content) = &post.edited_content {
        value["edited_content"] = json!(content);
    }
    value
}

/// The same JSON with the members of each object in the order of their names.
fn in_order(json: &str) -> String {
    let value: Value = serde_json::from_str(json).expect("JSON");
    value.to_string()
}

#[test]
fn growth_and_hiding_leave_the_rest_of_the_world_as_it_was() {
    let knobs = WorldConfig {
        growth: Some(Growth::default()),
        hidden_share: 0.5,
        ..lively()
    };
    let now_ms = knobs.start_ms + 60_000;
    let truth = |config| -> Truth { World::new(config, 1).truth(now_ms) };
    assert_eq!(truth(lively()), truth(knobs));
}

#[test]
fn counts_are_a_function_of_post_and_time_that_pages_agree_with() {
    let config = WorldConfig {
        growth: Some(Growth {
            median_total: 300.0,
            ..Growth::default()
        }),
        ..lively()
    };
    let start_ms = config.start_ms;
    let mut world = World::new(config.clone(), 1);
    let mut later = World::new(config, 1);
    later.advance(start_ms + 500_000);
    let request = PageRequest {
        limit: 40,
        ..PageRequest::default()
    };
    let page = world.page(start_ms + 60_000, &request);
    let mut grown = 0;
    for status in &page {
        for hours in [0, 1, 5, 50] {
            let now_ms = start_ms + 60_000 + hours * 3_600_000;
            let counts = world.counts_at(now_ms, &status.id).expect("published");
            assert_eq!(later.counts_at(now_ms, &status.id), Some(counts));
            if status.boost_of.is_some() {
                assert_eq!(counts.favourites, Some(0));
            }
            if hours == 0 {
                assert_eq!(counts.favourites, Some(status.favourites));
                assert_eq!(counts.boosts, Some(status.boosts));
                assert_eq!(counts.replies, Some(status.replies));
            }
            grown += i64::from(counts.views > Some(1_000));
        }
    }
    assert!(grown > 40, "{grown}");
    assert_eq!(world.counts_at(start_ms, &page[0].id), None, "not yet");
    assert_eq!(world.counts_at(start_ms, &"12".into()), None);
}

#[test]
fn a_deleted_post_keeps_what_it_had() {
    let config = WorldConfig {
        growth: Some(Growth {
            median_total: 5_000.0,
            ..Growth::default()
        }),
        deleted_share: 1.0,
        deleted_after_ms: SpanMs::new(600_000, 600_000),
        ..WorldConfig::punctual(5.0)
    };
    let now_ms = config.start_ms + 10_000;
    let mut world = World::new(config, 1);
    let post = world.truth(now_ms).posts[0].clone();
    let at = |after_ms| world.counts_at(post.visible_at_ms + after_ms, &post.id);
    assert_ne!(at(300_000), at(600_000));
    assert_eq!(at(600_000), at(6_000_000));
}

#[test]
fn hidden_posts_go_when_they_say_and_stay_true() {
    let config = WorldConfig {
        hidden_share: 0.4,
        hidden_after_ms: SpanMs::new(5_000, 90_000),
        ..WorldConfig::punctual(10.0)
    };
    let start_ms = config.start_ms;
    let mut world = World::new(config, 1);
    let truth = world.truth(start_ms + 60_000).posts;
    let mut hidden = 0;
    for post in &truth {
        let Some(at_ms) = world.hidden_at_ms(&post.id) else {
            assert!(world.look_up(start_ms + 900_000, &post.id).is_some());
            continue;
        };
        hidden += 1;
        assert!((5_000..=90_000).contains(&(at_ms - post.visible_at_ms)));
        assert!(world.look_up(at_ms - 1, &post.id).is_some());
        assert_eq!(world.find(at_ms, &post.id), Found::Hidden);
        assert_eq!(world.look_up(at_ms, &post.id), None);
        let request = PageRequest {
            min_id: Some(post.id.clone()),
            limit: 40,
            ..PageRequest::default()
        };
        let page = world.page(at_ms, &request);
        assert!(page.iter().all(|status| status.id != post.id));
    }
    let share = f64::from(hidden) / truth.len() as f64;
    assert!((0.3..0.5).contains(&share), "{share}");
}

#[test]
fn events_are_the_same_in_whatever_steps_they_are_asked_for() {
    let config = lively();
    let (start_ms, end_ms) = (config.start_ms, config.start_ms + 60_000);
    let whole = World::new(config.clone(), 1).events(start_ms, end_ms);
    let mut world = World::new(config.clone(), 1);
    world.advance(start_ms + 30_000);
    let mut steps = Vec::new();
    for at_ms in (start_ms..end_ms).step_by(500) {
        steps.extend(world.events(at_ms, at_ms + 500));
    }
    assert_eq!(steps, whole);
    assert!(whole.is_sorted_by_key(|event| event.at_ms));
    let count = |is_counted: fn(&Happening) -> bool| {
        let events = whole.iter().filter(|event| is_counted(&event.happening));
        events.count()
    };
    let truth = world.truth(end_ms).posts;
    let deleted = truth.iter().filter(|post| post.deleted_at_ms.is_some());
    assert_eq!(
        count(|it| matches!(it, Happening::Deleted(_))),
        deleted.count()
    );
    let appeared = count(|it| matches!(it, Happening::Appeared(_)));
    let never = truth.iter().filter(|post| post.visible_for_ms == Some(0));
    assert_eq!(appeared + never.count(), truth.len());
    assert!(count(|it| matches!(it, Happening::Edited(_))) > 50);
}

const HASH_OF_DEMO: u64 = 16_220_133_714_461_924_564;
const HASH_OF_HARD: u64 = 12_148_099_718_293_622_648;
