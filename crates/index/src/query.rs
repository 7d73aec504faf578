//! Queries over terms.

use std::fmt;

use crate::term::Term;

/// A condition on the terms of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermQuery {
    /// Every document.
    Any,
    /// Documents with a term.
    Term(Term),
    /// Documents that meet each of these conditions.
    All(Vec<TermQuery>),
    /// Documents that meet at least one of these conditions; no documents if there are none.
    AnyOf(Vec<TermQuery>),
}

impl TermQuery {
    /// An equivalent query without nested lists of one kind, and with [`TermQuery::Any`] and an empty
    /// [`TermQuery::AnyOf`] only at the top.
    #[must_use]
    pub fn simplified(self) -> TermQuery {
        match self {
            TermQuery::All(parts) => {
                let mut flat = Vec::new();
                for part in parts {
                    match part.simplified() {
                        TermQuery::Any => {}
                        TermQuery::All(inner) => flat.extend(inner),
                        TermQuery::AnyOf(none) if none.is_empty() => return TermQuery::AnyOf(none),
                        part => flat.push(part),
                    }
                }
                match flat.len() {
                    0 => TermQuery::Any,
                    1 => flat.swap_remove(0),
                    _ => TermQuery::All(flat),
                }
            }
            TermQuery::AnyOf(parts) => {
                let mut flat = Vec::new();
                for part in parts {
                    match part.simplified() {
                        TermQuery::Any => return TermQuery::Any,
                        TermQuery::AnyOf(inner) => flat.extend(inner),
                        part => flat.push(part),
                    }
                }
                match flat.len() {
                    1 => flat.swap_remove(0),
                    _ => TermQuery::AnyOf(flat),
                }
            }
            other => other,
        }
    }

    /// Splits the terms of rows from the other alternatives, if they are many: their numbers, and the query for the
    /// others.
    pub(crate) fn split_many(&self) -> (Vec<String>, TermQuery) {
        let TermQuery::AnyOf(parts) = self else {
            return (Vec::new(), self.clone());
        };
        let mut others = parts.clone();
        let mut many = Vec::new();
        others.retain(|part| match part {
            TermQuery::Term(term) if term.names_row() => {
                many.push(term.number().to_string());
                false
            }
            _ => true,
        });
        match many.len() > MAX_COMPARED {
            true => (many, TermQuery::AnyOf(others)),
            false => (Vec::new(), self.clone()),
        }
    }

    /// Splits alternatives that are many authors from the other conditions. `None` if there are none.
    pub(crate) fn split_authors(&self) -> Option<SplitAuthors> {
        match self {
            TermQuery::AnyOf(parts) => {
                let author = |part: &TermQuery| match part {
                    TermQuery::Term(term) => term.named_author(),
                    _ => None,
                };
                let rows: Vec<i64> = parts.iter().filter_map(author).collect();
                let others = parts.iter().filter(|part| author(part).is_none());
                (rows.len() > MAX_COMPARED).then(|| SplitAuthors {
                    rows,
                    others: TermQuery::AnyOf(others.cloned().collect()).simplified(),
                    besides: TermQuery::Any,
                })
            }
            TermQuery::All(parts) => {
                let split = |(at, part): (usize, &TermQuery)| Some((at, part.split_authors()?));
                let (at, split) = parts.iter().enumerate().find_map(split)?;
                let with = |part: TermQuery| {
                    let mut parts = parts.clone();
                    parts[at] = part;
                    TermQuery::All(parts).simplified()
                };
                Some(SplitAuthors {
                    rows: split.rows,
                    others: with(split.others),
                    besides: with(split.besides),
                })
            }
            TermQuery::Any | TermQuery::Term(_) => None,
        }
    }

    /// True if a document with these terms meets the condition.
    pub fn is_met_by(&self, terms: &[Term]) -> bool {
        match self {
            TermQuery::Any => true,
            TermQuery::Term(term) => terms.contains(term),
            TermQuery::All(parts) => parts.iter().all(|part| part.is_met_by(terms)),
            TermQuery::AnyOf(parts) => parts.iter().any(|part| part.is_met_by(terms)),
        }
    }

    /// The query in FTS5's language; `None` for [`TermQuery::Any`] and for a query that no document
    /// meets.
    pub(crate) fn fts5(&self) -> Option<String> {
        match self {
            TermQuery::Any => None,
            TermQuery::Term(term) => Some(term.number().to_string()),
            TermQuery::All(parts) => joined(parts, " AND "),
            TermQuery::AnyOf(parts) => joined(parts, " OR "),
        }
    }

    /// The query as a condition of PostgreSQL on the columns `terms` and `row_terms`. Parameters are added to
    /// `lists`, each a list of numbers with spaces between them; the first is `$first`. The index of terms
    /// needs operators on arrays; a walk compares with many terms faster by a hash table.
    pub(crate) fn array_condition(
        &self,
        use_of: ConditionUse,
        first: usize,
        lists: &mut Vec<String>,
    ) -> String {
        let (parts, operator, word) = match self {
            TermQuery::Any => return "true".to_owned(),
            TermQuery::Term(_) => (std::slice::from_ref(self), "@>", " and "),
            TermQuery::All(parts) => (&**parts, "@>", " and "),
            TermQuery::AnyOf(parts) => (&**parts, "&&", " or "),
        };
        let mut conditions = Vec::new();
        for (column, names_row) in [("terms", false), ("row_terms", true)] {
            let terms = parts.iter().filter_map(|part| match part {
                TermQuery::Term(term) if term.names_row() == names_row => {
                    Some(term.number().to_string())
                }
                _ => None,
            });
            let terms: Vec<String> = terms.collect();
            if terms.is_empty() {
                continue;
            }
            let is_walk = use_of == ConditionUse::Walk;
            let is_hashed = is_walk && operator == "&&" && terms.len() > MAX_COMPARED;
            let list = format!("string_to_array(${}, ' ')::int[]", first + lists.len());
            conditions.push(match is_hashed {
                true => format!(
                    "exists (select from unnest({column}) as a(term) where a.term in (select unnest({list})))"
                ),
                // An expression instead of the column keeps PostgreSQL from asking the index for it.
                false if is_walk => format!("({column} || '{{}}') {operator} {list}"),
                false => format!("{column} {operator} {list}"),
            });
            lists.push(terms.join(" "));
        }
        for part in parts {
            if !matches!(part, TermQuery::Term(_)) {
                conditions.push(part.array_condition(use_of, first, lists));
            }
        }
        match conditions.is_empty() {
            true => "false".to_owned(),
            false => format!("({})", conditions.join(word)),
        }
    }
}

/// A query of which some alternatives are many authors. The documents that meet it meet `others`, or meet `besides` and have
/// one of these authors.
#[derive(Debug)]
pub(crate) struct SplitAuthors {
    /// The rows of the authors.
    pub(crate) rows: Vec<i64>,
    /// The query without these authors.
    pub(crate) others: TermQuery,
    /// The conditions that all alternatives have to meet, too.
    pub(crate) besides: TermQuery,
}

/// The number of terms that a walk compares with each term of a document.
const MAX_COMPARED: usize = 64;

/// The part of a statement in which PostgreSQL checks a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionUse {
    /// A check of each of many places.
    Walk,
    /// A question to the index of terms.
    Index,
}

impl fmt::Display for TermQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TermQuery::Any => f.write_str("every post"),
            TermQuery::AnyOf(parts) if parts.is_empty() => f.write_str("no post"),
            _ => f.write_str(&self.fts5().unwrap_or_default()),
        }
    }
}

fn joined(parts: &[TermQuery], word: &str) -> Option<String> {
    let parts: Vec<String> = parts.iter().filter_map(TermQuery::fts5).collect();
    match parts.is_empty() {
        true => None,
        false => Some(format!("({})", parts.join(word))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn term(number: u8) -> TermQuery {
        TermQuery::Term(Term::author(i64::from(number)))
    }

    fn queries() -> impl Strategy<Value = TermQuery> {
        let leaf = prop_oneof![Just(TermQuery::Any), (0..6_u8).prop_map(term)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(TermQuery::All),
                prop::collection::vec(inner, 0..4).prop_map(TermQuery::AnyOf),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_simplified_query_is_met_by_the_same_documents(
            query in queries(),
            numbers in prop::collection::vec(0..6_u8, 0..4),
        ) {
            let terms: Vec<Term> = numbers.iter().map(|n| Term::author(i64::from(*n))).collect();
            let simplified = query.clone().simplified();
            prop_assert_eq!(simplified.is_met_by(&terms), query.is_met_by(&terms));
            prop_assert_eq!(simplified.clone().simplified(), simplified);
        }
    }

    #[test]
    fn many_authors_are_split_from_other_conditions() {
        let authors = || (0..70).map(|id| TermQuery::Term(Term::author(id)));
        let [a, b] = ["a", "b"].map(|label| TermQuery::Term(Term::label(label)));
        let any = TermQuery::AnyOf(authors().chain([a.clone()]).collect());
        let split = any.split_authors().expect("many");
        assert_eq!(split.rows, (0..70).collect::<Vec<_>>());
        assert_eq!((split.others, split.besides), (a.clone(), TermQuery::Any));
        let all = TermQuery::All(vec![b.clone(), any]);
        let split = all.split_authors().expect("many");
        assert_eq!(split.others, TermQuery::All(vec![b.clone(), a]));
        assert_eq!(split.besides, b);
        let only = TermQuery::AnyOf(authors().collect());
        let split = only.split_authors().expect("many");
        assert_eq!(split.others, TermQuery::AnyOf(Vec::new()));
        let few = TermQuery::AnyOf(authors().take(64).collect());
        assert!(few.split_authors().is_none());
    }

    #[test]
    fn no_document_meets_a_query_with_an_empty_part() {
        let none = TermQuery::AnyOf(Vec::new());
        let query = TermQuery::All(vec![term(1), TermQuery::AnyOf(vec![none.clone()])]);
        let either = TermQuery::AnyOf(vec![query.clone(), term(2)]);
        assert_eq!(query.simplified(), none);
        assert_eq!(either.simplified(), term(2));
    }

    #[test]
    fn a_query_is_written_for_both_databases() {
        let [a, b, c] = [1, 2, 3].map(|n| Term::author(n).number());
        let query = TermQuery::All(vec![
            term(1),
            TermQuery::AnyOf(vec![term(2), TermQuery::All(vec![term(3), term(1)])]),
        ]);
        assert_eq!(
            query.fts5(),
            Some(format!("({a} AND ({b} OR ({c} AND {a})))"))
        );
        let [d, e] = [Term::label("d"), Term::label("e")];
        let query = TermQuery::All(vec![
            TermQuery::Term(d),
            TermQuery::AnyOf(vec![
                term(2),
                TermQuery::All(vec![TermQuery::Term(e), term(1)]),
            ]),
        ]);
        let mut lists = Vec::new();
        assert_eq!(
            query.array_condition(ConditionUse::Index, 4, &mut lists),
            "(terms @> string_to_array($4, ' ')::int[] and (row_terms && string_to_array($5, ' ')::int[] or \
             (terms @> string_to_array($6, ' ')::int[] and row_terms @> string_to_array($7, ' ')::int[])))"
        );
        assert_eq!(
            lists,
            [d.number(), b, e.number(), a].map(|number| number.to_string())
        );
        assert_eq!(TermQuery::AnyOf(Vec::new()).fts5(), None);
    }
}
