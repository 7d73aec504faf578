//! Both parsers with texts that are not meant well: they never panic, and they end.

use driftline_core::predicate::{Matcher, NameContext, PostFacts, Predicate};
use proptest::prelude::*;

use crate::random::{NAMES, Random};

/// Parses a text, and checks that an error is within it.
fn parse(text: &str) -> bool {
    match Predicate::parse(text, &NAMES) {
        Ok(predicate) => {
            let printed = predicate.to_string();
            assert_eq!(Predicate::parse(&printed, &NAMES).as_ref(), Ok(&predicate));
            let _ = predicate.canonical().candidates();
            let _ = Matcher::new(&predicate).matches(&PostFacts {
                entries: &[TEXT],
                ..PostFacts::bare(1, "ann@a.example")
            });
            true
        }
        Err(error) => {
            let columns = 1..=text.chars().count().max(1);
            assert!(columns.contains(&error.column), "{text:?}: {error}");
            assert!(error.problem.hint().ends_with('.'), "{error}");
            false
        }
    }
}

const TEXT: &str = "I love cats. ｶﾞﾗｽと猫\u{301}, ß and a";

const TOKENS: &[&str] = &[
    " ",
    "　",
    "(",
    ")",
    "（",
    "）",
    "{",
    "}",
    "-",
    "OR",
    "XOR",
    "OR ",
    " XOR ",
    "\"",
    "“",
    "”",
    "＂",
    "\\",
    ":",
    "：",
    "=",
    "#",
    "＃",
    "cat",
    "猫",
    "from:",
    "author:ann@a.example#",
    "word:",
    "has:",
    "media",
    "is:boost",
    "after:",
    "2026-01-01",
    "T10:00Z",
    "favourites:>",
    "1",
    "in:",
    "x:y",
    "me",
    "\0",
    "é",
];

#[test]
fn token_soup_is_parsed_or_refused() {
    let mut random = Random::new(10);
    let mut parsed = 0;
    for _ in 0..50_000 {
        let len = random.below(14);
        let text: String = (0..len).map(|_| random.pick(TOKENS)).collect();
        parsed += usize::from(parse(&text));
    }
    assert!(parsed > 1_000, "{parsed}");
}

#[test]
fn damaged_predicates_are_parsed_or_refused() {
    let mut random = Random::new(11);
    for _ in 0..5_000 {
        let predicate = random.predicate(6);
        let mut text: Vec<char> = predicate.to_string().chars().collect();
        let json = serde_json::to_string(&predicate).unwrap();
        let mut json: Vec<char> = json.chars().collect();
        for chars in [&mut text, &mut json] {
            for _ in 0..=random.below(3) {
                let at = random.below(chars.len() + 1);
                match random.is(50) && at < chars.len() {
                    true => drop(chars.remove(at)),
                    false => chars.insert(at, random.pick(&['"', '{', ')', '-', ':', '\\', '猫'])),
                }
            }
        }
        parse(&text.into_iter().collect::<String>());
        let _ = Predicate::from_json(&json.into_iter().collect::<String>());
    }
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in ".{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        parse(&text);
        let text = String::from_utf8_lossy(&bytes);
        parse(&text);
        let _ = Predicate::from_json(&text);
    }
}

/// A parser that takes exponential time for one of these never ends.
#[test]
fn large_texts_are_answered() {
    let many = 1_000_000;
    let names: NameContext<'_> = NAMES;
    let within_limits = [
        "cat ".repeat(1_000),
        "cat OR ".repeat(999) + "cat",
        format!("{}a{}", "(".repeat(32), ")".repeat(32)),
        "a (b OR ".repeat(15) + "c" + &")".repeat(15),
        "-".repeat(32) + "a",
        "a(".repeat(32) + "a" + &")".repeat(32),
        "a XOR -(".repeat(15) + "a" + &")".repeat(15),
        "-(a XOR ".repeat(15) + "a" + &")".repeat(15),
        "猫 ".repeat(1_000),
        "{}XOR ".repeat(999) + "{}",
        "\"\\\\".repeat(4_000),
        "a\"b\"".repeat(500),
        "#a ".repeat(1_000),
        ":".repeat(16_000),
        "x".repeat(16_000),
    ];
    let beyond = [
        "cat ".repeat(many),
        "cat OR ".repeat(many),
        "(".repeat(100_000),
        format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000)),
        "-".repeat(100_000),
        "-(".repeat(100_000),
        "{".repeat(100_000),
        "\"".repeat(100_001),
    ];
    let json = [
        "[".repeat(100_000),
        format!("{{\"tree\":{}", "{\"not\":".repeat(30_000)),
        format!("{{\"tree\":{}", "{\"and\":[".repeat(30_000)),
        format!("{{\"tree\":{{\"or\":[{}", "{\"atom\":{}},".repeat(15_000)),
        format!(
            "{{\"tree\":{{\"or\":[{}{{\"atom\":{{}}}}]}}}}",
            "{\"atom\":{}},".repeat(15_000)
        ),
        format!(
            "{{\"tree\":{{\"atom\":{{\"match_word\":{}",
            "[".repeat(100_000)
        ),
    ];
    for text in within_limits.iter().chain(&beyond) {
        parse(text);
    }
    for text in &beyond {
        assert!(Predicate::parse(text, &names).is_err());
    }
    for text in &json {
        assert!(Predicate::from_json(text).is_err());
    }
}
