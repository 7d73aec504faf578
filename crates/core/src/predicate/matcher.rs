use std::collections::{HashMap, HashSet};

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
    trees: Vec<CompiledTree>,
    /// The trees that require a word, by the word's number.
    by_word: Vec<Vec<u32>>,
    /// The trees that require something else.
    by_feature: HashMap<Feature, Vec<u32>>,
    /// The trees that require neither.
    unconditional: Vec<u32>,
}

impl PredicateSet {
    /// Compiles predicates.
    pub fn new<'p>(predicates: impl IntoIterator<Item = &'p Predicate>) -> Self {
        let mut words = WordSetBuilder::default();
        let mut set = Self::default();
        for predicate in predicates {
            let mut compiler = Compiler {
                words: &mut words,
                predicate,
            };
            let number = u32::try_from(set.trees.len()).unwrap_or(u32::MAX);
            set.trees.push(compiler.tree());
            match compiler.triggers(&predicate.candidates()) {
                Some(triggers) => set.add_triggers(triggers, number),
                None => set.unconditional.push(number),
            }
        }
        set.words = words.build();
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
        self.select(&post, |index| self.trees[index].matches(&post))
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
        let lists = by_word.chain(by_feature).chain([&self.unconditional]);

        let mut is_visited = vec![false; self.trees.len()];
        let mut selected = Vec::new();
        for number in lists.flatten() {
            let index = *number as usize;
            if !is_visited[index] && selects(index) {
                selected.push(index);
            }
            is_visited[index] = true;
        }
        selected.sort_unstable();
        selected
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
}

impl Post<'_> {
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

#[derive(Debug, Clone)]
struct CompiledTree {
    root: Node,
    /// True if boosts are evaluated.
    has_boosts: bool,
}

impl CompiledTree {
    fn matches(&self, post: &Post<'_>) -> bool {
        (self.has_boosts || !post.facts.is_boost()) && self.root.holds(post)
    }
}

#[derive(Debug, Clone)]
enum Node {
    Word(usize),
    Term(Box<Term>),
    Not(Box<Node>),
    All(Box<[Node]>),
    AnyOf(Box<[Node]>),
    OddNumberOf(Box<[Node]>),
}

impl Node {
    fn holds(&self, post: &Post<'_>) -> bool {
        match self {
            Self::Word(number) => post.found.contains(*number),
            Self::Term(term) => match &**term {
                Term::Author(mask) => mask.holds(post.facts),
                Term::Instance(host) => {
                    let instance = post.facts.instance();
                    host.as_str().eq_ignore_ascii_case(instance)
                }
                Term::Condition(condition) => condition.holds(post.facts, &post.folded_tags),
                // Words are compiled to their numbers.
                Term::Word(_) => false,
            },
            Self::Not(operand) => !operand.holds(post),
            Self::All(operands) => operands.iter().all(|operand| operand.holds(post)),
            Self::AnyOf(operands) => operands.iter().any(|operand| operand.holds(post)),
            Self::OddNumberOf(operands) => {
                let holding = operands.iter().filter(|operand| operand.holds(post));
                holding.count() % 2 == 1
            }
        }
    }
}

struct Compiler<'a> {
    words: &'a mut WordSetBuilder,
    predicate: &'a Predicate,
}

impl Compiler<'_> {
    fn tree(&mut self) -> CompiledTree {
        let propositions = self.predicate.tree().propositions();
        let boost = Some(Condition::Is(PostTrait::Boost));
        CompiledTree {
            has_boosts: propositions.iter().any(|p| p.condition == boost),
            root: self.node(self.predicate.tree()),
        }
    }

    fn node(&mut self, tree: &Tree) -> Node {
        match tree {
            Tree::Atom(proposition) => match <[Term; 1]>::try_from(proposition.terms()) {
                Ok([term]) => self.term(term),
                Err(terms) => Node::All(terms.into_iter().map(|term| self.term(term)).collect()),
            },
            Tree::Not(operand) => Node::Not(Box::new(self.node(operand))),
            Tree::And(..) => Node::All(self.operands(tree)),
            Tree::Or(..) => Node::AnyOf(self.operands(tree)),
            Tree::Xor(..) => Node::OddNumberOf(self.operands(tree)),
        }
    }

    fn operands(&mut self, tree: &Tree) -> Box<[Node]> {
        let operands = tree.operands().into_iter();
        operands.map(|operand| self.node(operand)).collect()
    }

    fn term(&mut self, term: Term) -> Node {
        match term {
            Term::Word(word) => Node::Word(self.words.add(&word, self.predicate.folding())),
            term => Node::Term(Box::new(term)),
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
