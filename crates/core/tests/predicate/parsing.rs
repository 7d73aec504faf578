//! The text form: the parser, the printer and errors.

use driftline_core::predicate::{
    LimitError, MAX_DEPTH, MAX_TERMS, MAX_TEXT_BYTES, NameContext, ParseProblem, Predicate,
};

use crate::random::{NAMES, Random};

fn printed(text: &str) -> String {
    match Predicate::parse(text, &NAMES) {
        Ok(predicate) => predicate.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn problem(text: &str) -> (usize, ParseProblem) {
    let error = Predicate::parse(text, &NAMES).expect_err(text);
    assert!(!error.problem.hint().is_empty());
    (error.column, error.problem)
}

#[test]
fn a_printed_tree_is_parsed_to_itself() {
    let mut random = Random::new(1);
    for _ in 0..20_000 {
        let predicate = random.predicate(12);
        let text = predicate.to_string();
        let parsed = Predicate::parse(&text, &NAMES).map(|parsed| parsed.tree().clone());
        assert_eq!(parsed.as_ref(), Ok(predicate.tree()), "{text}");
    }
}

#[test]
fn text_is_printed_in_its_normal_spelling() {
    for (text, expected) in [
        ("cat", "cat"),
        ("  cat　dog ", "cat dog"),
        ("a b OR c XOR d -e", "a b OR c XOR d -e"),
        ("((a OR b)) c", "(a OR b) c"),
        ("(a b) c", "a b c"),
        ("a (b c)", "a (b c)"),
        ("（a　OR　b）", "a OR b"),
        ("--a", "--a"),
        ("-(a b)", "-(a b)"),
        ("-\"a b\"", "-\"a b\""),
        ("＂a b＂", "\"a b\""),
        ("“a b” ”c d”", "\"a b\" \"c d\""),
        (r#""a \"b\" \\c""#, r#""a \"b\" \\c""#),
        ("\"cat\"", "cat"),
        ("or xor AND NOT", "or xor AND NOT"),
        ("ORANGE XORX", "ORANGE XORX"),
        ("\"OR\"", "\"OR\""),
        ("a-b c-", "a-b c-"),
        ("=cat =\"a b\" =OR =a:b", "=cat =\"a b\" =OR =a:b"),
        ("=", "\"=\""),
        ("==", "=="),
        ("word:cat Word：\"a b\"", "word:cat word:\"a b\""),
        ("#cat ＃猫 tag:#dog", "tag:cat tag:猫 tag:dog"),
        ("# ##a", "\"#\" \"##a\""),
        ("from:ann", "author:ann@a.example"),
        ("FROM:@Ann@B.example", "author:ann@b.example"),
        ("author:ann@b.example#12", "author:ann@b.example#12"),
        ("instance：https://B.example/", "instance:b.example"),
        ("via:localhost:3000", "via:localhost:3000"),
        ("source:\"a b\"", "source:\"a b\""),
        ("has:MEDIA is:reply", "has:media is:reply"),
        ("language:JA lang:en", "lang:ja lang:en"),
        (
            "mentions:bob visibility:Unlisted",
            "mentions:bob@a.example visibility:unlisted",
        ),
        (
            "after:2026-01-31 during:2026-02-01",
            "after:2026-01-31 during:2026-02-01",
        ),
        (
            "before:2026-01-31T09:00+09:00",
            "before:2026-01-31T00:00:00Z",
        ),
        ("id:>=007", "id:>=7"),
        ("favorites:>100 boosts:=1", "favourites:>100 boosts:1"),
        (
            "replies:<2 quotes:<=3 views:>=4",
            "replies:<2 quotes:<=3 views:>=4",
        ),
        (
            "https://a.example/x 12:30 :smile: Note:",
            "\"https://a.example/x\" \"12:30\" \":smile:\" \"Note:\"",
        ),
        ("{}", "{}"),
        ("{from:ann cat}", "{author:ann@a.example cat}"),
        (
            "{has:media =x instance:b.example}",
            "{instance:b.example =x has:media}",
        ),
        ("{cat}", "cat"),
        ("\0", "\u{fffd}"),
    ] {
        assert_eq!(printed(text), expected, "{text}");
    }
}

#[test]
fn the_tightest_connective_is_and_then_xor_then_or() {
    for (text, grouped) in [
        ("a OR b c", "a OR (b c)"),
        ("a XOR b c", "a XOR (b c)"),
        ("a OR b XOR c", "a OR (b XOR c)"),
        ("a XOR b OR c", "(a XOR b) OR c"),
        ("-a b", "(-a) b"),
        ("a OR b OR c", "(a OR b) OR c"),
        ("a -b OR -c d XOR e", "(a (-b)) OR (((-c) d) XOR e)"),
    ] {
        let [plain, grouped] = [text, grouped].map(|text| Predicate::parse(text, &NAMES));
        assert_eq!(plain, grouped, "{text}");
    }
}

#[test]
fn me_is_the_viewer() {
    let names = NameContext {
        origin: "a.example",
        viewer: Some("Ann"),
    };
    let own = Predicate::parse("from:me", &names).expect("a viewer");
    assert_eq!(own.to_string(), "author:ann@a.example");
    let named = Predicate::parse("from:@me", &names).expect("a name");
    assert_eq!(named.to_string(), "author:me@a.example");
    assert_eq!(problem("a mentions:me"), (3, ParseProblem::NoViewer));
}

#[test]
fn authors_get_the_ids_that_are_known() {
    let predicate = Predicate::parse("from:ann -from:bob@b.example#5", &NAMES).expect("terms");
    let known = predicate.with_author_ids(|acct| (acct.as_str() == "ann@a.example").then_some(7));
    assert_eq!(
        known.to_string(),
        "author:ann@a.example#7 -author:bob@b.example#5"
    );
}

#[test]
fn an_error_names_its_column_in_characters() {
    let missing = |operator| ParseProblem::MissingTerm { operator };
    let unopened = |closing| ParseProblem::Unopened { closing };
    let name = |name: &str| name.to_owned();
    for (text, column, expected) in [
        ("", 1, ParseProblem::Empty),
        (" 　", 1, ParseProblem::Empty),
        ("猫 \"犬", 3, ParseProblem::UnclosedQuote),
        ("猫 \"犬\\\"", 3, ParseProblem::UnclosedQuote),
        ("猫 \"犬”", 3, ParseProblem::UnclosedQuote),
        ("猫 (犬", 3, ParseProblem::UnclosedParenthesis),
        ("猫 (", 3, ParseProblem::UnclosedParenthesis),
        ("猫 ((犬)", 3, ParseProblem::UnclosedParenthesis),
        ("猫 {犬", 3, ParseProblem::UnclosedBrace),
        ("猫 犬)", 4, unopened(')')),
        ("(猫 犬})", 5, unopened('}')),
        ("）", 1, unopened('）')),
        ("猫 ()", 3, ParseProblem::EmptyParentheses),
        ("猫 （　）", 3, ParseProblem::EmptyParentheses),
        ("OR 猫", 1, missing("OR")),
        ("OR\"猫\" OR 犬", 1, missing("OR")),
        ("猫 OR", 3, missing("OR")),
        ("猫 OR OR 犬", 3, missing("OR")),
        ("(猫 XOR) 犬", 4, missing("XOR")),
        ("猫 -", 3, missing("-")),
        ("猫 - 犬", 3, missing("-")),
        ("(-)", 2, missing("-")),
        ("猫 -OR 犬", 3, missing("-")),
        ("猫 \"\"", 3, ParseProblem::EmptyWord),
        ("猫 =\"\"", 3, ParseProblem::EmptyWord),
        (
            "猫 from:",
            3,
            ParseProblem::MissingValue { name: name("from") },
        ),
        (
            "猫 from: ann",
            3,
            ParseProblem::MissingValue { name: name("from") },
        ),
        (
            "猫 Tag:\"\"",
            3,
            ParseProblem::MissingValue { name: name("tag") },
        ),
        (
            "猫 has:cat",
            3,
            ParseProblem::InvalidValue {
                name: name("has"),
                value: name("cat"),
            },
        ),
        (
            "猫 during:2026-01-01T00:00Z",
            3,
            ParseProblem::InvalidValue {
                name: name("during"),
                value: name("2026-01-01T00:00Z"),
            },
        ),
        (
            "after:2026-02-30",
            1,
            ParseProblem::InvalidValue {
                name: name("after"),
                value: name("2026-02-30"),
            },
        ),
        (
            "before:2026-02-03T10:00",
            1,
            ParseProblem::InvalidValue {
                name: name("before"),
                value: name("2026-02-03T10:00"),
            },
        ),
        (
            "views:=>1",
            1,
            ParseProblem::InvalidValue {
                name: name("views"),
                value: name("=>1"),
            },
        ),
        (
            "from:a@b@c",
            1,
            ParseProblem::InvalidValue {
                name: name("from"),
                value: name("a@b@c"),
            },
        ),
        (
            "from:a#b",
            1,
            ParseProblem::InvalidValue {
                name: name("from"),
                value: name("a#b"),
            },
        ),
        (
            "猫 form:ann",
            3,
            ParseProblem::UnknownOperator { name: name("form") },
        ),
        (
            "猫 -In：library",
            4,
            ParseProblem::UnsupportedOperator { name: name("in") },
        ),
        ("{猫 -犬}", 4, ParseProblem::OperatorInBraces),
        ("{猫 OR 犬}", 4, ParseProblem::OperatorInBraces),
        ("{猫 犬}", 4, ParseProblem::RepeatedTerm),
    ] {
        assert_eq!(problem(text), (column, expected), "{text}");
    }
}

#[test]
fn limits_are_checked_where_they_are_exceeded() {
    let deep = |levels: usize| format!("{}a{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(printed(&deep(MAX_DEPTH)), "a");
    let too_deep = (MAX_DEPTH + 1, LimitError::TooDeep.into());
    assert_eq!(problem(&deep(MAX_DEPTH + 1)), too_deep);
    assert_eq!(
        problem(&format!("{}a", "-".repeat(MAX_DEPTH + 1))),
        too_deep
    );
    // Each level of parentheses contains two operators.
    let groups = MAX_DEPTH / 2 + 1;
    let nested = format!("{}a{}", "a (b OR ".repeat(groups), ")".repeat(groups));
    assert_eq!(
        problem(&nested),
        (8 * groups - 5, LimitError::TooDeep.into())
    );

    printed(&"a ".repeat(MAX_TERMS));
    let wide = "a OR ".repeat(MAX_TERMS) + "a";
    assert_eq!(
        problem(&wide),
        (5 * MAX_TERMS + 1, LimitError::TooManyTerms.into())
    );
    assert_eq!(
        problem(&"{}".repeat(MAX_TERMS + 1)).1,
        LimitError::TooManyTerms.into()
    );

    printed(&"猫".repeat(MAX_TEXT_BYTES / 3));
    let long = "猫".repeat(MAX_TEXT_BYTES / 3 + 1);
    assert_eq!(
        problem(&long),
        (MAX_TEXT_BYTES / 3 + 1, LimitError::TooLong.into())
    );
    // A text that fits, but whose normal spelling does not.
    let dates = "after:2026-01-01T00Z ".repeat(700);
    assert_eq!(problem(&dates), (1, LimitError::TooLong.into()));
}
