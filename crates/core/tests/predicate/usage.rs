//! The terms that each use of a predicate may have.

use driftline_core::predicate::{Predicate, Usage, UsageError};

use crate::random::NAMES;

#[test]
fn only_searches_have_counts_and_follows_and_sync_knows_versions_of_posts() {
    for (term, in_saved, in_sync) in [
        ("cat", true, true),
        ("=cat", true, true),
        ("word:cat", true, true),
        ("author:ann@a.example", true, true),
        ("instance:a.example", true, true),
        ("has:media", true, true),
        ("has:poll", true, true),
        ("has:cw", true, true),
        ("has:link", true, false),
        ("has:embed", true, false),
        ("is:reply", true, true),
        ("is:bot", true, false),
        ("lang:ja", true, true),
        ("tag:cat", true, true),
        ("visibility:public", true, true),
        ("after:2026-01-01", true, true),
        ("before:2026-01-01", true, true),
        ("during:2026-01-01", true, true),
        ("{}", true, true),
        ("via:a.example", true, false),
        ("source:news", true, false),
        ("mentions:ann@a.example", true, false),
        ("id:5", true, false),
        ("is:followed", false, false),
        ("favourites:>1", false, false),
        ("boosts:1", false, false),
        ("replies:1", false, false),
        ("quotes:1", false, false),
        ("views:1", false, false),
    ] {
        let predicate = Predicate::parse(&format!("cat OR -(dog {term})"), &NAMES).expect(term);
        assert_eq!(predicate.validate(Usage::Search), Ok(()));
        for (usage, is_possible) in [
            (Usage::Saved, in_saved),
            (Usage::Standing, in_saved),
            (Usage::Sync, in_sync),
        ] {
            let refusal = Err(UsageError {
                term: term.to_owned(),
                usage,
            });
            let expected = if is_possible { Ok(()) } else { refusal };
            assert_eq!(predicate.validate(usage), expected, "{term}");
        }
    }
}

#[test]
fn a_refusal_names_the_term_and_the_use() {
    let predicate = Predicate::parse("cat views:>9", &NAMES).unwrap();
    for (usage, text) in [
        (Usage::Sync, "in a filter of a synced library"),
        (Usage::Saved, "in a saved timeline or a filter"),
        (
            Usage::Standing,
            "in a standing search (`find --follow`, `tail --matching`): counts and `is:followed` depend on the moment",
        ),
    ] {
        let error = predicate.validate(usage).unwrap_err();
        let expected = format!("`views:>9` is not possible {text}");
        assert_eq!(error.to_string(), expected);
    }
}
