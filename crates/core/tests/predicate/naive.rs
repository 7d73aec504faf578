//! An evaluator by a literal reading of the rules. It shares no code with the matcher.

use std::collections::HashMap;

use caseless::Caseless as _;
use driftline_core::predicate::{
    Attachment, Condition, CountKind, Folding, PostTrait, Predicate, Relation, Term, Tree, When,
    WordMatch,
};
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::post::TestPost;

/// A post whose entries are available in each form.
pub(crate) struct NaivePost {
    post: TestPost,
    forms: HashMap<&'static str, Vec<Vec<char>>>,
}

impl NaivePost {
    pub(crate) fn new(post: TestPost) -> Self {
        let entries: Vec<&String> = post.entries.iter().chain(&post.nickname).collect();
        let forms = ["literal", "case", "kana"].into_iter().map(|form| {
            let entries = entries.iter().map(|entry| in_form(form, entry));
            (form, entries.collect())
        });
        let forms = forms.collect();
        Self { post, forms }
    }

    pub(crate) fn post(&self) -> &TestPost {
        &self.post
    }

    pub(crate) fn matches(&self, predicate: &Predicate) -> bool {
        let is_boost = self.post.traits.contains(&PostTrait::Boost);
        if is_boost && !has_boost_term(predicate.tree()) {
            return false;
        }
        self.holds(predicate.tree(), predicate.folding())
    }

    fn holds(&self, tree: &Tree, folding: Folding) -> bool {
        match tree {
            Tree::Atom(atom) => {
                let terms = atom.terms();
                terms
                    .iter()
                    .filter(|term| !self.meets(term, folding))
                    .count()
                    == 0
            }
            Tree::Not(tree) => !self.holds(tree, folding),
            Tree::And(a, b) => self.holds(a, folding) & self.holds(b, folding),
            Tree::Or(a, b) => self.holds(a, folding) | self.holds(b, folding),
            Tree::Xor(a, b) => self.holds(a, folding) ^ self.holds(b, folding),
        }
    }

    pub(crate) fn meets(&self, term: &Term, folding: Folding) -> bool {
        let post = &self.post;
        match term {
            Term::Author(mask) => {
                mask.acct.as_str() == post.author
                    || (mask.id.is_some() && mask.id == post.author_id)
            }
            Term::Instance(host) => post.author.ends_with(&format!("@{}", host.as_str())),
            Term::Word(word) => {
                let form = match (word.matching(), folding) {
                    (WordMatch::Literal, _) => "literal",
                    (_, Folding::Case) => "case",
                    (_, Folding::Kana) => "kana",
                };
                let wanted = in_form(form, word.text());
                let is_whole = word.matching() == WordMatch::Whole;
                self.forms[form]
                    .iter()
                    .any(|entry| contains(entry, &wanted, is_whole))
            }
            Term::Condition(condition) => meets_condition(post, condition),
        }
    }
}

fn has_boost_term(tree: &Tree) -> bool {
    match tree {
        Tree::Atom(atom) => atom.condition == Some(Condition::Is(PostTrait::Boost)),
        Tree::Not(tree) => has_boost_term(tree),
        Tree::And(a, b) | Tree::Or(a, b) | Tree::Xor(a, b) => {
            has_boost_term(a) || has_boost_term(b)
        }
    }
}

fn meets_condition(post: &TestPost, condition: &Condition) -> bool {
    let has = |texts: &[String], text: &str| texts.iter().any(|one| one == text);
    match condition {
        Condition::Via(host) => has(&post.via, host.as_str()),
        Condition::Source(name) => has(&post.sources, name.as_str()),
        Condition::Has(one) => post.attachments.iter().any(|has: &Attachment| has == one),
        Condition::Is(one) => post.traits.iter().any(|is: &PostTrait| is == one),
        Condition::Language(code) => post.language.as_deref() == Some(code.as_str()),
        Condition::Tag(tag) => {
            let tags = post.tags.iter();
            let mut tags = tags.map(|tag| in_form("case", tag));
            tags.any(|one| one == in_form("case", tag.as_str()))
        }
        Condition::Mentions(acct) => has(&post.mentions, acct.as_str()),
        Condition::Visibility(one) => post.visibility.name() == one.name(),
        Condition::After(when) => {
            let Some(time_ms) = post.created_at_ms else {
                return false;
            };
            match day_of(when) {
                Some(day) => time_ms.div_euclid(86_400_000) > day,
                None => i128::from(time_ms) * 1_000_000 > nanoseconds(when),
            }
        }
        Condition::Before(when) => {
            let Some(time_ms) = post.created_at_ms else {
                return false;
            };
            match day_of(when) {
                Some(day) => time_ms.div_euclid(86_400_000) < day,
                None => i128::from(time_ms) * 1_000_000 < nanoseconds(when),
            }
        }
        Condition::During(date) => {
            let day = day_of(&When::Date(*date));
            post.created_at_ms.map(|ms| ms.div_euclid(86_400_000)) == day
        }
        Condition::Id(comparison) => {
            compares(comparison.relation, post.id as i64, comparison.number)
        }
        Condition::Count { kind, comparison } => {
            let count = match kind {
                CountKind::Favourites => post.counts.favourites,
                CountKind::Boosts => post.counts.boosts,
                CountKind::Replies => post.counts.replies,
                CountKind::Quotes => post.counts.quotes,
                CountKind::Views => post.counts.views,
            };
            match count {
                Some(count) => compares(comparison.relation, count, comparison.number),
                None => false,
            }
        }
    }
}

fn compares(relation: Relation, value: i64, number: u64) -> bool {
    let number = i64::try_from(number).expect("a small number");
    match relation {
        Relation::Equal => value == number,
        Relation::Less => value < number,
        Relation::AtMost => value <= number,
        Relation::Greater => value > number,
        Relation::AtLeast => value >= number,
    }
}

/// The day since 1970-01-01 by counting the days of each year and month.
fn day_of(when: &When) -> Option<i64> {
    let When::Date(date) = when else {
        return None;
    };
    let is_leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let years = 1970..i64::from(date.year());
    let mut days: i64 = years.map(|year| 365 + i64::from(is_leap(year))).sum();
    let february = 28 + i64::from(is_leap(i64::from(date.year())));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += months[..usize::try_from(date.month()).expect("from 1") - 1]
        .iter()
        .sum::<i64>();
    Some(days + i64::from(date.day()) - 1)
}

fn nanoseconds(when: &When) -> i128 {
    match when {
        When::Time(time) => time.as_nanosecond(),
        When::Date(_) => unreachable!("a time"),
    }
}

/// A text in a form, by the definitions.
pub(crate) fn in_form(form: &str, text: &str) -> Vec<char> {
    match form {
        "literal" => text.chars().collect(),
        "case" => text.nfkd().default_case_fold().nfkc().collect(),
        _ => {
            let cased = text.nfkd().default_case_fold();
            let kana = cased.map(|c| match KATAKANA.chars().position(|one| one == c) {
                Some(at) => HIRAGANA.chars().nth(at).expect("as many"),
                None => c,
            });
            kana.nfkc().collect()
        }
    }
}

const KATAKANA: &str = "ァアィイゥウェエォオカガキギクグケゲコゴサザシジスズセゼソゾタダチヂッツヅテデトドナニヌネノハバパヒビピフブプヘベペホボポマミムメモャヤュユョヨラリルレロヮワヰヱヲンヴヵヶヽヾ";
const HIRAGANA: &str = "ぁあぃいぅうぇえぉおかがきぎくぐけげこごさざしじすずせぜそぞただちぢっつづてでとどなにぬねのはばぱひびぴふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろゎわゐゑをんゔゕゖゝゞ";

fn contains(entry: &[char], wanted: &[char], is_whole: bool) -> bool {
    (0..=entry.len()).any(|start| {
        let end = start + wanted.len();
        if end > entry.len() || entry[start..end] != *wanted {
            return false;
        }
        let joins = |at: usize| {
            at > 0 && at < entry.len() && is_of_word(entry[at - 1]) && is_of_word(entry[at])
        };
        !is_whole || (!joins(start) && !joins(end))
    })
}

/// True if a character belongs to a script that separates words.
fn is_of_word(c: char) -> bool {
    let is_unspaced = matches!(u32::from(c),
        0xe00..=0x109f | 0x1780..=0x17ff
        | 0x3005..=0x3007 | 0x3040..=0x312f | 0x31a0..=0x31ff
        | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff
        | 0x1aff0..=0x1b16f | 0x20000..=0x3ffff);
    !is_unspaced && (c == '_' || c.is_alphanumeric() || is_combining_mark(c))
}
