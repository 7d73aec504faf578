use std::collections::HashMap;

use aho_corasick::{AhoCorasick, MatchKind};

use super::{
    folding::Folding,
    word::{Word, WordMatch},
    word_boundary::is_word_character,
};

/// Collects words, each only once.
#[derive(Debug, Default)]
pub struct WordSetBuilder {
    groups: [GroupBuilder; Form::ALL.len()],
    len: usize,
}

/// Words of many predicates, all found in one pass over a text for each form in which words are
/// compared.
#[derive(Debug, Clone, Default)]
pub struct WordSet {
    groups: Vec<Group>,
    len: usize,
}

/// The words of a [`WordSet`] that a text contains.
#[derive(Debug, Clone)]
pub struct FoundWords {
    is_found: Vec<bool>,
    numbers: Vec<usize>,
}

impl WordSetBuilder {
    /// Adds a word, and returns its number. Equal words have one number, from 0.
    pub fn add(&mut self, word: &Word, folding: Folding) -> usize {
        let form = Form::new(word.matching(), folding);
        let group = &mut self.groups[form as usize];
        let text = form.apply(word.text());
        let pattern = match group.indexes.get(&text) {
            Some(index) => &mut group.patterns[*index],
            None => {
                group.patterns.push(Pattern::new(&text));
                group.indexes.insert(text, group.patterns.len() - 1);
                let last = group.patterns.len() - 1;
                &mut group.patterns[last]
            }
        };
        let number = match word.matching() {
            WordMatch::Literal | WordMatch::Folded => &mut pattern.part,
            WordMatch::Whole => &mut pattern.whole,
        };
        *number.get_or_insert_with(|| {
            self.len += 1;
            self.len - 1
        })
    }

    /// Compiles the words.
    pub fn build(self) -> WordSet {
        let groups = Form::ALL.into_iter().zip(self.groups);
        let groups = groups.filter_map(|(form, group)| group.build(form));
        WordSet {
            groups: groups.collect(),
            len: self.len,
        }
    }
}

impl WordSet {
    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no words.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Finds the words that one of the entries contains.
    pub fn find<'t>(&self, entries: impl Iterator<Item = &'t str>) -> FoundWords {
        let mut found = FoundWords {
            is_found: vec![false; self.len],
            numbers: Vec::new(),
        };
        for entry in entries {
            for group in &self.groups {
                match group.form {
                    Form::Literal => group.find(entry, &mut found),
                    form => group.find(&form.apply(entry), &mut found),
                }
            }
        }
        found
    }
}

impl FoundWords {
    /// Returns true if the word with this number was found.
    pub fn contains(&self, number: usize) -> bool {
        self.is_found.get(number).copied().unwrap_or_default()
    }

    /// Returns the numbers of the found words, in the order of their discovery.
    pub fn numbers(&self) -> &[usize] {
        &self.numbers
    }

    fn add(&mut self, number: Option<usize>) {
        if let Some(number) = number.filter(|number| !self.is_found[*number]) {
            self.is_found[number] = true;
            self.numbers.push(number);
        }
    }
}

/// The form of words and entries in which they are compared.
#[derive(Debug, Clone, Copy)]
enum Form {
    Literal,
    Case,
    Kana,
}

impl Form {
    const ALL: [Self; 3] = [Self::Literal, Self::Case, Self::Kana];

    const fn new(matching: WordMatch, folding: Folding) -> Self {
        match (matching, folding) {
            (WordMatch::Literal, _) => Self::Literal,
            (_, Folding::Case) => Self::Case,
            (_, Folding::Kana) => Self::Kana,
        }
    }

    fn apply(self, text: &str) -> String {
        match self {
            Self::Literal => text.to_owned(),
            Self::Case => Folding::Case.fold(text),
            Self::Kana => Folding::Kana.fold(text),
        }
    }
}

#[derive(Debug, Default)]
struct GroupBuilder {
    /// The indexes of the patterns by their texts.
    indexes: HashMap<String, usize>,
    patterns: Vec<Pattern>,
}

impl GroupBuilder {
    fn build(self, form: Form) -> Option<Group> {
        let mut texts = vec![""; self.patterns.len()];
        for (text, index) in &self.indexes {
            texts[*index] = text;
        }
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::Standard);
        // It fails only above 2^31 states.
        let automaton = builder.build(&texts).ok().filter(|_| !texts.is_empty())?;
        Some(Group {
            form,
            automaton,
            patterns: self.patterns,
        })
    }
}

/// The words that are compared in one form.
#[derive(Debug, Clone)]
struct Group {
    form: Form,
    automaton: AhoCorasick,
    patterns: Vec<Pattern>,
}

/// A text in the automaton.
#[derive(Debug, Clone, Copy)]
struct Pattern {
    /// The number of the word that matches anywhere.
    part: Option<usize>,
    /// The number of the word that matches without an adjacent word character.
    whole: Option<usize>,
    /// True if no word character may stand before the whole word.
    is_bounded_before: bool,
    /// True if no word character may stand after the whole word.
    is_bounded_after: bool,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let is_bounded = |c: Option<char>| c.is_some_and(is_word_character);
        Self {
            part: None,
            whole: None,
            is_bounded_before: is_bounded(text.chars().next()),
            is_bounded_after: is_bounded(text.chars().next_back()),
        }
    }
}

impl Group {
    /// Adds the words that an entry in this form contains.
    fn find(&self, entry: &str, found: &mut FoundWords) {
        for place in self.automaton.find_overlapping_iter(entry) {
            let pattern = &self.patterns[place.pattern().as_usize()];
            found.add(pattern.part);
            let whole = pattern.whole.filter(|whole| !found.is_found[*whole]);
            if whole.is_some() && pattern.is_whole(&entry[..place.start()], &entry[place.end()..]) {
                found.add(whole);
            }
        }
    }
}

impl Pattern {
    /// Returns true if the pattern is a whole word between two parts of an entry.
    fn is_whole(self, before: &str, after: &str) -> bool {
        let (previous, next) = (before.chars().next_back(), after.chars().next());
        let is_joined_before = self.is_bounded_before && previous.is_some_and(is_word_character);
        let is_joined_after = self.is_bounded_after && next.is_some_and(is_word_character);
        !is_joined_before && !is_joined_after
    }
}
