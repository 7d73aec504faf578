//! Posts to search: half Japanese, half Latin, with frequencies of words by Zipf's law, words that occur together
//! by topics, and planted words at exact rates. A post follows from its number alone.

use std::ops::Range;

use jiff::Timestamp;
use serde_json::{Value, json};

/// The words of all posts.
pub(crate) struct Corpus {
    /// Cumulative weights of the words by their ranks.
    weights: Vec<f64>,
    japanese: Vec<String>,
    latin: Vec<String>,
    /// The number of posts with known rates, of which five have the tag.
    pub(super) posts: u64,
    authors: u64,
}

/// An author as a server names it.
pub(super) struct Author {
    pub(super) acct: String,
    pub(super) nickname: String,
}

/// The names of a post.
pub(super) struct PostNames<'n> {
    pub(super) upstream_id: &'n str,
    pub(super) uri: &'n str,
    pub(super) at_ms: i64,
    pub(super) author: &'n Author,
}

/// A word in as many of 5,000 posts of its language as its range is long. A language has every other post.
struct Planted {
    word: &'static str,
    range: Range<u64>,
    /// The step of a permutation of the posts, which has no divisor in common with 5,000.
    step: u64,
    language: u64,
}

impl Planted {
    fn is_in(&self, number: u64) -> bool {
        let (block, offset) = (number / 2 / 5_000, number / 2 % 5_000);
        let rank = (offset * self.step + block * 977) % 5_000;
        number % 2 == self.language && self.range.contains(&rank)
    }
}

impl Corpus {
    pub(crate) fn new(posts: u64) -> Corpus {
        let mut draws = Draws(SEED);
        let weights = (1..=WORDS).scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        });
        let words = |word: fn(&mut Draws) -> String, draws: &mut Draws| {
            let mut words: Vec<String> = Vec::with_capacity(WORDS);
            while words.len() < WORDS {
                let word = word(draws);
                if PLANTED.iter().all(|planted| !word.contains(planted.word)) {
                    words.push(word);
                }
            }
            words
        };
        Corpus {
            weights: weights.collect(),
            japanese: words(japanese_word, &mut draws),
            latin: words(latin_word, &mut draws),
            posts,
            authors: (posts / 20).max(NAMED + 1),
        }
    }

    /// The author of a post. The authors whose nicknames have the searched word write 1 of 100 posts.
    pub(super) fn author(&self, number: u64) -> Author {
        let mut draws = Draws::for_post(number, 1);
        let number = match draws.below(100) {
            0 => draws.below(NAMED),
            _ => NAMED + draws.below(self.authors - NAMED),
        };
        self.author_named(&format!("drifter{number}"), number < NAMED, number)
    }

    /// An author with this name. One number has one nickname.
    pub(super) fn author_named(&self, acct: &str, is_searched: bool, number: u64) -> Author {
        let word = &self.japanese[(number % WORDS as u64) as usize];
        let nickname = match is_searched {
            true => format!("{word}{IN_NICKNAMES}"),
            false => format!("{word} {acct}"),
        };
        let acct = acct.to_owned();
        Author { acct, nickname }
    }

    /// One of the words of both languages, all of which are as likely.
    pub(super) fn word(&self, number: u64) -> &str {
        let language = if number.is_multiple_of(2) {
            &self.japanese
        } else {
            &self.latin
        };
        &language[(number / 2 % WORDS as u64) as usize]
    }

    /// The text of a post.
    pub(crate) fn text(&self, number: u64) -> String {
        let mut draws = Draws::for_post(number, 0);
        let is_japanese = number % 2 == JAPANESE;
        let words = if is_japanese {
            &self.japanese
        } else {
            &self.latin
        };
        let topic = draws.below(TOPICS) as usize * 37;
        let count = 6 + draws.below(35).min(draws.below(35));
        let mut parts: Vec<&str> = Vec::new();
        for _ in 0..count {
            let rank = self.rank(&mut draws);
            let at = match draws.below(3) {
                0 => (topic + rank % 60) % WORDS,
                _ => rank,
            };
            parts.push(&words[at]);
        }
        for planted in PLANTED.iter().filter(|planted| planted.is_in(number)) {
            let at = draws.below(parts.len() as u64) as usize;
            parts.insert(at, planted.word);
        }
        if self.has_tag(number) {
            parts.push("#tidalatlas");
        }
        if !is_japanese {
            return parts.join(" ");
        }
        let mut text = String::new();
        for (at, part) in parts.into_iter().enumerate() {
            text.push_str(part);
            let ends = at % 8 == 7;
            let between = if ends { "。" } else { draws.one(&PARTICLES) };
            text.push_str(between);
        }
        text
    }

    fn rank(&self, draws: &mut Draws) -> usize {
        let all = self.weights.last().copied().unwrap_or(1.0);
        let at = all * (draws.next() >> 11) as f64 / (1_u64 << 53) as f64;
        self.weights
            .partition_point(|weight| *weight < at)
            .min(WORDS - 1)
    }

    fn has_tag(&self, number: u64) -> bool {
        let part = (self.posts / 5).max(1);
        number < self.posts && number % part == part / 2
    }

    /// The JSON of a post, as large as real ones.
    pub(super) fn status(&self, number: u64, names: &PostNames<'_>) -> Value {
        let PostNames { author, uri, .. } = names;
        let at = Timestamp::from_millisecond(names.at_ms).unwrap_or_default();
        let tags = self
            .has_tag(number)
            .then(|| json!({ "name": TAG, "url": "https://sim.example/tags/tidalatlas" }));
        let language = if number % 2 == JAPANESE { "ja" } else { "en" };
        json!({
            "id": names.upstream_id, "created_at": format!("{at:.3}"), "in_reply_to_id": null,
            "in_reply_to_account_id": null, "sensitive": false, "spoiler_text": "", "visibility": "public",
            "language": language, "uri": uri, "url": uri, "replies_count": 0, "reblogs_count": 3, "favourites_count": 7,
            "edited_at": null, "content": format!("<p>{}</p>", self.text(number)), "reblog": null,
            "application": { "name": "Web", "website": null }, "account": account_json(author),
            "media_attachments": [], "mentions": [], "tags": tags.into_iter().collect::<Vec<_>>(), "emojis": [],
            "card": null, "poll": null, "favourited": false, "reblogged": false, "muted": false, "bookmarked": false,
            "filtered": [],
        })
    }
}

/// The JSON of an account, as large as real ones.
fn account_json(author: &Author) -> Value {
    let (name, host) = author
        .acct
        .split_once('@')
        .unwrap_or((&author.acct, "sim.example"));
    let picture = |kind| {
        format!("https://files.{host}/accounts/{kind}/109/552/730/original/d1f2a3b4c5e6f708.png")
    };
    json!({
        "id": name, "username": name, "acct": author.acct, "display_name": author.nickname, "locked": false,
        "bot": false, "discoverable": true, "indexable": false, "group": false,
        "created_at": "2022-11-05T00:00:00.000Z", "note": format!("<p>{NOTE}</p>"),
        "url": format!("https://{host}/@{name}"), "uri": format!("https://{host}/users/{name}"),
        "avatar": picture("avatars"), "avatar_static": picture("avatars"), "header": picture("headers"),
        "header_static": picture("headers"), "followers_count": 12, "following_count": 34, "statuses_count": 56,
        "last_status_at": "2025-10-09", "hide_collections": false, "noindex": false, "emojis": [], "roles": [],
        "fields": [{ "name": "Web", "value": "https://www.example.org/", "verified_at": null }],
    })
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn for_post(number: u64, purpose: u64) -> Draws {
        let mut draws =
            Draws(SEED ^ (2 * number + purpose + 1).wrapping_mul(0xd134_2543_de82_ef95));
        draws.next();
        draws
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Two characters in most cases; the first of these are commoner than the last.
fn japanese_word(draws: &mut Draws) -> String {
    let kanji = |draws: &mut Draws| {
        let at = draws.below(KANJI).min(draws.below(KANJI));
        char::from_u32(0x4e00 + at as u32).unwrap_or('一')
    };
    let kana = |draws: &mut Draws, from: u32| {
        char::from_u32(from + draws.below(80) as u32).unwrap_or('ア')
    };
    match draws.below(5) {
        0 => (0..3 + draws.below(3))
            .map(|_| kana(draws, 0x30a2))
            .collect(),
        1 => [kanji(draws), kana(draws, 0x3042), kana(draws, 0x3042)]
            .iter()
            .collect(),
        2 => (0..3).map(|_| kanji(draws)).collect(),
        _ => (0..2).map(|_| kanji(draws)).collect(),
    }
}

fn latin_word(draws: &mut Draws) -> String {
    let count = 1 + draws.below(3).min(draws.below(4));
    let syllables =
        (0..count).map(|_| [draws.one(&ONSETS), draws.one(&VOWELS), draws.one(&CODAS)].concat());
    syllables.collect()
}

const SEED: u64 = 20_261_128;
const WORDS: usize = 8_000;
const TOPICS: u64 = 200;
/// Below U+5260, where no planted word has its second character.
const KANJI: u64 = 1_120;
/// The authors whose nicknames have a searched word.
pub(super) const NAMED: u64 = 1_000;
const JAPANESE: u64 = 0;
const LATIN: u64 = 1;
pub(super) const IN_NICKNAMES: &str = "珊瑚";
pub(super) const TAG: &str = "tidalatlas";
const PARTICLES: [&str; 12] = [
    "の", "は", "を", "が", "に", "で", "と", "も", "した", "から", "です", "、",
];
const ONSETS: [&str; 20] = [
    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "th", "sh", "ch", "st", "tr",
    "pr", "",
];
const VOWELS: [&str; 10] = ["a", "e", "i", "o", "u", "ea", "ou", "ai", "e", "i"];
const CODAS: [&str; 14] = [
    "n", "r", "s", "t", "l", "nd", "st", "ng", "ck", "ght", "", "", "e", "er",
];
const NOTE: &str = "Walks along the drift line each morning and writes down what lies there. Photographs of harbours, \
                    tide tables, old maps. Opinions are those of the sea.";

const fn planted(word: &'static str, range: Range<u64>, step: u64, language: u64) -> Planted {
    Planted {
        word,
        range,
        step,
        language,
    }
}

/// 5,000 are half of all posts, so 1 is 0.01 % of them.
const PLANTED: [Planted; 11] = [
    planted("灯台", 0..1, 1237, JAPANESE),
    planted("津波", 0..10, 2311, JAPANESE),
    planted("雷雨", 0..100, 3163, JAPANESE),
    planted("電車", 0..1_000, 1733, JAPANESE),
    planted("猫舌", 0..3_000, 4177, JAPANESE),
    planted("紅茶", 0..300, 2903, JAPANESE),
    // Both in one post of each 10,000.
    planted("祭礼", 0..1_000, 3571, JAPANESE),
    planted("桜花", 999..1_999, 3571, JAPANESE),
    planted(IN_NICKNAMES, 0..10, 1429, JAPANESE),
    planted("lighthouse", 0..1, 2689, LATIN),
    planted("carpenter", 0..100, 3907, LATIN),
];
