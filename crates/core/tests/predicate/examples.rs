//! The examples of `docs/predicates.md`.

use std::{fs, path::Path};

use driftline_core::predicate::{Condition, CountKind, Matcher, Predicate, Relation, Term, Tree};

use crate::{post::TestPost, random::NAMES};

/// The cells of the table below a heading, without its first two rows.
fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, section) = document.split_once(heading).expect(heading);
    let lines = section.lines().skip_while(|line| !line.starts_with('|'));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    let rows = rows.map(|row| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    });
    rows.collect()
}

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/predicates.md");
    fs::read_to_string(path).expect("the document")
}

/// The texts in backticks.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn post(row: &[String]) -> TestPost {
    let [number, author, created, entries, facts] = row else {
        panic!("a row of a post has five cells: {row:?}");
    };
    let entries: Vec<&str> = entries.split(" / ").collect();
    let mut post = TestPost::new(author, &entries);
    post.id = number.parse().expect("a number");
    let created: jiff::Timestamp = created.parse().expect("a time");
    post.created_at_ms = Some(created.as_millisecond());
    for text in quoted(facts) {
        let predicate = Predicate::parse(text, &NAMES).expect(text);
        let Tree::Atom(atom) = predicate.tree() else {
            panic!("{text} is not one term");
        };
        for term in atom.terms() {
            set(&mut post, term);
        }
    }
    post
}

/// Makes a term true.
fn set(post: &mut TestPost, term: Term) {
    let Term::Condition(condition) = term else {
        // The only word that a post has outside its entries.
        if let Term::Word(word) = term {
            post.nickname = Some(word.text().to_owned());
        }
        return;
    };
    match condition {
        Condition::Via(host) => post.via.push(host.as_str().to_owned()),
        Condition::Source(name) => post.sources.push(name.as_str().to_owned()),
        Condition::Has(attachment) => post.attachments.push(attachment),
        Condition::Is(post_trait) => post.traits.push(post_trait),
        Condition::Language(code) => post.language = Some(code.as_str().to_owned()),
        Condition::Tag(tag) => post.tags.push(tag.as_str().to_owned()),
        Condition::Mentions(acct) => post.mentions.push(acct.as_str().to_owned()),
        Condition::Visibility(visibility) => post.visibility = visibility,
        Condition::Count {
            kind: CountKind::Favourites,
            comparison,
        } if comparison.relation == Relation::Equal => {
            post.counts.favourites = i64::try_from(comparison.number).ok();
        }
        other => panic!("no example has {other:?}"),
    }
}

#[test]
fn the_examples_of_the_document_are_true() {
    let document = document();
    let posts = table(&document, "### The posts");
    let posts: Vec<TestPost> = posts.iter().map(|row| post(row)).collect();
    assert_eq!(posts.len(), 12);
    let examples = table(&document, "### The queries");
    assert_eq!(examples.len(), 20);
    for example in examples {
        let text = quoted(&example[0])[0];
        let predicate = Predicate::parse(text, &NAMES).expect(text);
        let matcher = Matcher::new(&predicate);
        let matching = posts.iter();
        let matching = matching.filter(|post| post.with_facts(|facts| matcher.matches(facts)));
        let matching: Vec<String> = matching.map(|post| post.id.to_string()).collect();
        assert_eq!(matching.join(", "), example[1], "{text}");
    }
}

#[test]
fn the_spellings_of_the_document_are_accepted() {
    let document = document();
    let terms = table(&document, "## Terms");
    assert!(terms.len() > 20);
    for row in terms {
        for text in quoted(&row[0]) {
            let names = crate::random::NAMES;
            let names = driftline_core::predicate::NameContext {
                viewer: Some("ann"),
                ..names
            };
            assert!(Predicate::parse(text, &names).is_ok(), "{text}");
        }
    }
}

#[test]
fn the_json_of_the_document_is_the_text_beside_it() {
    let document = document();
    let (_, section) = document.split_once("## JSON").expect("the section");
    let mut blocks = section.split("```").skip(1).step_by(2);
    let text = blocks.next().and_then(|block| block.strip_prefix("text\n"));
    let json = blocks.next().and_then(|block| block.strip_prefix("json\n"));
    let text = Predicate::parse(text.expect("a text").trim(), &NAMES).expect("a predicate");
    let json = Predicate::from_json(json.expect("JSON")).expect("a predicate");
    assert_eq!(text, json);
}
