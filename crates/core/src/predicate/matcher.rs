use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
};

use super::{
    Predicate,
    candidates::Candidates,
    condition::{Condition, PostTrait},
    facts::PostFacts,
    folding::Folding,
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
    len: usize,
    words: WordSet,
    /// The terms other than words, each once.
    terms: Vec<Term>,
    /// The steps of all trees. Those that require one word follow one another, so that they are read
    /// fast together.
    steps: Vec<Step>,
    /// The trees that require a word, by the word's number.
    by_word: Vec<Vec<CompiledTree>>,
    /// The trees that require something else.
    by_feature: HashMap<Feature, Vec<CompiledTree>>,
    /// The trees that require neither, and are in no other list.
    unconditional: Vec<CompiledTree>,
}

impl PredicateSet {
    /// Compiles predicates.
    pub fn new<'p>(predicates: impl IntoIterator<Item = &'p Predicate>) -> Self {
        let mut compiler = Compiler::default();
        let predicates = predicates.into_iter();
        let mut triggered: Vec<TriggeredPredicate<'p>> = predicates
            .enumerate()
            .map(|(index, predicate)| TriggeredPredicate {
                index: small(index),
                predicate,
                triggers: compiler.triggers(&predicate.candidates(), predicate.folding()),
            })
            .collect();
        triggered.sort_by_key(TriggeredPredicate::first_word);
        let mut set = Self {
            len: triggered.len(),
            ..Self::default()
        };
        for TriggeredPredicate {
            index,
            predicate,
            triggers,
        } in triggered
        {
            let tree = CompiledTree {
                index,
                begin: small(set.steps.len()),
                has_boosts: has_boosts(predicate),
            };
            compiler.add(predicate.tree(), predicate.folding(), &mut set.steps);
            match triggers {
                Some(triggers) => set.add_triggers(triggers, tree),
                None => set.unconditional.push(tree),
            }
        }
        set.words = compiler.words.build();
        set.terms = compiler.terms;
        set
    }

    /// Returns the number of predicates.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no predicates.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the indexes of the predicates that a post matches, in ascending order.
    pub fn matches(&self, facts: &PostFacts<'_>) -> Vec<usize> {
        let post = self.read(facts);
        self.select(&post, |tree| self.is_match(tree, &post))
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
        let mut trees = self.unconditional.iter();
        trees.any(|tree| tree.index as usize == index)
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
    fn select(&self, post: &Post<'_>, selects: impl Fn(CompiledTree) -> bool) -> Vec<usize> {
        let by_word = post.found.numbers().iter();
        let by_word = by_word.filter_map(|number| self.by_word.get(*number));
        let features = (!self.by_feature.is_empty()).then(|| post.features());
        let features = features.into_iter().flatten();
        let by_feature = features.filter_map(|feature| self.by_feature.get(&feature));
        let lists = by_word.chain(by_feature).chain([&self.unconditional]);

        let trees = lists.flatten().filter(|tree| selects(**tree));
        let mut selected: Vec<usize> = trees.map(|tree| tree.index as usize).collect();
        selected.sort_unstable();
        // One with several triggers may be in several lists.
        selected.dedup();
        selected
    }

    fn is_match(&self, tree: CompiledTree, post: &Post<'_>) -> bool {
        let mut at = tree.begin as usize;
        (tree.has_boosts || !post.is_boost) && self.holds(&mut at, post)
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

    fn add_triggers(&mut self, triggers: Vec<Trigger>, tree: CompiledTree) {
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
    /// The answers about the terms that were asked for, by the numbers of the terms.
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

/// A predicate and what triggers its evaluation; no triggers if every post does.
struct TriggeredPredicate<'p> {
    index: u32,
    predicate: &'p Predicate,
    triggers: Option<Vec<Trigger>>,
}

impl TriggeredPredicate<'_> {
    /// The number of the first word that triggers it.
    fn first_word(&self) -> Option<usize> {
        let mut triggers = self.triggers.iter().flatten();
        triggers.find_map(|trigger| match trigger {
            Trigger::Word { number, .. } => Some(*number),
            Trigger::Feature(_) => None,
        })
    }
}

/// The tree of a predicate.
#[derive(Debug, Clone, Copy)]
struct CompiledTree {
    /// The index of the predicate.
    index: u32,
    /// The tree's first step.
    begin: u32,
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

/// Gives words and other terms their numbers.
#[derive(Default)]
struct Compiler {
    words: WordSetBuilder,
    terms: Vec<Term>,
    numbers: HashMap<Term, u32>,
}

impl Compiler {
    /// Adds the steps of a tree.
    fn add(&mut self, tree: &Tree, folding: Folding, steps: &mut Vec<Step>) {
        let operator: fn(u32) -> Step = match tree {
            Tree::Atom(proposition) => {
                let terms = proposition.terms().into_iter();
                if terms.len() != 1 {
                    steps.push(Step::All(small(terms.len())));
                }
                return steps.extend(terms.map(|term| self.step(term, folding)));
            }
            Tree::Not(operand) => {
                steps.push(Step::Not);
                return self.add(operand, folding, steps);
            }
            Tree::And(..) => Step::All,
            Tree::Or(..) => Step::AnyOf,
            Tree::Xor(..) => Step::OddNumberOf,
        };
        let begin = steps.len();
        steps.push(operator(0));
        for operand in tree.operands() {
            self.add(operand, folding, steps);
        }
        steps[begin] = operator(small(steps.len() - begin - 1));
    }

    fn step(&mut self, term: Term, folding: Folding) -> Step {
        if let Term::Word(word) = term {
            return Step::Word(small(self.words.add(&word, folding)));
        }
        let number = self.numbers.entry(term).or_insert_with_key(|term| {
            self.terms.push(term.clone());
            small(self.terms.len() - 1)
        });
        Step::Term(*number)
    }

    /// The cheapest triggers, one of which every match has; `None` if any post may match.
    fn triggers(&mut self, required: &Candidates, folding: Folding) -> Option<Vec<Trigger>> {
        match required {
            Candidates::Any => None,
            Candidates::Term(term) => self.term_triggers(term, folding),
            Candidates::All(parts) => {
                let parts = parts.iter();
                let parts = parts.filter_map(|part| self.triggers(part, folding));
                parts.min_by_key(|triggers| triggers.iter().map(Trigger::cost).sum::<usize>())
            }
            Candidates::AnyOf(parts) => {
                let parts = parts.iter().map(|part| self.triggers(part, folding));
                let parts: Option<Vec<_>> = parts.collect();
                parts.map(|parts| parts.into_iter().flatten().collect())
            }
        }
    }

    fn term_triggers(&mut self, term: &Term, folding: Folding) -> Option<Vec<Trigger>> {
        let feature = match term {
            Term::Word(word) => {
                return Some(vec![Trigger::Word {
                    number: self.words.add(word, folding),
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
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
