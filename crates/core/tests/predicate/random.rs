//! Random trees and posts that often match each other.

use driftline_core::{
    post::{Counts, Visibility},
    predicate::{
        Acct, Attachment, Comparison, Condition, Connective, CountKind, Folding, Host, IdMask,
        Language, NameContext, PostTrait, Predicate, Proposition, Relation, SourceName, Tag, Term,
        Tree, When, Word, WordMatch,
    },
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::post::TestPost;

/// Names without a host belong to a.example, and nobody is logged in.
pub(crate) const NAMES: NameContext<'static> = NameContext {
    origin: "https://a.example",
    viewer: None,
};

const PIECES: &[&str] = &[
    "a",
    "b",
    "cat",
    "Cat",
    "CAT",
    "dog",
    "ＣＡＴ",
    "1",
    "１",
    "ß",
    "ss",
    "SS",
    "ﬁ",
    "fi",
    "İ",
    "i",
    "I",
    "ı",
    "é",
    "e\u{301}",
    "É",
    "e",
    "\u{301}",
    "\u{323}\u{301}",
    "\u{301}\u{323}",
    "\u{345}",
    "α\u{345}",
    "ᾳ",
    "α",
    "ι",
    "Σ",
    "ς",
    "Й",
    "и\u{306}",
    "й",
    "ǅ",
    "猫",
    "子猫",
    "中文",
    "繁體",
    "神",
    "神",
    "ネコ",
    "ねこ",
    "ﾈｺ",
    "ガ",
    "ｶﾞ",
    "が",
    "か\u{3099}",
    "カ",
    "\u{3099}",
    "ﾞ",
    "ヷ",
    "わ\u{3099}",
    "ヴ",
    "ゔ",
    "ー",
    "・",
    "ヾ",
    "แมว",
    "ำ",
    "ก่",
    "한",
    "하",
    "\u{11ab}",
    "\u{1112}\u{1161}",
    "ㅎ",
    "👩‍👩‍👧",
    "👍🏽",
    "👍",
    "🇯🇵",
    "\u{200d}",
    "\u{fe0f}",
    " ",
    "　",
    "\n",
    "_",
    "%",
    "\"",
    "“",
    "\\",
    "'",
    "\0",
    "\u{1f}",
    "-",
    "#",
    "OR",
    "(",
];

/// Pieces that the text form must quote.
const SYNTAX: &[&str] = &[
    "XOR", ":", "：", "）", "{", "}", "＃", "=", "＂", "”", "from:", "word:", "http://x", "＝",
    "me", "@",
];

const ACCTS: &[&str] = &[
    "ann@a.example",
    "bob@a.example",
    "ann@b.example:81",
    "名前@c d",
];
const HOSTS: &[&str] = &["a.example", "b.example:81", "c d", "d.example"];
const SOURCES: &[&str] = &["news", "News", "a \"b\" (c)"];
const TAGS: &[&str] = &["cat", "ＣＡＴ", "ねこ", "ネコ", "x y"];
const LANGUAGES: &[&str] = &["en", "ja", "zh-tw"];
const DAY_MS: i64 = 86_400_000;
const START_MS: i64 = 1_767_225_600_000;

pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    pub(crate) fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub(crate) fn character(&mut self) -> char {
        loop {
            if let Some(c) = char::from_u32(self.0.random_range(0..0x11_0000)) {
                return c;
            }
        }
    }

    pub(crate) fn text(&mut self, most: usize) -> String {
        let len = self.below(most + 1);
        (0..len).map(|_| self.pick(PIECES)).collect()
    }

    fn some<T>(&mut self, percent: usize, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.is(percent).then(|| make(self))
    }

    fn several<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let len = self.below(most + 1);
        (0..len).map(|_| make(self)).collect()
    }

    pub(crate) fn post(&mut self) -> TestPost {
        let mut post = TestPost::new(self.pick(ACCTS), &[]);
        post.id = self.below(4) as u64;
        post.author_id = self.some(50, |random| random.below(3) as u64);
        post.nickname = self.some(50, |random| random.text(3));
        post.entries = self.several(4, |random| random.text(6));
        post.via = self.several(2, |random| random.pick(HOSTS).to_owned());
        post.sources = self.several(2, |random| random.pick(SOURCES).to_owned());
        post.attachments = self.several(3, |random| random.pick(Attachment::ALL));
        post.traits = self.several(3, |random| random.pick(PostTrait::ALL));
        post.language = self.some(70, |random| random.pick(LANGUAGES).to_owned());
        post.tags = self.several(2, |random| random.pick(TAGS).to_owned());
        post.mentions = self.several(2, |random| random.pick(ACCTS).to_owned());
        post.visibility = self.pick(Visibility::ALL);
        post.created_at_ms = self.some(90, |random| {
            let day = random.below(4) as i64 - 1;
            START_MS + day * DAY_MS + random.pick(&[0, 1, DAY_MS - 1, 3_600_000])
        });
        let mut count = || self.some(60, |random| random.below(4) as i64);
        post.counts = Counts {
            replies: count(),
            boosts: count(),
            favourites: count(),
            quotes: count(),
            views: count(),
        };
        post
    }

    pub(crate) fn predicate(&mut self, most_leaves: usize) -> Predicate {
        let leaves = 1 + self.below(most_leaves);
        let tree = self.tree(leaves);
        let folding = self.pick(&[Folding::Case, Folding::Kana]);
        Predicate::new(tree, folding).expect("a tree within the limits")
    }

    pub(crate) fn tree(&mut self, leaves: usize) -> Tree {
        let tree = match leaves {
            0 | 1 => Tree::Atom(self.proposition()),
            _ => {
                let left = 1 + self.below(leaves - 1);
                let connectives = [Connective::And, Connective::Or, Connective::Xor];
                let (left, right) = (self.tree(left), self.tree(leaves - left));
                self.pick(&connectives).join(left, right)
            }
        };
        match self.is(20) {
            true => tree.negated(),
            false => tree,
        }
    }

    fn proposition(&mut self) -> Proposition {
        if self.is(80) {
            return Proposition::from(self.term());
        }
        let mut proposition = Proposition::default();
        for _ in 0..self.below(4) {
            let term = self.term();
            let _ = proposition.add(term);
        }
        proposition
    }

    fn term(&mut self) -> Term {
        match self.below(10) {
            0 => Term::Author(IdMask {
                acct: self.acct(),
                id: self.some(50, |random| random.below(3) as u64),
            }),
            1 => Term::Instance(self.host()),
            2..=6 => Term::Word(self.word()),
            _ => Term::Condition(self.condition()),
        }
    }

    pub(crate) fn word(&mut self) -> Word {
        let matchings = [WordMatch::Literal, WordMatch::Folded, WordMatch::Whole];
        let mut text = self.pick(PIECES).to_owned();
        if self.is(20) {
            text.push_str(self.pick(PIECES));
        }
        if self.is(10) {
            text.push_str(self.pick(SYNTAX));
        }
        if self.is(10) {
            text.insert_str(0, self.pick(SYNTAX));
        }
        Word::new(&text, self.pick(&matchings)).expect("not empty")
    }

    fn acct(&mut self) -> Acct {
        Acct::new(self.pick(ACCTS)).expect("an account")
    }

    fn host(&mut self) -> Host {
        Host::new(self.pick(HOSTS)).expect("a host")
    }

    fn condition(&mut self) -> Condition {
        match self.below(13) {
            0 => Condition::Via(self.host()),
            1 => Condition::Source(SourceName::new(self.pick(SOURCES)).expect("a name")),
            2 => Condition::Has(self.pick(Attachment::ALL)),
            3 => Condition::Is(self.pick(PostTrait::ALL)),
            4 => Condition::Language(Language::new(self.pick(LANGUAGES)).expect("a code")),
            5 => Condition::Tag(Tag::new(self.pick(TAGS)).expect("a hashtag")),
            6 => Condition::Mentions(self.acct()),
            7 => Condition::Visibility(self.pick(Visibility::ALL)),
            8 => Condition::After(self.when()),
            9 => Condition::Before(self.when()),
            10 => loop {
                if let When::Date(date) = self.when() {
                    break Condition::During(date);
                }
            },
            11 => Condition::Id(self.comparison()),
            _ => Condition::Count {
                kind: self.pick(CountKind::ALL),
                comparison: self.comparison(),
            },
        }
    }

    fn when(&mut self) -> When {
        let texts = [
            "2025-12-31",
            "2026-01-01",
            "2026-01-02",
            "2025-12-31T23:59:59.999Z",
            "2026-01-01T00:00:00Z",
            "2026-01-01T10:00:00.0005+09:00",
            "2026-01-01T01:00Z",
        ];
        self.pick(&texts).parse().expect("a date or a time")
    }

    fn comparison(&mut self) -> Comparison {
        let relations = [
            Relation::Equal,
            Relation::Less,
            Relation::AtMost,
            Relation::Greater,
            Relation::AtLeast,
        ];
        Comparison {
            relation: self.pick(&relations),
            number: self.below(4) as u64,
        }
    }
}
