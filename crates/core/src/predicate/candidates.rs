use std::ops::RangeInclusive;

use super::{Condition, Predicate, proposition::Term, tree::Tree};

/// A condition that every match of a predicate meets, without negations. An index finds the posts
/// that meet it, and a [`Matcher`](super::Matcher) then checks each of them.
///
/// For a [`Term::Word`], an entry of the post or the author's nickname contains the word, so its
/// [`index_form()`](super::index_form()) contains that of the word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidates {
    /// Any post may match.
    Any,
    /// Only posts that meet the term may match.
    Term(Term),
    /// Only posts that meet all conditions may match. There are at least two.
    All(Vec<Candidates>),
    /// Only posts that meet one of the conditions may match. There are at least two.
    AnyOf(Vec<Candidates>),
}

impl Predicate {
    /// Returns the condition that every match meets.
    pub fn candidates(&self) -> Candidates {
        let normal_form = self.tree.negation_normal_form();
        Candidates::required(&normal_form)
    }
}

impl Candidates {
    /// The condition that a tree in negation normal form implies.
    fn required(tree: &Tree) -> Self {
        match tree {
            Tree::Atom(proposition) => {
                let terms = proposition.terms().into_iter();
                Self::all(terms.map(Self::Term))
            }
            Tree::Not(_) => Self::Any,
            Tree::And(..) => Self::all(tree.operands().into_iter().map(Self::required)),
            Tree::Or(..) | Tree::Xor(..) => {
                Self::any_of(tree.operands().into_iter().map(Self::required))
            }
        }
    }

    /// Returns a weaker condition without the terms that `keeps` refuses, for an index that does
    /// not know them.
    #[must_use]
    pub fn only(&self, keeps: &impl Fn(&Term) -> bool) -> Self {
        match self {
            Self::Term(term) if !keeps(term) => Self::Any,
            Self::Any | Self::Term(_) => self.clone(),
            Self::All(parts) => Self::all(parts.iter().map(|part| part.only(keeps))),
            Self::AnyOf(parts) => Self::any_of(parts.iter().map(|part| part.only(keeps))),
        }
    }

    /// Returns a range that contains the IDs of all posts that meet the condition. It may be empty.
    pub fn ids(&self) -> RangeInclusive<u64> {
        match self {
            Self::Term(Term::Condition(Condition::Id(comparison))) => comparison.numbers(),
            Self::Any | Self::Term(_) => 0..=u64::MAX,
            Self::All(parts) => parts.iter().map(Self::ids).fold(0..=u64::MAX, |all, part| {
                *all.start().max(part.start())..=*all.end().min(part.end())
            }),
            Self::AnyOf(parts) => {
                let parts = parts.iter().map(Self::ids);
                let parts = parts.filter(|part| !part.is_empty());
                let hull = parts.reduce(|all, part| {
                    *all.start().min(part.start())..=*all.end().max(part.end())
                });
                hull.unwrap_or(RangeInclusive::new(1, 0))
            }
        }
    }

    fn all(parts: impl Iterator<Item = Self>) -> Self {
        let mut joined = Vec::new();
        for part in parts {
            match part {
                Self::Any => {}
                Self::All(inner) => joined.extend(inner),
                part => joined.push(part),
            }
        }
        match joined.len() {
            0 => Self::Any,
            1 => joined.remove(0),
            _ => Self::All(joined),
        }
    }

    fn any_of(parts: impl Iterator<Item = Self>) -> Self {
        let mut joined = Vec::new();
        for part in parts {
            match part {
                Self::Any => return Self::Any,
                Self::AnyOf(inner) => joined.extend(inner),
                part => joined.push(part),
            }
        }
        match joined.len() {
            1 => joined.remove(0),
            _ => Self::AnyOf(joined),
        }
    }
}
