use super::{
    condition::{Condition, ConditionError},
    names::{Acct, Host},
    parser::NameContext,
    word::{Word, WordMatch},
};

/// A conjunction of terms. A field that is not set selects every post, so the empty proposition
/// matches all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Proposition {
    /// The author.
    pub id_mask: Option<IdMask>,
    /// The instance of the author.
    pub belonging: Option<Host>,
    /// A word that one natural-language entry of the post contains.
    pub match_word: Option<Word>,
    /// A condition on another part of the post.
    pub condition: Option<Condition>,
}

/// An author, selected by name or ID.
///
/// The ID of an author of whom only the name is known changes when the account becomes known. So
/// the name is always stored, and either of the two is enough.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdMask {
    /// The name, with its host.
    pub acct: Acct,
    /// The ID on this server, if it is known.
    pub id: Option<u64>,
}

/// One field of a proposition that is set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Term {
    /// The post has this author.
    Author(IdMask),
    /// The author has an account on this instance.
    Instance(Host),
    /// One entry contains this word.
    Word(Word),
    /// The post meets another condition.
    Condition(Condition),
}

impl Proposition {
    /// Returns the terms, all of which a post must meet.
    pub fn terms(&self) -> Vec<Term> {
        let author = self.id_mask.clone().map(Term::Author);
        let instance = self.belonging.clone().map(Term::Instance);
        let word = self.match_word.clone().map(Term::Word);
        let condition = self.condition.clone().map(Term::Condition);
        [author, instance, word, condition]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Sets the field of a term. Returns false if the field is set already.
    #[must_use]
    pub fn add(&mut self, term: Term) -> bool {
        fn set<T>(field: &mut Option<T>, value: T) -> bool {
            let is_free = field.is_none();
            if is_free {
                *field = Some(value);
            }
            is_free
        }
        match term {
            Term::Author(mask) => set(&mut self.id_mask, mask),
            Term::Instance(host) => set(&mut self.belonging, host),
            Term::Word(word) => set(&mut self.match_word, word),
            Term::Condition(condition) => set(&mut self.condition, condition),
        }
    }
}

impl From<Term> for Proposition {
    fn from(term: Term) -> Self {
        let mut proposition = Self::default();
        match term {
            Term::Author(mask) => proposition.id_mask = Some(mask),
            Term::Instance(host) => proposition.belonging = Some(host),
            Term::Word(word) => proposition.match_word = Some(word),
            Term::Condition(condition) => proposition.condition = Some(condition),
        }
        proposition
    }
}

impl Term {
    /// Reads a term from the name of its operator and its value.
    pub(super) fn read(
        name: &str,
        value: &str,
        names: &NameContext<'_>,
    ) -> Result<Self, ConditionError> {
        match name {
            "author" | "from" => {
                let (acct, id) = match value.split_once('#') {
                    Some((acct, id)) => (acct, Some(id)),
                    None => (value, None),
                };
                let id = id.map(|id| id.parse().map_err(|_| ConditionError::Value));
                Ok(Self::Author(IdMask {
                    acct: names.acct(acct)?,
                    id: id.transpose()?,
                }))
            }
            "instance" => {
                let host = Host::new(value).ok_or(ConditionError::Value)?;
                Ok(Self::Instance(host))
            }
            "word" => {
                let word = Word::new(value, WordMatch::Whole);
                Ok(Self::Word(word.map_err(|_| ConditionError::Value)?))
            }
            _ => Condition::read(name, value, names).map(Self::Condition),
        }
    }
}
