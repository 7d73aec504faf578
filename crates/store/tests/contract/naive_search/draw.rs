//! Random texts, posts and queries.

use driftline_core::post::Visibility;
use rand::{RngExt as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization as _;

use super::evaluator::{Fact, Forms, Matching, Query};

/// The parts of each corpus's texts, with `|` between them.
pub(crate) const ALPHABETS: [&str; 20] = [
    "地震|津波|ねこ|ネコ|子猫|が|起きた|東京タワー|々|。|「|ー",
    "中文|新闻|繁體|地震|的|，|臺灣|台湾|神|\u{fa19}|𠮷野",
    "เมื่อวาน|แผ่นดินไหว|น้ำ|ำ|แมว|ก่| |๕|\u{e49}",
    "한국|하|한|지진|고양이| |ᄒ|ᅡ|ᆫ|ㅎㅎ|가\u{11a8}",
    "👩‍👩‍👧|👩|🐈‍⬛|🐈|👍🏽|👍|🇯🇵|🇯|❤\u{fe0f}|❤|\u{200d}|\u{fe0f}|a",
    "Straße|STRASSE|ẞ|café|cafe\u{301}|É|e|\u{301}|\u{323}\u{301}|\u{301}\u{323}| |ñ",
    "ＣＡＴ|cat|Ｃ|ａ|１２|12|　| |！|ｃａｔｓ|ﬁ|fi",
    "ｶﾞﾗｽ|ガラス|がらす|ﾈｺ|ネコ|ﾞ|\u{3099}|カ|ヷ|わ|ヴ|ｰ|ヾ",
    "%|_|100%|under_score|\"|'|\\|it's|\\\"|*|a|(b)|-|OR",
    "\0|\u{1f}|a|b|\u{fffd}|ab|\u{7f}|猫|\u{1}| ",
    "a|猫|ね|%|ß|👍|",
    "lorem |ipsum |地震|dolor|ねこ| sit|amet |x",
    "#cats|cats|Cats|＃猫|猫|ネコ| |en|ja",
    "cat|ねこ|地震|แมว|한|👩‍👧|Straße|ＣＡＴ|ﾈｺ|%| |é",
    "ΟΔΟΣ|οδος|οδός|ς|σ|Σ|ᾳ|α\u{345}|αι|Й|и\u{306}|й| ",
    "İ|ı|I|i|i\u{307}|ﬀ|ff|ǆ|ǅ|ſ|s|\u{212a}|k",
    "בּ|ב|\u{5bc}|مُحَمَّد|محمد|क़|क\u{93c}|क|हिन्दी| |\u{94d}",
    "㌔|キロ|㍿|株式会社|①|1|½|1⁄2|™|tm|\u{212b}|Å|ﷺ",
    "<b>|&amp;|&|<|>|http://a.example/?q=%3E|\n| |tag:x|a:b|;",
    "rust|Rust|rusty|Trust| |.|1.95|rust_lang|is|out|錆",
];
const CHARACTERS: &str = "%|_|\"|\\|'|*|\0|\u{1f}|\u{301}|\u{3099}| |OR|:|-";
const TAGS: &str = "cats|Cats|ＣＡＴＳ|猫|ネコ|ねこ|a\u{1f}b";
const LANGUAGES: &str = "en|ja|JA|zh-TW";
const MENTIONS: &str = "bob|Bob|n0x0|eve@Remote.example|bob@sim.example|a\u{1f}b";
const TIMES: &str = "1969-12-31T23:59:59Z|2019-12-31T23:59:59Z|2025-12-31T23:59:59Z|2026-01-01T00:00:00Z|\
    2026-01-31T18:00:00Z|2026-02-01T00:00:00Z|2026-03-14T15:09:26Z|2031-05-05T05:05:05Z|2150-06-01T00:00:00Z";
const DATES: &str = "1969-12-31|2019-12-31|2020-01-01|2025-12-31|2026-01-01|2026-01-31|2026-02-01|2031-01-01|2150-01-01";
/// The values that queries have of each operator, other than authors, sources and IDs.
const VALUES: [(&str, &str); 13] = [
    ("tag", TAGS),
    ("tag", "#cats|none"),
    ("lang", "en|JA|zh-tw|ja|ko"),
    ("has", "media|poll|cw|link|embed|link"),
    ("is", "reply|edited|sensitive|boost|bot|reply"),
    ("instance", "sim.example|Remote.example|other.example"),
    ("visibility", "public|unlisted|private"),
    (
        "mentions",
        "bob@sim.example|Bob@remote.example|n0x0@sim.example|eve@remote.example|bob@other.example|a\u{1f}b@sim.example",
    ),
    ("via", "sim.example|Other.example|remote.example"),
    ("after", DATES),
    ("before", DATES),
    ("during", DATES),
    ("after", TIMES),
];

pub(crate) struct Draw(pub(crate) ChaCha8Rng);

/// The content of a post.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) author: usize,
    pub(crate) visibility: Visibility,
    /// The warning, the text, the options of a poll, and the descriptions of media.
    texts: [Option<Vec<String>>; 4],
    tags: Vec<String>,
    language: Option<String>,
    /// The mentioned accounts, as their server names them.
    mentions: Vec<String>,
    /// The time of creation.
    pub(crate) created: Option<String>,
    /// The values of `is:` and `has:`, other than those that follow from the texts.
    flags: Vec<(&'static str, &'static str)>,
}

impl Draft {
    pub(crate) fn by(&self, author: usize) -> Draft {
        Draft {
            author,
            ..self.clone()
        }
    }

    pub(crate) fn json(&self, id: &str, account: &Value) -> Value {
        let list = |at: usize, name: &str| {
            let texts = self.texts[at].iter().flatten();
            texts.map(|text| json!({ name: text })).collect::<Vec<_>>()
        };
        let first = |at: usize| self.texts[at].iter().flatten().next().cloned();
        let html = first(1).unwrap_or_default().replace('&', "&amp;");
        let html = html.replace('<', "&lt;").replace('>', "&gt;");
        let has = |flag| self.flags.contains(&flag);
        let has_card = has(("has", "link")) || has(("has", "embed"));
        let card = json!({
            "url": if has(("has", "link")) { "https://a.example/" } else { "" },
            "html": has(("has", "embed")).then_some("<iframe>"),
        });
        json!({
            "id": id, "account": account, "content": format!("<p>{html}</p>"), "language": self.language,
            "spoiler_text": first(0), "sensitive": has(("is", "sensitive")),
            "in_reply_to_id": has(("is", "reply")).then_some("1"),
            "edited_at": has(("is", "edited")).then_some("2026-01-01T00:00:00Z"),
            "poll": self.texts[2].as_ref().map(|_| json!({ "options": list(2, "title") })),
            "media_attachments": list(3, "description"),
            "tags": self.tags.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
            "mentions": self.mentions.iter().map(|acct| json!({ "acct": acct })).collect::<Vec<_>>(),
            "card": has_card.then_some(card),
        })
    }

    /// The entries. A text of HTML has no white space around it, and no entry has U+001F.
    pub(crate) fn entries(&self) -> Vec<String> {
        let entries = self.texts.iter().enumerate().flat_map(|(at, texts)| {
            let texts = texts.iter().flatten();
            texts.map(move |text| if at == 1 { text.trim() } else { text })
        });
        let entries = entries.filter(|text| !text.is_empty());
        entries.map(|text| text.replace('\u{1f}', " ")).collect()
    }

    /// The facts about a post that the server with this host shows.
    pub(crate) fn facts(&self, host: &str) -> Vec<Fact> {
        let mentions = self.mentions.iter().map(|acct| match acct.contains('@') {
            true => acct.clone(),
            false => format!("{acct}@{host}"),
        });
        let mentions = mentions.map(|acct| Fact::new("mentions", &acct));
        let has_text = |at: usize| self.texts[at].iter().flatten().any(|text| !text.is_empty());
        let has_media = self.texts[3].iter().flatten().next().is_some();
        let present = [
            (has_text(0), "cw"),
            (self.texts[2].is_some(), "poll"),
            (has_media, "media"),
        ];
        let present = present
            .into_iter()
            .filter(|(is_met, _)| *is_met)
            .map(|(_, value)| ("has", value));
        let facts = present
            .chain(self.flags.iter().copied())
            .chain([("visibility", self.visibility.name())]);
        let tags = self.tags.iter().map(|tag| ("tag", &**tag));
        let language = self.language.iter().map(|code| ("lang", &**code));
        facts
            .chain(tags)
            .chain(language)
            .chain([("via", host)])
            .map(|(field, value)| Fact::new(field, value))
            .chain(mentions)
            .collect()
    }
}

impl Draw {
    pub(crate) fn is(&mut self, percent: u32) -> bool {
        self.0.random_ratio(percent, 100)
    }

    pub(crate) fn one<T: Clone>(&mut self, all: &[T]) -> T {
        all.choose(&mut self.0).expect("one").clone()
    }

    fn part(&mut self, parts: &str) -> String {
        self.one(&parts.split('|').collect::<Vec<_>>()).to_owned()
    }

    pub(crate) fn text(&mut self, alphabet: &str, longest: usize) -> String {
        let length = match self.0.random_range(0..10) {
            length @ 0..2 => length,
            2 => self.0.random_range(0..=longest),
            _ => self.0.random_range(1..8),
        };
        (0..length).map(|_| self.part(alphabet)).collect()
    }

    pub(crate) fn draft(&mut self, corpus: usize) -> Draft {
        let longest = if corpus == 11 { 1_500 } else { 40 };
        let texts = [(25, 1, 8), (100, 1, longest), (20, 2, 8), (30, 2, 8)];
        let texts = texts.map(|(percent, count, longest)| {
            let texts = (0..count)
                .map(|_| self.text(ALPHABETS[corpus], longest))
                .collect();
            self.is(percent).then_some(texts)
        });
        let flags = [
            ("is", "reply"),
            ("is", "sensitive"),
            ("has", "link"),
            ("has", "embed"),
        ];
        let visibilities = [
            Visibility::Public,
            Visibility::Public,
            Visibility::Unlisted,
            Visibility::Private,
        ];
        Draft {
            author: self.0.random_range(0..4),
            visibility: self.one(&visibilities),
            texts,
            tags: (0..self.0.random_range(0..3))
                .map(|_| self.part(TAGS))
                .collect(),
            language: self.is(70).then(|| self.part(LANGUAGES)),
            mentions: (0..self.0.random_range(0..3))
                .map(|_| self.part(MENTIONS))
                .collect(),
            created: self.is(90).then(|| self.part(TIMES)),
            flags: flags.into_iter().filter(|_| self.is(25)).collect(),
        }
    }

    /// Draws other texts, tags and so on.
    pub(crate) fn edited(&mut self, corpus: usize, draft: &Draft) -> Draft {
        let mut edited = Draft {
            author: draft.author,
            visibility: draft.visibility,
            created: draft.created.clone(),
            ..self.draft(corpus)
        };
        edited.flags.push(("is", "edited"));
        edited
    }

    /// Draws a word, most of the time a part of one of these texts.
    fn word(&mut self, corpus: usize, texts: &[String]) -> Forms {
        let word: String = match self.0.random_range(0..20) {
            0 => self.part(CHARACTERS),
            1 | 2 => {
                let alphabet = self.one(&ALPHABETS);
                self.part(alphabet)
            }
            3..=6 => self.text(ALPHABETS[corpus], 3),
            _ => {
                let text: Vec<char> = self.one(texts).chars().collect();
                let start = self.0.random_range(0..=text.len().saturating_sub(1));
                let length = self.one(&[1, 2, 2, 3, 4, 24]);
                text.into_iter().skip(start).take(length).collect()
            }
        };
        let word = match self.0.random_range(0..16) {
            0 => word.to_uppercase(),
            1 => word.to_lowercase(),
            2 => word.nfd().collect(),
            3 => word.nfkc().collect(),
            _ => word,
        };
        Forms::new(if word.is_empty() { "a" } else { &word })
    }

    fn term(&mut self, values: &[Fact]) -> Query {
        let (field, value) = match VALUES.get(self.0.random_range(0..VALUES.len() + 3)) {
            Some((field, values)) => (*field, self.part(values)),
            None => {
                let Fact(field, value) = self.one(values);
                (field, value)
            }
        };
        Query::Term(field, value)
    }

    /// Draws a query of at most `depth` nested operators, with words from these texts.
    pub(crate) fn query(
        &mut self,
        depth: u32,
        corpus: usize,
        texts: &[String],
        values: &[Fact],
    ) -> Query {
        if depth > 0 && self.is(75) {
            let mut inner = || self.query(depth - 1, corpus, texts, values);
            let operands = vec![inner(), inner()];
            return match self.one(&["-", "", "", "OR", "OR", "XOR"]) {
                "-" => Query::Not(Box::new(operands.into_iter().next().expect("one"))),
                sign => Query::Joined(sign, operands),
            };
        }
        let matching = self.one(&[
            Matching::Folded,
            Matching::Folded,
            Matching::Literal,
            Matching::Whole,
        ]);
        let word = Query::Word(matching, self.word(corpus, texts));
        match self.0.random_range(0..10) {
            0 => {
                let condition = Query::Term("lang", self.part(LANGUAGES));
                let host = Query::Term("instance", self.part(VALUES[5].1));
                Query::Braces(vec![word, self.one(&[condition, host])])
            }
            1..4 => self.term(values),
            _ => word,
        }
    }
}
