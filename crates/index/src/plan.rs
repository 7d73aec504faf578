//! Queries over terms for predicates.

use std::collections::HashMap;

use driftline_core::predicate::{
    Candidates, IdMask, Term as PredicateTerm, Word, bigrams, index_form,
};

use crate::{query::TermQuery, term::Term};

/// The authors that a predicate names, by the IDs of their rows, which do not change when an author is
/// renamed.
#[derive(Clone, Debug, Default)]
pub struct NamedAuthors {
    /// The authors whose nicknames contain a word. A word without an entry is not looked up.
    pub by_word: HashMap<Word, Vec<i64>>,
    /// The authors that a mask selects.
    pub by_mask: HashMap<IdMask, Vec<i64>>,
}

/// Returns a query that the document of every match of a predicate meets.
pub fn plan(candidates: &Candidates, authors: &NamedAuthors) -> TermQuery {
    let parts = |parts: &[Candidates]| {
        let parts = parts.iter().map(|part| plan(part, authors));
        parts.collect()
    };
    let query = match candidates {
        Candidates::Any => TermQuery::Any,
        Candidates::All(all) => TermQuery::All(parts(all)),
        Candidates::AnyOf(any) => TermQuery::AnyOf(parts(any)),
        Candidates::Term(term) => term_query(term, authors),
    };
    query.simplified()
}

/// The terms of which every match has one, each once.
pub fn planned_terms(candidates: &Candidates) -> Vec<PredicateTerm> {
    let mut terms: Vec<PredicateTerm> = Vec::new();
    let mut pending = vec![candidates];
    while let Some(candidates) = pending.pop() {
        match candidates {
            Candidates::Any => {}
            Candidates::Term(term) if terms.contains(term) => {}
            Candidates::Term(term) => terms.push(term.clone()),
            Candidates::All(parts) | Candidates::AnyOf(parts) => pending.extend(parts),
        }
    }
    terms
}

fn term_query(term: &PredicateTerm, authors: &NamedAuthors) -> TermQuery {
    let by = |ids: &[i64]| -> Vec<TermQuery> {
        let ids = ids.iter().map(|id| TermQuery::Term(Term::author(*id)));
        ids.collect()
    };
    match term {
        PredicateTerm::Word(word) => match authors.by_word.get(word) {
            Some(named) => {
                let text = TermQuery::All(terms_of_word(word.text()));
                TermQuery::AnyOf([text].into_iter().chain(by(named)).collect())
            }
            None => TermQuery::Any,
        },
        PredicateTerm::Author(mask) => match authors.by_mask.get(mask) {
            Some(named) => TermQuery::AnyOf(by(named)),
            None => TermQuery::Any,
        },
        PredicateTerm::Instance(host) => TermQuery::Term(Term::instance(host.as_str())),
        PredicateTerm::Condition(_) => TermQuery::Any,
    }
}

/// The terms of a word, at most [`MAX_TERMS`] of them: more would not make candidates rarer. A word
/// of one character has none.
fn terms_of_word(word: &str) -> Vec<TermQuery> {
    let form = index_form(word);
    let mut terms: Vec<Term> = Vec::new();
    for (first, second) in bigrams(&form) {
        let term = Term::bigram(first, second);
        if !terms.contains(&term) {
            terms.push(term);
        }
        if terms.len() == MAX_TERMS {
            break;
        }
    }
    terms.into_iter().map(TermQuery::Term).collect()
}

const MAX_TERMS: usize = 16;
