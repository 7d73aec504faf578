//! Queries over terms for predicates.

use std::collections::HashMap;

use driftline_core::predicate::{
    Candidates, Condition, CreationDays, IdMask, SourceName, Term as PredicateTerm, Word,
};

use crate::{grams::WordTerms, query::TermQuery, term::Term};

/// The authors and sources that a predicate names, by the IDs of their rows, which do not change with
/// a name. A name without an entry is not looked up.
#[derive(Clone, Debug, Default)]
pub struct NamedRows {
    /// The authors whose nicknames contain a word.
    pub by_word: HashMap<Word, Vec<i64>>,
    /// The authors that a mask selects.
    pub by_mask: HashMap<IdMask, Vec<i64>>,
    /// The sources with a name that the viewer may read.
    pub by_source: HashMap<SourceName, Vec<i64>>,
}

/// Returns a query that the document of every match of a predicate meets.
pub fn plan(candidates: &Candidates, named: &NamedRows) -> TermQuery {
    let parts = |parts: &[Candidates]| -> Vec<TermQuery> {
        let parts = parts.iter().map(|part| plan(part, named));
        parts.collect()
    };
    let query = match candidates {
        Candidates::Any => TermQuery::Any,
        Candidates::All(all) => {
            // A beginning and an end together are one range.
            let (times, others): (Vec<_>, Vec<_>) =
                all.iter().cloned().partition(|part| days(part).is_some());
            let range = times.iter().filter_map(days);
            let range = range.reduce(CreationDays::intersection).map(days_query);
            TermQuery::All(parts(&others).into_iter().chain(range).collect())
        }
        Candidates::AnyOf(any) => TermQuery::AnyOf(parts(any)),
        Candidates::Term(term) => term_query(term, named),
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

fn term_query(term: &PredicateTerm, named: &NamedRows) -> TermQuery {
    let by = |ids: &[i64]| -> Vec<TermQuery> {
        let ids = ids.iter().map(|id| TermQuery::Term(Term::author(*id)));
        ids.collect()
    };
    match term {
        PredicateTerm::Word(word) => match named.by_word.get(word) {
            Some(authors) => {
                let text = WordTerms::new(word).query();
                TermQuery::AnyOf([text].into_iter().chain(by(authors)).collect())
            }
            None => TermQuery::Any,
        },
        PredicateTerm::Author(mask) => match named.by_mask.get(mask) {
            Some(authors) => TermQuery::AnyOf(by(authors)),
            None => TermQuery::Any,
        },
        PredicateTerm::Instance(host) => TermQuery::Term(Term::instance(host.as_str())),
        PredicateTerm::Condition(Condition::Source(name)) => match named.by_source.get(name) {
            Some(sources) => {
                let sources = sources
                    .iter()
                    .map(|id| TermQuery::Term(Term::in_source(*id)));
                TermQuery::AnyOf(sources.collect())
            }
            None => TermQuery::Any,
        },
        PredicateTerm::Condition(condition) => {
            if let Some(days) = CreationDays::required_by(condition) {
                return days_query(days);
            }
            let label = condition.label();
            label.map_or(TermQuery::Any, |label| TermQuery::Term(Term::label(&label)))
        }
    }
}

/// The days to which a condition on the time of creation limits posts.
fn days(candidates: &Candidates) -> Option<CreationDays> {
    match candidates {
        Candidates::Term(PredicateTerm::Condition(condition)) => {
            CreationDays::required_by(condition)
        }
        _ => None,
    }
}

fn days_query(days: CreationDays) -> TermQuery {
    let labels = days.labels().into_iter();
    TermQuery::AnyOf(
        labels
            .map(|label| TermQuery::Term(Term::label(&label)))
            .collect(),
    )
}
