//! A world is a function of configuration and seed, and answers as Mastodon
//! does.

use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use driftline_sim::{IdLayout, Lane, Status, TruePost, World, WorldConfig, content_hash};
use proptest::prelude::*;

fn ids(statuses: &[Status]) -> Vec<UpstreamId> {
    statuses.iter().map(|status| status.id.clone()).collect()
}

fn newest(limit: u16) -> PageRequest {
    PageRequest {
        limit,
        ..PageRequest::default()
    }
}

#[test]
fn the_same_seed_publishes_the_same_however_often_it_is_asked() {
    let config = WorldConfig {
        layout: IdLayout::Ulid,
        ..WorldConfig::hard(20.0)
    };
    let end_ms = config.start_ms + 600_000;
    let mut rarely = World::new(config.clone(), 9);
    let mut often = World::new(config.clone(), 9);
    for now_ms in (config.start_ms..end_ms).step_by(77) {
        often.page(now_ms, &newest(3));
    }
    let truth = rarely.truth(end_ms);
    assert!(truth.posts.len() > 10_000);
    assert_eq!(truth, often.truth(end_ms));
    assert_ne!(truth, World::new(config, 10).truth(end_ms));
}

#[test]
fn turning_one_knob_leaves_the_rest_of_the_world_as_it_was() {
    let plain = WorldConfig::measured(20.0);
    let deleting = WorldConfig {
        deleted_share: 0.5,
        ..plain.clone()
    };
    let now_ms = plain.start_ms + 60_000;
    let creations = |config| {
        let truth = World::new(config, 1).truth(now_ms);
        let creations = truth
            .posts
            .into_iter()
            .map(|post| (post.id, post.visible_at_ms));
        creations.collect::<Vec<_>>()
    };
    assert_eq!(creations(plain), creations(deleting));
}

#[test]
fn the_past_is_answered_as_it_was() {
    let config = WorldConfig {
        filtered_share: 0.0,
        ..WorldConfig::hard(20.0)
    };
    let (start_ms, mut world) = (config.start_ms, World::new(config, 4));
    let then = world.page(start_ms + 50_000, &newest(40));
    world.advance(start_ms + 500_000);
    assert_eq!(world.page(start_ms + 50_000, &newest(40)), then);
}

#[test]
fn publishing_ends_and_the_rate_is_the_rate() {
    let config = WorldConfig {
        publish_for_ms: Some(1_000_000),
        ..WorldConfig::punctual(20.0)
    };
    let start_ms = config.start_ms;
    let truth = World::new(config, 3).truth(start_ms + 10_000_000);
    assert!((19_500..20_500).contains(&truth.posts.len()));
    assert!(truth.posts.iter().all(|post| {
        (start_ms..start_ms + 1_000_000).contains(&post.visible_at_ms) && post.lateness_ms() == 0
    }));
}

#[test]
fn every_knob_shows_in_the_truth() {
    let config = WorldConfig::hard(20.0);
    let now_ms = config.start_ms + 600_000;
    let mut world = World::new(config, 1);
    let truth = world.truth(now_ms);
    let some = |test: &dyn Fn(&TruePost) -> bool| truth.posts.iter().any(test);
    assert!(some(&|post| post.lateness_ms() < 0));
    assert!(some(&|post| post.lateness_ms() > 60_000), "federated");
    assert!(some(&|post| post.lateness_ms() < -86_000_000), "tomorrow");
    assert!(some(&|post| post.deleted_at_ms.is_some()));
    assert!(some(&|post| post
        .visible_for_ms
        .is_some_and(|ms| ms < 10_000)));
    let edited = truth
        .posts
        .iter()
        .find(|post| post.edited_at_ms.is_some() && post.deleted_at_ms.is_none())
        .expect("an edited post");
    let status = world.look_up(now_ms, &edited.id).expect("it is there");
    assert_eq!(status.edited_at_ms, edited.edited_at_ms);
    assert_eq!(Some(&status.content), edited.edited_content.as_ref());
    assert_eq!(content_hash(&status.content), edited.content_hash);
    let before_ms = edited.edited_at_ms.expect("edited") - 1;
    if before_ms >= edited.visible_at_ms {
        let before = world.look_up(before_ms, &edited.id).expect("it was there");
        assert_ne!(before.content, status.content);
    }
    let page = world.page(now_ms - 1_000, &newest(40));
    assert!(page.len() <= 40);
    let mut boosted = None;
    for second in 0..600 {
        let page = world.page(now_ms - second * 1_000, &newest(40));
        boosted = boosted.or(page.into_iter().find(|status| status.boost_of.is_some()));
    }
    let boost = boosted.expect("a boost").to_post();
    assert!(
        boost
            .boost_of
            .is_some_and(|post| boost.raw.contains(&post.raw))
    );
}

#[test]
fn counts_grow_and_never_shrink() {
    let config = WorldConfig::punctual(5.0);
    let start_ms = config.start_ms;
    let mut world = World::new(config, 2);
    let id = world.page(start_ms + 5_000, &newest(1))[0].id.clone();
    let favourites: Vec<i64> = (0..100)
        .map(|hour| start_ms + 6_000 + hour * 3_600_000 / 10)
        .filter_map(|now_ms| world.look_up(now_ms, &id))
        .map(|status| status.favourites)
        .collect();
    assert_eq!(favourites.len(), 100);
    assert!(favourites.is_sorted() && favourites[0] < favourites[99]);
}

#[test]
fn lanes_share_no_id_even_when_a_millisecond_is_full() {
    let mut all = std::collections::HashSet::new();
    for layout in IdLayout::ALL {
        all.clear();
        let mut posts = 0;
        for number in [0, 1, 1023] {
            let mut config = WorldConfig {
                layout,
                lane: Lane { number, of: 1024 },
                ..WorldConfig::punctual(0.0)
            };
            config.bursts = Some(driftline_sim::Bursts {
                every_ms: 1_000,
                posts: 300,
                span_ms: 0,
            });
            let now_ms = config.start_ms + 5_500;
            let truth = World::new(config, 7).truth(now_ms);
            posts += truth.posts.len();
            for post in truth.posts {
                let number: u128 = post.id.as_str().parse().unwrap_or(0);
                match layout {
                    IdLayout::Mastodon => assert_eq!(number >> 16, post.id_time_ms as u128),
                    IdLayout::Twitter => {
                        assert_eq!((number >> 22) + 1_288_834_974_657, post.id_time_ms as u128);
                    }
                    _ => {}
                }
                all.insert(post.id);
            }
        }
        assert_eq!((all.len(), posts), (4_500, 4_500), "{layout:?}");
    }
}

#[test]
fn the_json_has_every_key_of_mastodons() {
    let config = WorldConfig::demo();
    let now_ms = config.start_ms + 10_000;
    let mut world = World::new(config, 1);
    let truth = world.truth(now_ms);
    let there = truth
        .posts
        .iter()
        .find(|post| post.deleted_at_ms.is_none())
        .expect("a post");
    let status = world.look_up(now_ms, &there.id).expect("it is there");
    let json: serde_json::Value = serde_json::from_str(&status.to_json()).expect("JSON");
    for key in "id created_at in_reply_to_id in_reply_to_account_id sensitive spoiler_text \
                visibility language uri url replies_count reblogs_count favourites_count \
                edited_at content reblog account media_attachments mentions tags emojis card poll"
        .split_whitespace()
    {
        assert!(json.get(key).is_some(), "status lacks {key}");
    }
    for key in "id username acct url uri display_name note avatar avatar_static header \
                header_static locked fields emojis bot group discoverable created_at \
                last_status_at statuses_count followers_count following_count"
        .split_whitespace()
    {
        assert!(json["account"].get(key).is_some(), "account lacks {key}");
    }
    assert_eq!(json["id"], there.id.as_str());
    let created_at = json["created_at"].as_str().expect("text");
    let parsed: jiff::Timestamp = created_at.parse().expect("ISO 8601");
    assert_eq!(parsed.as_millisecond(), status.created_at_ms);
    assert!(
        created_at.ends_with('Z') && created_at.len() == 24,
        "{created_at}"
    );
}

/// Mastodon's paging over a plain list.
fn model(truth: &[TruePost], config: &WorldConfig, request: &PageRequest) -> Vec<UpstreamId> {
    let order = config.layout.order();
    let key = |id: &UpstreamId| order.key(id).expect("a key");
    let mut there: Vec<UpstreamId> = truth
        .iter()
        .filter(|post| post.deleted_at_ms.is_none())
        .map(|post| post.id.clone())
        .collect();
    there.sort_by_key(|id| std::cmp::Reverse(key(id)));
    there.truncate(config.reach.map_or(usize::MAX, |reach| reach as usize));
    let min_id = request.min_id.as_ref().filter(|_| !config.ignores_min_id);
    let above = min_id.or(request.since_id.as_ref());
    there.retain(|id| above.is_none_or(|bound| key(id) > key(bound)));
    there.retain(|id| {
        request
            .max_id
            .as_ref()
            .is_none_or(|bound| key(id) < key(bound))
    });
    let limit = usize::from(request.limit.min(40));
    if min_id.is_some() {
        let extra = there.len().saturating_sub(limit);
        there.drain(..extra);
    } else {
        there.truncate(limit);
    }
    there
}

#[derive(Debug, Clone)]
enum Bound {
    None,
    Post(prop::sample::Index),
    Made(String),
}

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![
        2 => Just(Bound::None),
        3 => any::<prop::sample::Index>().prop_map(Bound::Post),
        1 => "[1-9][0-9]{0,24}".prop_map(Bound::Made),
        1 => "1[0-9]{17}".prop_map(Bound::Made),
        1 => "01K[0-9A-Z]{3,23}".prop_map(Bound::Made),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn pages_are_those_of_a_plain_model(
        seed: u64,
        layout in prop::sample::select(IdLayout::ALL.to_vec()),
        reach in prop::option::of(0u32..120),
        ignores_min_id: bool,
        after_ms in 0i64..30_000,
        (since, below, min_id) in (bound(), bound(), bound()),
        limit in 0u16..60,
    ) {
        let config = WorldConfig {
            layout,
            reach,
            ignores_min_id,
            deleted_share: 0.2,
            deleted_after_ms: driftline_sim::SpanMs::new(0, 9_000),
            filtered_share: 0.0,
            ..WorldConfig::hard(8.0)
        };
        let now_ms = config.start_ms + after_ms;
        let mut world = World::new(config.clone(), seed);
        let truth = world.truth(now_ms).posts;
        let id_of = |bound: Bound| match bound {
            Bound::Post(index) if !truth.is_empty() => Some(index.get(&truth).id.clone()),
            Bound::Made(text) => Some(UpstreamId::new(text)),
            _ => None,
        };
        let numeric_only = |id: Option<UpstreamId>| id.filter(|id| layout.order().key(id).is_ok());
        let request = PageRequest {
            since_id: numeric_only(id_of(since)),
            max_id: numeric_only(id_of(below)),
            min_id: numeric_only(id_of(min_id)),
            limit,
        };
        let page = ids(&world.page(now_ms, &request));
        prop_assert_eq!(page, model(&truth, &config, &request));
    }
}
