//! The keywords of filters, all found in one pass over a text.
//!
//! Keywords and text are compared after NFKC and Unicode's case folding: full-width letters match
//! half-width ones, and `STRASSE` matches `straße`. A whole-word keyword must not be adjacent to a
//! word character at an end that is itself one. Scripts without spaces between words have no word
//! characters here, so 猫 matches in 子猫が and `rust` in Rustで.

use crate::predicate::{Folding, Word, WordMatch, WordSet, WordSetBuilder};

/// A compiled set of keywords.
#[derive(Debug, Clone, Default)]
pub struct FilterMatcher {
    words: WordSet,
    /// The number of each keyword's word; `None` for an empty keyword.
    numbers: Vec<Option<usize>>,
}

impl FilterMatcher {
    /// Compiles keywords, each with true if it must be a whole word. An empty keyword matches
    /// nothing.
    pub fn new<'k>(keywords: impl IntoIterator<Item = (&'k str, bool)>) -> Self {
        let mut words = WordSetBuilder::default();
        let numbers = keywords.into_iter().map(|(text, whole_word)| {
            let matching = match whole_word {
                true => WordMatch::Whole,
                false => WordMatch::Folded,
            };
            let word = Word::new(text, matching).ok()?;
            Some(words.add(&word, Folding::Case))
        });
        let numbers = numbers.collect();
        Self {
            words: words.build(),
            numbers,
        }
    }

    /// True if there are no keywords.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The indexes of the keywords that a text contains, in ascending order.
    pub fn matches(&self, text: &str) -> Vec<usize> {
        let found = self.words.find(std::iter::once(text));
        let keywords = self.numbers.iter().enumerate();
        let matching = keywords.filter(|(_, number)| number.is_some_and(|n| found.contains(n)));
        matching.map(|(keyword, _)| keyword).collect()
    }
}

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

    /// The word characters among those of the random texts.
    fn is_of_word(c: char) -> bool {
        (c.is_alphanumeric() || c == '_' || c == '\u{301}') && !"猫ネ".contains(c)
    }

    /// Matches by a literal reading of the rules.
    fn naive(keyword: &str, whole_word: bool, text: &str) -> bool {
        let (keyword, text) = (Folding::Case.fold(keyword), Folding::Case.fold(text));
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
