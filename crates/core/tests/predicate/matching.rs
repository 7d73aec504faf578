//! The matcher, against a naive evaluator and by its rules.

use driftline_core::predicate::{Attachment, Folding, Matcher, PostTrait, Predicate, PredicateSet};

use crate::{
    naive::NaivePost,
    post::TestPost,
    random::{NAMES, Random},
};

fn matches(text: &str, post: &TestPost) -> bool {
    let predicate = Predicate::parse(text, &NAMES).expect(text);
    post.with_facts(|facts| Matcher::new(&predicate).matches(facts))
}

#[test]
fn many_predicates_decide_as_a_naive_evaluator() {
    let mut matching = 0;
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let predicates: Vec<Predicate> = (0..100).map(|_| random.predicate(8)).collect();
        let set = PredicateSet::new(&predicates);
        for _ in 0..100 {
            let post = NaivePost::new(random.post());
            let expected: Vec<usize> = (0..predicates.len())
                .filter(|index| post.matches(&predicates[*index]))
                .collect();
            let found = post.post().with_facts(|facts| set.matches(facts));
            matching += found.len();
            assert_eq!(found, expected, "seed {seed}: {:?}", post.post());
        }
    }
    // Of 100,000 pairs, enough match and enough do not.
    assert!((20_000..80_000).contains(&matching), "{matching}");
}

#[test]
fn one_predicate_decides_as_in_a_set() {
    let mut random = Random::new(77);
    for _ in 0..2_000 {
        let predicate = random.predicate(6);
        let post = NaivePost::new(random.post());
        let matcher = Matcher::new(&predicate);
        let found = post.post().with_facts(|facts| matcher.matches(facts));
        assert_eq!(
            found,
            post.matches(&predicate),
            "{predicate}: {:?}",
            post.post()
        );
    }
}

#[test]
fn a_word_matches_within_one_entry_or_the_nickname() {
    let mut post = TestPost::new("ann@a.example", &["one cat", "two dogs"]);
    post.nickname = Some("猫好き".to_owned());
    for (text, expected) in [
        ("cat dog", true),
        ("\"cat two\"", false),
        ("cattwo", false),
        ("猫", true),
        ("=猫好", true),
        ("ann", false),
    ] {
        assert_eq!(matches(text, &post), expected, "{text}");
    }
}

#[test]
fn a_boost_matches_only_trees_with_is_boost() {
    let post = TestPost::new("ann@a.example", &["a cat"]);
    let mut boost = post.clone();
    boost.traits = vec![PostTrait::Boost];
    for (text, of_post, of_boost) in [
        ("cat", true, false),
        ("{}", true, false),
        ("-dog", true, false),
        ("is:boost", false, true),
        ("cat is:boost", false, true),
        ("dog is:boost", false, false),
        ("cat -is:boost", true, false),
        ("cat OR is:boost", true, true),
        ("cat (is:boost OR -is:boost)", true, true),
        ("{} XOR is:boost", true, false),
    ] {
        assert_eq!(matches(text, &post), of_post, "{text}");
        assert_eq!(matches(text, &boost), of_boost, "{text}");
    }
}

#[test]
fn an_author_matches_by_name_or_by_id() {
    let mut post = TestPost::new("Ann@A.example", &[]);
    post.author_id = Some(5);
    for (text, expected) in [
        ("from:ann", true),
        ("from:ann#6", true),
        ("from:renamed@b.example#5", true),
        ("from:bob", false),
        ("from:bob#6", false),
        ("instance:a.example", true),
        ("instance:example", false),
    ] {
        assert_eq!(matches(text, &post), expected, "{text}");
    }
    post.author_id = None;
    assert!(!matches("from:renamed@b.example#5", &post));
}

#[test]
fn a_date_is_a_whole_day_in_utc() {
    let mut post = TestPost::new("ann@a.example", &[]);
    for (time, after, before, during) in [
        ("2025-12-31T23:59:59.999Z", false, true, false),
        ("2026-01-01T00:00:00Z", false, false, true),
        ("2026-01-01T23:59:59.999Z", false, false, true),
        ("2026-01-02T00:00:00Z", true, false, false),
        ("2026-01-02T08:59:00+09:00", false, false, true),
    ] {
        let time: jiff::Timestamp = time.parse().unwrap();
        post.created_at_ms = Some(time.as_millisecond());
        assert_eq!(matches("after:2026-01-01", &post), after, "{time}");
        assert_eq!(matches("before:2026-01-01", &post), before, "{time}");
        assert_eq!(matches("during:2026-01-01", &post), during, "{time}");
    }
    post.created_at_ms = None;
    for text in ["after:2000-01-01", "before:2100-01-01", "during:2026-01-01"] {
        assert!(!matches(text, &post), "{text}");
    }
    post.created_at_ms = Some(i64::MAX);
    assert!(matches("after:9999-12-31 -before:9999-12-31", &post));
}

#[test]
fn an_unknown_count_compares_with_nothing() {
    let mut post = TestPost::new("ann@a.example", &[]);
    assert!(!matches("favourites:>=0 OR favourites:<1", &post));
    post.counts.favourites = Some(100);
    for (comparison, expected) in [
        ("100", true),
        ("=100", true),
        ("99", false),
        (">100", false),
        (">=100", true),
        ("<100", false),
        ("<=100", true),
        ("<101", true),
    ] {
        assert_eq!(
            matches(&format!("favourites:{comparison}"), &post),
            expected
        );
    }
}

#[test]
fn kana_are_equal_under_the_newest_folding_only() {
    let post = TestPost::new("ann@a.example", &["ネコが来た"]);
    let newest = Predicate::parse("ねこ", &NAMES).unwrap();
    let first = Predicate::new(newest.tree().clone(), Folding::Case).unwrap();
    let set = PredicateSet::new([&first, &newest, &first]);
    assert_eq!(post.with_facts(|facts| set.matches(facts)), [1]);
}

#[test]
fn a_hashtag_matches_in_any_case_and_width() {
    let mut post = TestPost::new("ann@a.example", &["#Ｃａｔ"]);
    post.tags = vec!["Ｃａｔ".to_owned()];
    for (text, expected) in [
        ("#cat", true),
        ("tag:CAT", true),
        ("#ca", false),
        ("\"#cat\"", true),
    ] {
        assert_eq!(matches(text, &post), expected, "{text}");
    }
    post.attachments = vec![Attachment::Poll];
    assert!(matches("#cat has:poll -has:media", &post));
}
