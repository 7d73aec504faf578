//! Queries over terms for predicates.

use std::collections::HashMap;

use driftline_core::{
    names::acct::AcctKey,
    predicate::{Candidates, Term as PredicateTerm, Word, bigrams, index_form},
};

use crate::{query::TermQuery, term::Term};

/// Returns a query that the document of every match of a predicate meets. `named_authors` has the
/// authors whose nicknames contain a word, for each word of the predicate; a word without an entry
/// is not looked up.
pub fn plan(candidates: &Candidates, named_authors: &HashMap<Word, Vec<i64>>) -> TermQuery {
    let parts = |parts: &[Candidates]| {
        let parts = parts.iter().map(|part| plan(part, named_authors));
        parts.collect()
    };
    let query = match candidates {
        Candidates::Any => TermQuery::Any,
        Candidates::All(all) => TermQuery::All(parts(all)),
        Candidates::AnyOf(any) => TermQuery::AnyOf(parts(any)),
        Candidates::Term(term) => term_query(term, named_authors),
    };
    query.simplified()
}

/// The words that a plan looks up: the words of which every match has one.
pub fn planned_words(candidates: &Candidates) -> Vec<Word> {
    match candidates {
        Candidates::Term(PredicateTerm::Word(word)) => vec![word.clone()],
        Candidates::Any | Candidates::Term(_) => Vec::new(),
        Candidates::All(parts) | Candidates::AnyOf(parts) => {
            parts.iter().flat_map(planned_words).collect()
        }
    }
}

fn term_query(term: &PredicateTerm, named_authors: &HashMap<Word, Vec<i64>>) -> TermQuery {
    match term {
        PredicateTerm::Word(word) => match named_authors.get(word) {
            Some(authors) => {
                let authors = authors.iter().map(|id| TermQuery::Term(Term::author(*id)));
                let text = TermQuery::All(terms_of_word(word.text()));
                TermQuery::AnyOf([text].into_iter().chain(authors).collect())
            }
            None => TermQuery::Any,
        },
        PredicateTerm::Author(mask) => {
            let named = AcctKey::new(mask.acct.as_str(), "").map(|key| key.account_id());
            let ids = named.into_iter().chain(mask.id);
            let authors = ids.map(|id| TermQuery::Term(Term::author(id.cast_signed())));
            TermQuery::AnyOf(authors.collect())
        }
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
