//! Invariants of predicates, whichever parser read them.

use driftline_core::predicate::{
    Attachment, Matcher, NameContext, PostFacts, PostTrait, Predicate,
};

/// Names without a host belong to a.example, where ann is logged in.
pub const NAMES: NameContext<'static> = NameContext {
    origin: "https://a.example",
    viewer: Some("ann"),
};

/// Checks that a predicate survives both forms, that its canonical form is stable and matches the same
/// posts, and that matching does not panic.
///
/// # Panics
/// If an invariant is broken.
pub fn check(predicate: &Predicate) {
    let json = serde_json::to_string(predicate).expect("JSON");
    assert_eq!(Predicate::from_json(&json).as_ref().ok(), Some(predicate));
    let text = predicate.to_string();
    let parsed = Predicate::parse(&text, &NAMES).expect("the text form of a predicate");
    assert_eq!(parsed.tree(), predicate.tree(), "{text}");
    let canonical = predicate.canonical();
    assert_eq!(canonical.canonical(), canonical);
    let text = canonical.to_string();
    let parsed = Predicate::parse(&text, &NAMES).expect("the text form of a canonical predicate");
    assert_eq!(parsed.tree(), canonical.tree(), "{text}");
    assert_eq!(parsed.canonical().tree(), canonical.tree(), "{text}");
    drop(predicate.candidates());
    let (matcher, same) = (Matcher::new(predicate), Matcher::new(&canonical));
    for post in &posts() {
        assert_eq!(matcher.matches(post), same.matches(post), "{canonical}");
    }
}

fn posts() -> [PostFacts<'static>; 2] {
    [
        PostFacts {
            nickname: Some("ネコ Cat"),
            entries: &["I love CATS and ｶﾞﾗｽ", "猫\u{301} ß\0", ""],
            via: &["b.example"],
            sources: &["news"],
            attachments: &[Attachment::Media],
            traits: &[PostTrait::Reply],
            language: Some("ja"),
            tags: &["cats", "猫"],
            mentions: &["bob@b.example"],
            created_at_ms: Some(1_767_225_600_000),
            author_id: Some(7),
            ..PostFacts::bare(123, "ann@a.example")
        },
        PostFacts {
            traits: &[PostTrait::Boost],
            ..PostFacts::bare(0, "")
        },
    ]
}
