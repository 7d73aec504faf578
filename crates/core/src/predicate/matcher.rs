use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
};

use super::{
    Predicate,
    candidates::Candidates,
    condition::{Condition, PostTrait},
    facts::PostFacts,
    proposition::Term,
    tree::Tree,
    word_set::{FoundWords, WordSet, WordSetBuilder},
};

/// A compiled predicate.
#[derive(Debug, Clone)]
pub struct Matcher(PredicateSet);

impl Matcher {
    /// Compiles a predicate.
    pub fn new(predicate: &Predicate) -> Self {
        Self(PredicateSet::new([predicate]))
    }

    /// Returns true if a post matches.
    pub fn matches(&self, facts: &PostFacts<'_>) -> bool {
        !self.0.matches(facts).is_empty()
    }
}

/// Many compiled predicates. A post's text is read once for all of them, and only those are
/// evaluated for which the post has a word, an author, an instance or a hashtag that they require.
///
/// A predicate matches a boost only if it has a term `is:boost`.
#[derive(Debug, Clone, Default)]
pub struct PredicateSet {
    words: WordSet,
    /// The terms other than words, each once.
    terms: Vec<Term>,
    /// All trees, one after another, so that many are read fast.
    steps: Vec<Step>,
    trees: Vec<CompiledTree>,
    /// The trees that require a word, by the word's number.
    by_word: Vec<Vec<u32>>,
    /// The trees that require something else.
    by_feature: HashMap<Feature, Vec<u32>>,
    /// The trees that require neither, and are in no other list.
    unconditional: Vec<u32>,
}

impl PredicateSet {
    /// Compiles predicates.
    pub fn new<'p>(predicates: impl IntoIterator<Item = &'p Predicate>) -> Self {
        let mut words = WordSetBuilder::default();
        let mut terms = TermNumbers::default();
        let mut set = Self::default();
        for predicate in predicates {
            let number = u32::try_from(set.trees.len()).unwrap_or(u32::MAX);
            set.trees.push(CompiledTree {
                begin: set.steps.len(),
                has_boosts: has_boosts(predicate),
            });
            let mut compiler = Compiler {
                words: &mut words,
                terms: &mut terms,
                predicate,
            };
            compiler.add(predicate.tree(), &mut set.steps);
            match compiler.triggers(&predicate.candidates()) {
                Some(triggers) => set.add_triggers(triggers, number),
                None => set.unconditional.push(number),
            }
        }
        set.words = words.build();
        set.terms = terms.terms;
        set
    }

    /// Returns the number of predicates.
    pub fn len(&self) -> usize {
        self.trees.len()
    }

    /// Returns true if there are no predicates.
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// Returns the indexes of the predicates that a post matches, in ascending order.
    pub fn matches(&self, facts: &PostFacts<'_>) -> Vec<usize> {
        let post = self.read(facts);
        self.select(&post, |index| self.is_match(self.trees[index], &post))
    }

    /// Returns the indexes of the predicates that a post may match, in ascending order: those that
    /// require a word, an author, an instance or a hashtag that it has, and those that require none
    /// of these. The facts may be those of several versions of the post together.
    pub fn candidates(&self, facts: &PostFacts<'_>) -> Vec<usize> {
        self.select(&self.read(facts), |_| true)
    }

    /// Returns true if any post may match the predicate with this index, whatever its words, author,
    /// instance and hashtags are.
    pub fn is_unconditional(&self, index: usize) -> bool {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        self.unconditional.contains(&number)
    }

    fn read<'a>(&self, facts: &'a PostFacts<'a>) -> Post<'a> {
        Post {
            found: self.words.find(facts.searched_entries()),
            folded_tags: facts.folded_tags(),
            is_boost: facts.is_boost(),
            known: vec![Cell::new(None); self.terms.len()],
            facts,
        }
    }

    /// The triggered predicates that `selects` accepts, in ascending order.
    fn select(&self, post: &Post<'_>, selects: impl Fn(usize) -> bool) -> Vec<usize> {
        let by_word = post.found.numbers().iter();
        let by_word = by_word.filter_map(|number| self.by_word.get(*number));
        let features = (!self.by_feature.is_empty()).then(|| post.features());
        let features = features.into_iter().flatten();
        let by_feature = features.filter_map(|feature| self.by_feature.get(&feature));

        let mut triggered: Vec<u32> = by_word.chain(by_feature).flatten().copied().collect();
        triggered.sort_unstable();
        triggered.dedup();
        let numbers = self.unconditional.iter().chain(&triggered);
        let indexes = numbers.map(|number| *number as usize);
        let mut selected: Vec<usize> = indexes.filter(|index| selects(*index)).collect();
        selected.sort_unstable();
        selected
    }

    fn is_match(&self, tree: CompiledTree, post: &Post<'_>) -> bool {
        (tree.has_boosts || !post.is_boost) && self.holds(&mut tree.begin.clone(), post)
    }

    /// Evaluates the tree that begins at a step, and moves on to the step after it.
    fn holds(&self, at: &mut usize, post: &Post<'_>) -> bool {
        let step = self.steps[*at];
        *at += 1;
        match step {
            Step::Word(number) => post.found.contains(number as usize),
            Step::Term(number) => post.has(number as usize, &self.terms),
            Step::Not => !self.holds(at, post),
            Step::All(steps) => {
                let end = *at + steps as usize;
                let mut holds = true;
                while holds && *at < end {
                    holds = self.holds(at, post);
                }
                *at = end;
                holds
            }
            Step::AnyOf(steps) => {
                let end = *at + steps as usize;
                let mut holds = false;
                while !holds && *at < end {
                    holds = self.holds(at, post);
                }
                *at = end;
                holds
            }
            Step::OddNumberOf(steps) => {
                let end = *at + steps as usize;
                let mut is_odd = false;
                while *at < end {
                    is_odd ^= self.holds(at, post);
                }
                is_odd
            }
        }
    }

    fn add_triggers(&mut self, triggers: Vec<Trigger>, tree: u32) {
        for trigger in triggers {
            match trigger {
                Trigger::Word { number, .. } => {
                    if self.by_word.len() <= number {
                        self.by_word.resize_with(number + 1, Vec::new);
                    }
                    self.by_word[number].push(tree);
                }
                Trigger::Feature(feature) => {
                    self.by_feature.entry(feature).or_default().push(tree);
                }
            }
        }
    }
}

/// A post and what was found in it.
struct Post<'a> {
    facts: &'a PostFacts<'a>,
    found: FoundWords,
    folded_tags: Vec<String>,
    is_boost: bool,
    /// Whether the post has each term, as far as that was asked.
    known: Vec<Cell<Option<bool>>>,
}

impl Post<'_> {
    /// True if the post has the term with this number.
    fn has(&self, number: usize, terms: &[Term]) -> bool {
        if let Some(known) = self.known[number].get() {
            return known;
        }
        let has = match &terms[number] {
            Term::Author(mask) => mask.holds(self.facts),
            Term::Instance(host) => {
                let instance = self.facts.instance();
                host.as_str().eq_ignore_ascii_case(instance)
            }
            Term::Condition(condition) => condition.holds(self.facts, &self.folded_tags),
            // Words have numbers of their own.
            Term::Word(_) => false,
        };
        self.known[number].set(Some(has));
        has
    }

    fn features(&self) -> HashSet<Feature> {
        let author = Feature::Author(self.facts.author.to_ascii_lowercase());
        let instance = Feature::Instance(self.facts.instance().to_ascii_lowercase());
        let id = self.facts.author_id.map(Feature::AuthorId);
        let tags = self.folded_tags.iter().cloned().map(Feature::Tag);
        [author, instance]
            .into_iter()
            .chain(id)
            .chain(tags)
            .collect()
    }
}

/// Something that a post has, other than words, by which trees are found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Feature {
    Author(String),
    AuthorId(u64),
    Instance(String),
    Tag(String),
}

/// A reason to evaluate a tree.
#[derive(Debug)]
enum Trigger {
    Word {
        number: usize,
        /// The length of the word in characters.
        chars: usize,
    },
    Feature(Feature),
}

impl Trigger {
    /// An estimate of the number of posts that have it. Long words are rare.
    fn cost(&self) -> usize {
        match self {
            Self::Word { chars, .. } => 1 + 64 / (chars * chars).max(1),
            Self::Feature(Feature::Instance(_)) => 32,
            Self::Feature(_) => 1,
        }
    }
}

/// The place of a tree among the steps of a set.
#[derive(Debug, Clone, Copy)]
struct CompiledTree {
    begin: usize,
    /// True if boosts are evaluated.
    has_boosts: bool,
}

/// A part of a tree. An operator stands before its operands, with the number of their steps.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A word, by its number.
    Word(u32),
    /// Another term, by its number.
    Term(u32),
    Not,
    All(u32),
    AnyOf(u32),
    OddNumberOf(u32),
}

/// Gives each term a number.
#[derive(Default)]
struct TermNumbers {
    terms: Vec<Term>,
    numbers: HashMap<Term, u32>,
}

impl TermNumbers {
    fn number(&mut self, term: Term) -> u32 {
        *self.numbers.entry(term).or_insert_with_key(|term| {
            self.terms.push(term.clone());
            count(self.terms.len() - 1)
        })
    }
}

struct Compiler<'a> {
    words: &'a mut WordSetBuilder,
    terms: &'a mut TermNumbers,
    predicate: &'a Predicate,
}

impl Compiler<'_> {
    /// Adds the steps of a tree.
    fn add(&mut self, tree: &Tree, steps: &mut Vec<Step>) {
        let operator: fn(u32) -> Step = match tree {
            Tree::Atom(proposition) => {
                return match <[Term; 1]>::try_from(proposition.terms()) {
                    Ok([term]) => steps.push(self.step(term)),
                    Err(terms) => {
                        steps.push(Step::All(count(terms.len())));
                        steps.extend(terms.into_iter().map(|term| self.step(term)));
                    }
                };
            }
            Tree::Not(operand) => {
                steps.push(Step::Not);
                return self.add(operand, steps);
            }
            Tree::And(..) => Step::All,
            Tree::Or(..) => Step::AnyOf,
            Tree::Xor(..) => Step::OddNumberOf,
        };
        let begin = steps.len();
        steps.push(operator(0));
        for operand in tree.operands() {
            self.add(operand, steps);
        }
        steps[begin] = operator(count(steps.len() - begin - 1));
    }

    fn step(&mut self, term: Term) -> Step {
        match term {
            Term::Word(word) => {
                let number = self.words.add(&word, self.predicate.folding());
                Step::Word(count(number))
            }
            term => Step::Term(self.terms.number(term)),
        }
    }

    /// The cheapest triggers, one of which every match has; `None` if any post may match.
    fn triggers(&mut self, required: &Candidates) -> Option<Vec<Trigger>> {
        match required {
            Candidates::Any => None,
            Candidates::Term(term) => self.term_triggers(term),
            Candidates::All(parts) => {
                let parts = parts.iter().filter_map(|part| self.triggers(part));
                parts.min_by_key(|triggers| triggers.iter().map(Trigger::cost).sum::<usize>())
            }
            Candidates::AnyOf(parts) => {
                let parts = parts.iter().map(|part| self.triggers(part));
                let parts: Option<Vec<_>> = parts.collect();
                parts.map(|parts| parts.into_iter().flatten().collect())
            }
        }
    }

    fn term_triggers(&mut self, term: &Term) -> Option<Vec<Trigger>> {
        let feature = match term {
            Term::Word(word) => {
                return Some(vec![Trigger::Word {
                    number: self.words.add(word, self.predicate.folding()),
                    chars: word.text().chars().count(),
                }]);
            }
            Term::Author(mask) => {
                let name = Feature::Author(mask.acct.as_str().to_owned());
                let features = [name].into_iter().chain(mask.id.map(Feature::AuthorId));
                return Some(features.map(Trigger::Feature).collect());
            }
            Term::Instance(host) => Feature::Instance(host.as_str().to_owned()),
            Term::Condition(Condition::Tag(tag)) => Feature::Tag(tag.key()),
            Term::Condition(_) => return None,
        };
        Some(vec![Trigger::Feature(feature)])
    }
}

fn has_boosts(predicate: &Predicate) -> bool {
    let boost = Some(Condition::Is(PostTrait::Boost));
    let propositions = predicate.tree().propositions();
    propositions.iter().any(|p| p.condition == boost)
}

/// A number of parts of predicates, each of which takes more than a byte of memory.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
