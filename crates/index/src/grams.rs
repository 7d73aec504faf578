//! The terms of texts and of words.
//!
//! A text has a term for each pair of adjacent characters of its index form
//! ([`index_form()`](driftline_core::predicate::index_form())). Pairs of Latin letters are too common to
//! find much by, so a run of three or more letters from a to z has terms for its triples instead.

use driftline_core::predicate::{Word, index_form};

use crate::{query::TermQuery, term::Term};

/// The terms of a text, each once.
pub fn text_terms(text: &str) -> Vec<Term> {
    let form: Vec<char> = index_form(text).chars().collect();
    unique(grams(&form).map(Gram::term).collect())
}

/// The terms by which texts with a word are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordTerms {
    /// Every text with the word has all of these terms. There is at least one.
    All(Vec<Term>),
    /// Every text with the word has one of these terms. There is at least one.
    AnyOf(Vec<Term>),
    /// Texts with the word may have any terms: it is too short.
    Unknown,
}

impl WordTerms {
    /// The terms for a word, at most 16 of those that all texts have: more would not make
    /// candidates rarer.
    pub fn new(word: &Word) -> WordTerms {
        let form: Vec<char> = index_form(word.text()).chars().collect();
        let last = form.len().saturating_sub(1);
        let (edges, inner): (Vec<Gram>, Vec<Gram>) = grams(&form).partition(|gram| {
            // The run of letters may go on in a text, and then it has triples.
            matches!(gram, Gram::WholeRun { first, .. } if *first == 0 || first + 1 == last)
        });
        let mut all = unique(thinned(&inner).map(Gram::term).collect());
        all.truncate(MAX_TERMS);
        if !all.is_empty() {
            return WordTerms::All(all);
        }
        match edges.first() {
            Some(Gram::WholeRun { first, pair }) => {
                let goes_on_before = *first == 0;
                let goes_on_after = first + 1 == last;
                let [one, two] = *pair;
                let before = LETTERS.filter(|_| goes_on_before);
                let before = before.map(|letter| Term::trigram(letter, one, two));
                let after = LETTERS.filter(|_| goes_on_after);
                let after = after.map(|letter| Term::trigram(one, two, letter));
                let pair = Term::bigram(one, two);
                WordTerms::AnyOf([pair].into_iter().chain(before).chain(after).collect())
            }
            _ => WordTerms::Unknown,
        }
    }

    /// The query for texts that may have the word.
    pub(crate) fn query(self) -> TermQuery {
        let terms = |terms: Vec<Term>| terms.into_iter().map(TermQuery::Term).collect();
        match self {
            WordTerms::All(all) => TermQuery::All(terms(all)),
            WordTerms::AnyOf(any) => TermQuery::AnyOf(terms(any)),
            WordTerms::Unknown => TermQuery::Any,
        }
    }
}

/// Adjacent characters.
#[derive(Clone, Copy, Debug)]
enum Gram {
    /// Two characters, one of which at least is not a letter from a to z.
    Pair([char; 2]),
    /// Three letters from a to z.
    Triple([char; 3]),
    /// A run of exactly two letters from a to z, with the place of its first.
    WholeRun { first: usize, pair: [char; 2] },
}

impl Gram {
    fn term(self) -> Term {
        match self {
            Gram::Pair([one, two])
            | Gram::WholeRun {
                pair: [one, two], ..
            } => Term::bigram(one, two),
            Gram::Triple([one, two, three]) => Term::trigram(one, two, three),
        }
    }
}

fn grams(form: &[char]) -> impl Iterator<Item = Gram> {
    let is_letter = |at: usize| form.get(at).is_some_and(char::is_ascii_lowercase);
    (0..form.len().saturating_sub(1)).filter_map(move |at| {
        let pair = [form[at], form[at + 1]];
        if !is_letter(at) || !is_letter(at + 1) {
            return Some(Gram::Pair(pair));
        }
        if is_letter(at + 2) {
            return Some(Gram::Triple([form[at], form[at + 1], form[at + 2]]));
        }
        let begins = at == 0 || !is_letter(at - 1);
        begins.then_some(Gram::WholeRun { first: at, pair })
    })
}

/// The grams without every second triple of long runs of letters: each triple makes a search slower, and the others
/// have the same letters.
fn thinned(grams: &[Gram]) -> impl Iterator<Item = Gram> {
    let is_triple = |gram: &Gram| matches!(gram, Gram::Triple(_));
    let runs = grams.chunk_by(move |one, next| is_triple(one) && is_triple(next));
    runs.flat_map(|run| {
        let step = if run.len() > MAX_TRIPLES { 2 } else { 1 };
        let last = (run.len() - 1) % step;
        let last = run.last().filter(|_| last > 0);
        run.iter().step_by(step).chain(last).copied()
    })
}

fn unique(mut terms: Vec<Term>) -> Vec<Term> {
    terms.sort_unstable();
    terms.dedup();
    terms
}

const LETTERS: std::ops::RangeInclusive<char> = 'a'..='z';
const MAX_TERMS: usize = 16;
/// The largest number of triples of a run of which each is looked up: shorter words have too few others.
const MAX_TRIPLES: usize = 5;

#[cfg(test)]
mod tests {
    use driftline_core::predicate::WordMatch;
    use proptest::prelude::*;

    use super::*;

    fn word(text: &str) -> Option<Word> {
        Word::new(text, WordMatch::Folded).ok()
    }

    proptest! {
        /// A text in which the form of a word occurs is found by the word.
        #[test]
        fn a_word_finds_the_texts_that_contain_it(
            before in "[a-c猫ね 1-]{0,4}",
            within in "[a-c猫ね1]{1,6}|[a-c]{7,12}",
            after in "[a-c猫ねA-Cé]{0,4}",
        ) {
            let terms = text_terms(&format!("{before}{within}{after}"));
            if let Some(word) = word(&within) {
                prop_assert!(WordTerms::new(&word).query().is_met_by(&terms));
            }
        }
    }

    #[test]
    fn letters_have_triples_and_other_characters_pairs() {
        let terms = |text| text_terms(text);
        assert_eq!(terms("cat"), [Term::trigram('c', 'a', 't')]);
        assert_eq!(terms("CÁT"), terms("cat"));
        assert_eq!(terms("猫"), []);
        let mut expected = vec![
            Term::bigram('猫', 'a'),
            Term::bigram('a', 'i'),
            Term::bigram('i', '5'),
        ];
        expected.sort_unstable();
        assert_eq!(terms("猫ai5"), expected);
    }

    #[test]
    fn a_long_word_is_looked_up_by_some_of_its_triples() {
        let triples = |triples: &[&str]| {
            let terms = triples.iter().map(|triple| {
                let letters: Vec<char> = triple.chars().collect();
                Term::trigram(letters[0], letters[1], letters[2])
            });
            WordTerms::All(unique(terms.collect()))
        };
        let looked_up = |text| WordTerms::new(&word(text).unwrap());
        let lighthouse = ["lig", "ght", "tho", "ous", "use"];
        assert_eq!(looked_up("lighthouse"), triples(&lighthouse));
        let carpenter = ["car", "rpe", "ent", "ter"];
        assert_eq!(looked_up("carpenter"), triples(&carpenter));
        let harbour = ["har", "arb", "rbo", "bou", "our"];
        assert_eq!(looked_up("harbour"), triples(&harbour));
    }

    #[test]
    fn two_letters_are_found_alone_and_inside_of_words() {
        let any = WordTerms::new(&word("AI").unwrap());
        assert!(matches!(&any, WordTerms::AnyOf(terms) if terms.len() == 53));
        for text in ["AI", "maintain", "ai5", "rain", "aid", "5ai"] {
            assert!(any.clone().query().is_met_by(&text_terms(text)), "{text}");
        }
        assert!(!any.query().is_met_by(&text_terms("a i ia")));
        let edge = WordTerms::new(&word("5g").unwrap());
        assert_eq!(edge, WordTerms::All(vec![Term::bigram('5', 'g')]));
        assert_eq!(WordTerms::new(&word("猫").unwrap()), WordTerms::Unknown);
    }
}
