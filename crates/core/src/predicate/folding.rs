use caseless::Caseless as _;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

/// The version of the rule by which words and entries are made comparable. It is stored with each
/// predicate, so that a later version changes no stored predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Folding {
    /// Version 1: compatibility forms and case make no difference, as in filters.
    Case,
    /// Version 2: version 1, and katakana equals hiragana.
    Kana,
}

/// A number that is not the version of a folding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown version of folding {version}: expected 1 or 2")]
pub struct UnknownFolding {
    /// The number.
    pub version: u8,
}

impl Folding {
    /// The folding of new predicates.
    pub const NEWEST: Self = Self::Kana;

    /// Returns the version's number.
    pub const fn version(self) -> u8 {
        match self {
            Self::Case => 1,
            Self::Kana => 2,
        }
    }

    /// Returns a text in the form in which it is compared: decomposed (NFKD), case-folded, with
    /// hiragana for katakana in version 2, and composed (NFKC).
    pub fn fold(self, text: &str) -> String {
        let mut folded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((end, complex)) = first_complex(rest) {
            folded.extend(rest[..end].chars().filter_map(|c| self.fold_simple(c)));
            let mut after = rest[end..].char_indices();
            let stop = after.find(|(at, c)| *at >= complex - end && simple_case(*c).is_some());
            let stop = stop.map_or(rest.len(), |(at, _)| end + at);
            self.fold_complex(&rest[end..stop], &mut folded);
            rest = &rest[stop..];
        }
        folded.extend(rest.chars().filter_map(|c| self.fold_simple(c)));
        folded
    }

    fn fold_complex(self, text: &str, folded: &mut String) {
        let cased = text.nfkd().default_case_fold();
        match self {
            Self::Case => folded.extend(cased.nfkc()),
            Self::Kana => folded.extend(cased.map(hiragana).nfkc()),
        }
    }

    fn fold_simple(self, simple: char) -> Option<char> {
        let cased = simple_case(simple)?;
        Some(match self {
            Self::Case => cased,
            Self::Kana => hiragana(cased),
        })
    }
}

impl TryFrom<u8> for Folding {
    type Error = UnknownFolding;

    fn try_from(version: u8) -> Result<Self, UnknownFolding> {
        match version {
            1 => Ok(Self::Case),
            2 => Ok(Self::Kana),
            _ => Err(UnknownFolding { version }),
        }
    }
}

impl From<Folding> for u8 {
    fn from(folding: Folding) -> Self {
        folding.version()
    }
}

/// The hiragana of a katakana letter; any other character itself.
pub(super) fn hiragana(letter: char) -> char {
    match letter {
        '\u{30a1}'..='\u{30f6}' | '\u{30fd}' | '\u{30fe}' => {
            char::from_u32(u32::from(letter) - 0x60).unwrap_or(letter)
        }
        _ => letter,
    }
}

/// The place of the first character that is not simple, after the place from which it must be
/// folded: a simple character before it may compose with it.
fn first_complex(text: &str) -> Option<(usize, usize)> {
    let mut previous = 0;
    for (at, c) in text.char_indices() {
        if simple_case(c).is_none() {
            return Some((previous, at));
        }
        previous = at;
    }
    None
}

/// The case-folded form of a simple character: one that folds to one character, and that never
/// composes with a character before it. Most texts consist of them, and are folded fast.
fn simple_case(c: char) -> Option<char> {
    match c {
        'A'..='Z' => Some(c.to_ascii_lowercase()),
        '\0'..='\u{7f}' => Some(c),
        // Cyrillic.
        'А'..='Я' => char::from_u32(u32::from(c) + 0x20),
        'а'..='я' => Some(c),
        '\u{3000}' => Some(' '),
        // Punctuation, hiragana, katakana.
        '\u{3001}' | '\u{3002}' | '\u{300c}'..='\u{300f}' => Some(c),
        '\u{3041}'..='\u{3096}' | '\u{309d}' | '\u{309e}' => Some(c),
        '\u{30a1}'..='\u{30f6}' | '\u{30fb}'..='\u{30fe}' => Some(c),
        // Han, Hangul.
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => Some(c),
        // Full-width ASCII.
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = char::from_u32(u32::from(c) - 0xfee0);
            ascii.map(|ascii| ascii.to_ascii_lowercase())
        }
        // Emoji.
        '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' | '\u{1f900}'..='\u{1f9ff}' => {
            Some(c)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::char::{canonical_combining_class, decompose_canonical};

    use super::*;

    fn slow(folding: Folding, text: &str) -> String {
        let mut folded = String::new();
        folding.fold_complex(text, &mut folded);
        folded
    }

    #[test]
    fn every_simple_character_is_folded_as_any_other() {
        let simple = ('\0'..=char::MAX).filter(|c| simple_case(*c).is_some());
        for c in simple {
            assert_eq!(canonical_combining_class(c), 0, "{c:?}");
            for folding in [Folding::Case, Folding::Kana] {
                let fast = folding.fold_simple(c).map(String::from);
                assert_eq!(fast, Some(slow(folding, &c.to_string())), "{c:?}");
            }
        }
    }

    #[test]
    fn no_simple_character_composes_with_one_before_it() {
        for c in '\0'..=char::MAX {
            let mut parts = Vec::new();
            decompose_canonical(c, |part| parts.push(part));
            let joined = parts.into_iter().skip(1);
            for part in joined {
                assert_eq!(simple_case(part), None, "{c:?}");
            }
        }
    }

    #[test]
    fn kana_are_equal_in_version_2_only() {
        for (katakana, hiragana) in [
            ("ネコ", "ねこ"),
            ("ｶﾞｷﾞ", "がぎ"),
            ("ヴヾ", "ゔゞ"),
            ("ヷ", "わ\u{3099}"),
        ] {
            let (case, kana) = (Folding::Case, Folding::Kana);
            assert_eq!(kana.fold(katakana), kana.fold(hiragana), "{katakana}");
            assert_ne!(case.fold(katakana), case.fold(hiragana), "{katakana}");
        }
    }
}
