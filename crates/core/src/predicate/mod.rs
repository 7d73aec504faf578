//! The language of predicates: one tree of propositions for searches, saved timelines, filters,
//! standing searches, exports and sync filters. `docs/predicates.md` describes it for users.
//!
//! A [`Predicate`] is read from its text form ([`Predicate::parse`]) or from JSON, and decides with
//! a [`Matcher`] whether a post matches. A [`PredicateSet`] decides for many predicates in one pass
//! over the post's text. [`Candidates`] and [`index_form()`] serve an index that finds posts to check.

mod candidates;
mod canonical;
mod condition;
mod creation_days;
mod facts;
mod folding;
mod index_form;
mod json;
mod limits;
mod matcher;
mod names;
mod needed_facts;
mod normal_form;
mod parse_error;
mod parser;
mod printer;
mod proposition;
mod tree;
mod usage;
mod word;
mod word_boundary;
mod word_set;

use std::fmt;

use serde::Serialize;

pub use candidates::Candidates;
pub use condition::{
    Attachment, Comparison, Condition, ConditionError, CountKind, PostTrait, Relation, When,
};
pub use creation_days::CreationDays;
pub use facts::PostFacts;
pub use folding::{Folding, UnknownFolding};
pub use index_form::index_form;
pub use json::JsonError;
pub use limits::{LimitError, MAX_DEPTH, MAX_JSON_BYTES, MAX_TERMS, MAX_TEXT_BYTES};
pub use matcher::{Matcher, PredicateSet};
pub use names::{Acct, Host, Language, SourceName, Tag};
pub use needed_facts::NeededFacts;
pub use parse_error::{ParseError, ParseProblem};
pub use parser::NameContext;
pub use proposition::{IdMask, Proposition, Term};
pub use tree::{Connective, Tree};
pub use usage::{Usage, UsageError};
pub use word::{EmptyWord, Word, WordMatch};
pub use word_set::{FoundWords, WordSet, WordSetBuilder};

/// A tree within the limits, and the version of the folding under which its words are compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Predicate {
    folding: Folding,
    tree: Tree,
}

impl Predicate {
    /// Makes a predicate from a tree.
    ///
    /// # Errors
    ///
    /// A [`LimitError`] if the tree is too deep, or has too many terms, or its text is too long.
    pub fn new(tree: Tree, folding: Folding) -> Result<Self, LimitError> {
        limits::check(&tree)?;
        Ok(Self { folding, tree })
    }

    /// Reads the text form. Its words are compared under [`Folding::NEWEST`].
    ///
    /// # Errors
    ///
    /// A [`ParseError`] with the column of the first problem.
    pub fn parse(text: &str, names: &NameContext<'_>) -> Result<Self, ParseError> {
        let tree = parser::parse(text, names)?;
        let folding = Folding::NEWEST;
        Ok(Self { folding, tree })
    }

    /// Returns the tree.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the folding under which the words are compared.
    pub const fn folding(&self) -> Folding {
        self.folding
    }

    /// Returns an equivalent predicate that is equal for many spellings: operands are sorted,
    /// repetitions and redundant parentheses are removed.
    #[must_use]
    pub fn canonical(&self) -> Self {
        Self {
            folding: self.folding,
            tree: canonical::canonical(&self.tree),
        }
    }

    /// Returns the predicate with the IDs that `id` knows for the accounts of `author:`. The other
    /// accounts keep their IDs. An ID that would make the text too long is left out.
    #[must_use]
    pub fn with_author_ids(&self, id: impl Fn(&Acct) -> Option<u64>) -> Self {
        let mut tree = self.tree.clone();
        tree.for_each_proposition_mut(&mut |proposition| {
            if let Some(mask) = &mut proposition.id_mask {
                mask.id = id(&mask.acct).or(mask.id);
            }
        });
        Self::new(tree, self.folding).unwrap_or_else(|_| self.clone())
    }
}

/// The text form, which [`Predicate::parse`] reads. It omits the folding.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree.fmt(f)
    }
}
