//! Standing predicates: all of them compared with a post at once, next to each predicate's own matcher in turn. No
//! database takes part.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use driftline_core::predicate::{
    Attachment, Matcher, NameContext, PostFacts, Predicate, PredicateSet,
};

use super::corpus::Corpus;
use crate::{
    Effort,
    failure::Failure,
    rounds::Pairs,
    table::{Table, Target},
};

/// Measures sets of predicates.
pub(super) fn measure(effort: Effort) -> Result<Table, Failure> {
    let mut table = Table::new(
        format!("find: standing predicates against a post of {POST_CHARS} characters, µs a post"),
        "predicates | that match | compiled in, ms | Driftline | each in turn | ratio | target | met",
    );
    let corpus = Corpus::new(10_000);
    let sizes: &[(u64, f64)] = if effort.quick {
        &[(1_000, 5.0)]
    } else {
        &[(1_000, 5.0), (100_000, 150.0)]
    };
    for (count, target) in sizes {
        let predicates: Vec<Predicate> = (0..*count)
            .map(|number| predicate(&corpus, number))
            .collect::<Result<_, _>>()?;
        let start = Instant::now();
        let set = PredicateSet::new(&predicates);
        let compiled_ms = start.elapsed().as_secs_f64() * 1e3;
        let matchers: Vec<Matcher> = predicates.iter().map(Matcher::new).collect();
        let (mut matches, mut pairs) = (0, Pairs::new());
        for round in 0..effort.rounds(5) as u64 {
            let numbers = round * POSTS..(round + 1) * POSTS;
            let posts: Vec<StandingPost> = numbers
                .map(|number| StandingPost::new(&corpus, number))
                .collect();
            matches = 0;
            pairs.round([true, false], |is_set| {
                let start = Instant::now();
                for post in &posts {
                    let entries = [post.text.as_str()];
                    let facts = post.facts(&entries);
                    if is_set {
                        matches += black_box(set.matches(&facts)).len();
                    } else if post.is_compared_in_turn {
                        black_box(matchers.iter().filter(|m| m.matches(&facts)).count());
                    }
                }
                let posts = posts.iter().filter(|p| is_set || p.is_compared_in_turn);
                Ok(start.elapsed() / posts.count().max(1) as u32)
            })?;
        }
        let share = matches as f64 / (*count as f64 * POSTS as f64) * 100.0;
        table.compare(
            format!("{count} | {share:.2} % | {compiled_ms:.0}"),
            &pairs,
            |time: &Duration| time.as_secs_f64() * 1e6,
            1,
            Target::Below(*target),
        );
    }
    Ok(table)
}

/// A tenth of the predicates require no word, and a hundredth only excludes one.
fn predicate(corpus: &Corpus, number: u64) -> Result<Predicate, Failure> {
    let words =
        [1, 2].map(|nth| corpus.word(number.wrapping_mul(0x9e37_79b9).rotate_left(7) + nth * 31));
    let [one, two] = words;
    let text = match number % 100 {
        // Each excludes the posts of one language.
        0 => ["-の", "-e"][(number / 100 % 2) as usize].to_owned(),
        1..4 => "lang:fr has:media".to_owned(),
        4..7 => format!("-{one} is:reply visibility:public"),
        7..10 => format!("has:poll -has:media after:2026-01-{:02}", 1 + number % 28),
        10..25 => one.to_owned(),
        25..70 => format!("{one} {two}"),
        70..80 => format!("{one} OR {two}"),
        80..90 => format!("({one} OR {two}) -instance:bots.example has:media"),
        _ => format!("{one} from:drifter{number}@sim.example"),
    };
    let names = NameContext {
        origin: "https://bench.example",
        viewer: None,
    };
    Ok(Predicate::parse(&text, &names)?)
}

/// A post of a fixed length.
struct StandingPost {
    text: String,
    author: String,
    /// False for most, since each matcher in turn takes long.
    is_compared_in_turn: bool,
}

impl StandingPost {
    fn new(corpus: &Corpus, number: u64) -> StandingPost {
        // Posts of one language follow each other in steps of two.
        let texts = (0..).map(|nth| corpus.text(number + 2 * nth));
        let mut text = String::new();
        let mut left = POST_CHARS;
        for part in texts {
            text.extend(part.chars().take(left));
            left = left.saturating_sub(part.chars().count());
            if left == 0 {
                break;
            }
        }
        StandingPost {
            text,
            author: format!("{}@sim.example", corpus.author(number).acct),
            is_compared_in_turn: number.is_multiple_of(POSTS / 2),
        }
    }

    fn facts<'a>(&'a self, entries: &'a [&'a str]) -> PostFacts<'a> {
        PostFacts {
            entries,
            attachments: &[Attachment::Media],
            language: Some("ja"),
            created_at_ms: Some(1_790_000_000_000),
            ..PostFacts::bare(1, &self.author)
        }
    }
}

const POST_CHARS: usize = 300;
/// The number of posts in a round, half of them Japanese.
const POSTS: u64 = 400;
