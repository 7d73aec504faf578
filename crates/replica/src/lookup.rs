use std::collections::{HashMap, HashSet};

use driftline_core::predicate::{IdMask, Matcher, PostFacts, Predicate, Term, Tree, Word};
use driftline_db::Tx;
use driftline_index::{NamedRows, PlaceReader, PlaceWindow, TermQuery, plan, planned_terms};

use crate::{
    ReplicaError, author_row,
    index_row::{author_number, unindexed},
};

/// Prepares the look-up in the index for a predicate. `None` if every post may match as far as the index knows. It looks for at
/// most `max_named` authors whose names have the words.
pub(crate) fn prepare(
    tx: &mut Tx<'_>,
    predicate: &Predicate,
    origin: &str,
    max_named: usize,
) -> Result<Option<TermQuery>, ReplicaError> {
    let candidates = predicate.candidates();
    let (mut words, mut masks) = (Vec::new(), Vec::new());
    for term in planned_terms(&candidates) {
        match term {
            Term::Word(word) => words.push(word),
            Term::Author(mask) => masks.push(mask),
            Term::Instance(_) | Term::Condition(_) => {}
        }
    }
    let named = NamedRows {
        by_word: authors_by_word(tx, predicate, words, origin, max_named)?,
        by_mask: masks.into_iter().filter_map(author_of_mask).collect(),
        by_source: HashMap::new(),
    };
    let terms = plan(&candidates, &named);
    Ok((terms != TermQuery::Any).then_some(terms))
}

/// The first places below one at which posts may match a prepared look-up, descending: those that the index finds, and those
/// that it has still to read.
pub(crate) fn places(
    tx: &mut Tx<'_>,
    terms: &TermQuery,
    below: i64,
    limit: u32,
) -> Result<Vec<i64>, ReplicaError> {
    let window = PlaceWindow {
        above: 0,
        below,
        is_upward: false,
    };
    let any = TermQuery::Any;
    let reader = PlaceReader::new(terms, &any);
    let found = reader.read(tx, window, i64::from(limit))?;
    let mut places: Vec<i64> = found.into_iter().map(|found| found.place).collect();
    places.extend(unindexed(tx, below.saturating_sub(1), limit)?);
    places.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
    places.dedup();
    places.truncate(limit as usize);
    Ok(places)
}

/// The authors whose display names contain each word. A word with more than are left of `max_named` has no entry.
fn authors_by_word(
    tx: &mut Tx<'_>,
    predicate: &Predicate,
    words: Vec<Word>,
    origin: &str,
    max_named: usize,
) -> Result<HashMap<Word, Vec<i64>>, ReplicaError> {
    let mut by_word = HashMap::new();
    if words.is_empty() {
        return Ok(by_word);
    }
    let names = author_row::display_names(tx)?;
    let mut left = max_named;
    for word in words {
        let tree = Tree::atom(Term::Word(word.clone()));
        let Ok(alone) = Predicate::new(tree, predicate.folding()) else {
            continue;
        };
        let matcher = Matcher::new(&alone);
        let named = names.iter().filter(|(_, name)| {
            matcher.matches(&PostFacts {
                nickname: Some(name),
                ..PostFacts::bare(0, "")
            })
        });
        let numbers = named.filter_map(|(acct, _)| author_number(acct, origin));
        let numbers: HashSet<i64> = numbers.collect();
        let Some(rest) = left.checked_sub(numbers.len()) else {
            continue;
        };
        left = rest;
        by_word.insert(word, numbers.into_iter().collect());
    }
    Ok(by_word)
}

/// The author that a mask selects. `None` if the mask has an ID, which the index does not know.
fn author_of_mask(mask: IdMask) -> Option<(IdMask, Vec<i64>)> {
    let number = match mask.id {
        None => author_number(mask.acct.as_str(), "")?,
        Some(_) => return None,
    };
    Some((mask, vec![number]))
}
