//! Evaluates queries by a literal reading of `docs/predicates.md`. It shares no code with the matcher, the folding, the
//! index and its planner.

use std::{collections::HashSet, fmt};

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// A predicate, which is shown in its text form.
#[derive(Clone, Debug)]
pub(crate) enum Query {
    Word(Matching, Forms),
    Term(&'static str, String),
    /// The terms of one proposition.
    Braces(Vec<Query>),
    Not(Box<Query>),
    /// Two or more operands, with `OR`, `XOR` or nothing between them.
    Joined(&'static str, Vec<Query>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matching {
    Literal,
    Folded,
    Whole,
}

/// An operator and a value that a post meets, in the form in which values are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fact(pub(crate) &'static str, pub(crate) String);

/// A text as it is, and after folding of versions 1 and 2.
#[derive(Clone, Debug)]
pub(crate) struct Forms([String; 3]);

/// A post as one viewer is shown it.
#[derive(Clone, Debug)]
pub(crate) struct NaivePost {
    pub(crate) id: u64,
    pub(crate) entries: Vec<Forms>,
    pub(crate) facts: HashSet<Fact>,
    /// The time of creation, as `2026-01-31T18:00:00Z`.
    pub(crate) created: Option<String>,
}

impl NaivePost {
    /// True if the query selects the post, under this version of the folding.
    pub(crate) fn matches(&self, query: &Query, folding: usize) -> bool {
        let is_boost = self.facts.contains(&Fact::new("is", "boost"));
        (!is_boost || query.has_boosts()) && self.holds(query, folding)
    }

    fn has_id(&self, value: &str) -> bool {
        let number = value.trim_start_matches(['<', '>', '=']);
        let number: u64 = number.parse().expect("a number");
        match &value[..value.len() - number.to_string().len()] {
            ">" => self.id > number,
            ">=" => self.id >= number,
            "<" => self.id < number,
            "<=" => self.id <= number,
            _ => self.id == number,
        }
    }

    fn holds(&self, query: &Query, folding: usize) -> bool {
        match query {
            Query::Word(matching, Forms(word)) => {
                let form = if *matching == Matching::Literal {
                    0
                } else {
                    folding
                };
                self.entries.iter().any(|Forms(entry)| match matching {
                    Matching::Whole => contains_whole(&entry[form], &word[form]),
                    _ => entry[form].contains(&word[form]),
                })
            }
            Query::Term("id", value) => self.has_id(value),
            Query::Term(field @ ("after" | "before" | "during"), value) => {
                // Texts of one length are in the order of their times.
                let created = self.created.as_deref().map(|of| &of[..value.len()]);
                created.is_some_and(|created| match *field {
                    "after" => created > &**value,
                    "before" => created < &**value,
                    _ => created == value,
                })
            }
            Query::Term(field, value) => self.facts.contains(&Fact::new(field, value)),
            Query::Not(operand) => !self.holds(operand, folding),
            Query::Joined("OR", operands) => operands.iter().any(|one| self.holds(one, folding)),
            Query::Joined("XOR", operands) => {
                let held = operands.iter().map(|one| self.holds(one, folding));
                held.fold(false, |left, right| left != right)
            }
            Query::Joined(_, operands) | Query::Braces(operands) => {
                operands.iter().all(|one| self.holds(one, folding))
            }
        }
    }
}

impl Query {
    fn has_boosts(&self) -> bool {
        match self {
            Query::Word(..) => false,
            Query::Term(field, value) => (*field, &**value) == ("is", "boost"),
            Query::Not(operand) => operand.has_boosts(),
            Query::Joined(_, operands) | Query::Braces(operands) => {
                operands.iter().any(Query::has_boosts)
            }
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted =
            |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let joined = |operands: &[Query], sign: &str| {
            let operands: Vec<String> = operands.iter().map(Query::to_string).collect();
            operands.join(sign)
        };
        match self {
            Query::Word(Matching::Literal, word) => write!(f, "={}", quoted(&word.0[0])),
            Query::Word(Matching::Folded, word) => write!(f, "{}", quoted(&word.0[0])),
            Query::Word(Matching::Whole, word) => write!(f, "word:{}", quoted(&word.0[0])),
            Query::Term(field, value) => write!(f, "{field}:{}", quoted(value)),
            Query::Braces(terms) => write!(f, "{{{}}}", joined(terms, " ")),
            Query::Not(operand) => write!(f, "-{operand}"),
            Query::Joined(sign, operands) => {
                write!(f, "({})", joined(operands, &format!(" {sign} ")))
            }
        }
    }
}

impl Forms {
    /// U+0000 is U+FFFD in words and in stored texts.
    pub(crate) fn new(text: &str) -> Forms {
        let text = text.replace('\0', "\u{fffd}");
        let cased = || {
            text.nfkd()
                .flat_map(case_folded)
                .collect::<Vec<_>>()
                .into_iter()
        };
        let kana = cased().map(hiragana).nfkc().collect();
        let cased = cased().nfkc().collect();
        Forms([text, cased, kana])
    }
}

impl Fact {
    pub(crate) fn new(field: &'static str, value: &str) -> Fact {
        let value = match field {
            "tag" => Forms::new(value.trim_start_matches(['#', '＃'])).0[1].clone(),
            "source" => value.to_owned(),
            _ => value.to_ascii_lowercase(),
        };
        Fact(field, value)
    }
}

/// Full case folding by the case mappings of the standard library, except for ı, whose capital is that of i.
fn case_folded(c: char) -> Vec<char> {
    if c == 'ı' {
        return vec![c];
    }
    let upper = c.to_lowercase().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).collect()
}

fn hiragana(c: char) -> char {
    match KATAKANA.chars().position(|katakana| katakana == c) {
        Some(at) => HIRAGANA.chars().nth(at).expect("as many"),
        None => c,
    }
}

const KATAKANA: &str = "ァアィイゥウェエォオカガキギクグケゲコゴサザシジスズセゼソゾタダチヂッツヅテデトドナニヌネノハバパヒビピフブプヘベペホボポマミムメモャヤュユョヨラリルレロヮワヰヱヲンヴヵヶヽヾ";
const HIRAGANA: &str = "ぁあぃいぅうぇえぉおかがきぎくぐけげこごさざしじすずせぜそぞただちぢっつづてでとどなにぬねのはばぱひびぴふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろゎわゐゑをんゔゕゖゝゞ";

/// True if the entry has the word at a place where neither end divides a word of a script with spaces.
fn contains_whole(entry: &str, word: &str) -> bool {
    let divides = |at: usize| {
        let (before, after) = entry.split_at(at);
        let sides = [before.chars().next_back(), after.chars().next()];
        sides
            .into_iter()
            .all(|side| side.is_some_and(is_of_spaced_word))
    };
    let places = entry
        .char_indices()
        .filter(|(at, _)| entry[*at..].starts_with(word));
    let mut places = places.map(|(at, _)| at);
    places.any(|at| !divides(at) && !divides(at + word.len()))
}

fn is_of_spaced_word(c: char) -> bool {
    let is_unspaced = matches!(c,
        '\u{e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '々'..='〇' | '\u{3040}'..='\u{312f}'
        | '\u{31a0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{1aff0}'..='\u{1b16f}' | '\u{20000}'..='\u{3ffff}');
    !is_unspaced && (c == '_' || c.is_alphanumeric() || is_combining_mark(c))
}
