//! The keywords of filters, all found in one pass over a text.
//!
//! Keywords and text are compared after NFKC and Unicode's case folding: full-width letters match
//! half-width ones, and `STRASSE` matches `straße`. A whole-word keyword must not be adjacent to a
//! word character at an end that is itself one. Scripts without spaces between words have no word
//! characters here, so 猫 matches in 子猫が and `rust` in Rustで.

use aho_corasick::{AhoCorasick, MatchKind};
use caseless::Caseless as _;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// A compiled set of keywords.
#[derive(Debug, Clone, Default)]
pub struct FilterMatcher {
    /// `None` if there are no keywords.
    automaton: Option<AhoCorasick>,
    patterns: Vec<Pattern>,
}

/// A keyword in the automaton.
#[derive(Debug, Clone, Copy)]
struct Pattern {
    /// The index of its keyword.
    keyword: usize,
    /// True if no word character may stand before it, and after it.
    is_bounded: (bool, bool),
}

impl FilterMatcher {
    /// Compiles keywords, each with true if it must be a whole word. An empty keyword matches
    /// nothing.
    pub fn new<'k>(keywords: impl IntoIterator<Item = (&'k str, bool)>) -> Self {
        let (mut patterns, mut texts) = (Vec::new(), Vec::new());
        for (keyword, (text, whole_word)) in keywords.into_iter().enumerate() {
            let text = folded(text);
            let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
                continue;
            };
            patterns.push(Pattern {
                keyword,
                is_bounded: (
                    whole_word && is_of_word(first),
                    whole_word && is_of_word(last),
                ),
            });
            texts.push(text);
        }
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::Standard);
        // It fails only above 2^31 states.
        let automaton = builder.build(&texts).ok().filter(|_| !texts.is_empty());
        Self {
            automaton,
            patterns,
        }
    }

    /// True if there are no keywords.
    pub fn is_empty(&self) -> bool {
        self.automaton.is_none()
    }

    /// The indexes of the keywords that a text contains, in ascending order.
    pub fn matches(&self, text: &str) -> Vec<usize> {
        let Some(automaton) = &self.automaton else {
            return Vec::new();
        };
        let text = folded(text);
        let mut found = Vec::new();
        let mut is_found = vec![false; self.patterns.len()];
        for place in automaton.find_overlapping_iter(&text) {
            let index = place.pattern().as_usize();
            if is_found[index] {
                continue;
            }
            let Pattern {
                keyword,
                is_bounded: (before, behind),
            } = self.patterns[index];
            let previous = text[..place.start()].chars().next_back();
            let next = text[place.end()..].chars().next();
            if before && previous.is_some_and(is_of_word) || behind && next.is_some_and(is_of_word)
            {
                continue;
            }
            is_found[index] = true;
            found.push(keyword);
            if found.len() == self.patterns.len() {
                break;
            }
        }
        found.sort_unstable();
        found
    }
}

/// The text in the form in which it is compared.
fn folded(text: &str) -> String {
    text.nfkd().default_case_fold().nfkc().collect()
}

/// True if a character belongs to a word of a script with spaces between words.
fn is_of_word(of: char) -> bool {
    (of.is_alphanumeric() || of == '_' || is_combining_mark(of)) && !is_unspaced(of)
}

/// True if a character belongs to a script without spaces between words.
fn is_unspaced(of: char) -> bool {
    UNSPACED
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&of))
}

const UNSPACED: [(char, char); 12] = [
    // Thai, Lao, Tibetan, Burmese, Khmer.
    ('\u{0e00}', '\u{0fff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    // 々 〆 〇.
    ('\u{3005}', '\u{3007}'),
    // Hiragana, Katakana, Bopomofo and their extensions.
    ('\u{3040}', '\u{312f}'),
    ('\u{31a0}', '\u{31ff}'),
    // Han.
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{1aff0}', '\u{1b16f}'),
    ('\u{20000}', '\u{2ffff}'),
    ('\u{30000}', '\u{3ffff}'),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(keyword: &str, whole_word: bool, text: &str) -> bool {
        !FilterMatcher::new([(keyword, whole_word)])
            .matches(text)
            .is_empty()
    }

    #[test]
    fn a_whole_word_stands_alone_and_a_part_need_not() {
        for (text, whole) in [
            ("a cat.", true),
            ("CAT", true),
            ("concat", false),
            ("cats", false),
            ("cat_", false),
            ("cat2", false),
            ("#cat", true),
            ("cate\u{301}", false),
            ("catが好き", true),
            ("concat, then a cat", true),
        ] {
            assert_eq!(found("cat", true, text), whole, "{text}");
            assert!(found("cat", false, text), "{text}");
        }
        assert!(!found("cat", false, "dog"));
    }

    #[test]
    fn only_an_end_that_is_of_a_word_has_a_boundary() {
        assert!(found("#rust", true, "learn#rust!"));
        assert!(!found("#rust", true, "#rusty"));
        assert!(found("c++", true, "c++11"));
        assert!(!found("c++", true, "objc++"));
    }

    #[test]
    fn japanese_has_no_spaces() {
        for (keyword, text) in [
            ("猫", "子猫が来た"),
            ("ネコ", "ノラネコだ"),
            ("rust", "Rustで書く"),
            ("ねこ", "うちのねこは"),
            ("แมว", "รักแมวมาก"),
        ] {
            assert!(found(keyword, true, text), "{keyword}");
        }
        assert!(!found("猫", true, "犬"));
        // A word with adjacent spaces keeps its boundary on that side.
        assert!(!found("猫cat", true, "子猫cats"));
        assert!(found("猫cat", true, "子猫catだ"));
    }

    #[test]
    fn case_and_width_make_no_difference() {
        for (keyword, text) in [
            ("STRASSE", "straße"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("ＲＵＳＴ", "rust"),
            ("ガラス", "ｶﾞﾗｽ"),
            ("caf\u{e9}", "CAFE\u{301}"),
            ("ǰ", "J\u{30c}"),
        ] {
            assert!(found(keyword, true, text), "{keyword}");
            assert!(found(text, true, keyword), "{text}");
        }
    }

    /// Matches by a literal reading of the rules.
    fn naive(keyword: &str, whole_word: bool, text: &str) -> bool {
        let (keyword, text) = (folded(keyword), folded(text));
        let (keyword, text): (Vec<char>, Vec<char>) =
            (keyword.chars().collect(), text.chars().collect());
        if keyword.is_empty() {
            return false;
        }
        (0..text.len()).any(|start| {
            let end = start + keyword.len();
            let is_there = text.get(start..end) == Some(&keyword);
            let joins = |a: usize, b: usize| is_of_word(text[a]) && is_of_word(text[b]);
            is_there
                && !(whole_word && start > 0 && joins(start - 1, start))
                && !(whole_word && end < text.len() && joins(end - 1, end))
        })
    }

    proptest! {
        #[test]
        fn keywords_are_found_as_a_naive_reader_finds_them(
            keywords in prop::collection::vec(("[aAbß猫ネ#_ é\u{301}]{0,3}", any::<bool>()), 0..6),
            text in "[aAbBsS猫ネ#_ éE\u{301}ß]{0,24}",
        ) {
            let matcher = FilterMatcher::new(keywords.iter().map(|(text, whole)| (&**text, *whole)));
            let found = matcher.matches(&text);
            let expected: Vec<usize> = (0..keywords.len())
                .filter(|at| naive(&keywords[*at].0, keywords[*at].1, &text))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
