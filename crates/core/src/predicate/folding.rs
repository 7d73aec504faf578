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
        while !rest.is_empty() {
            let complex = &rest[self.fold_simple(rest, &mut folded)..];
            let mut after = complex.char_indices().skip(1);
            let end = after.find(|(_, c)| self.simple(*c).is_some());
            let end = end.map_or(complex.len(), |(at, _)| at);
            self.fold_complex(&complex[..end], &mut folded);
            rest = &complex[end..];
        }
        folded
    }

    /// Appends the simple characters before the first complex one, except the last of them, which
    /// may compose with the complex one. Returns the place of the rest.
    fn fold_simple(self, text: &str, folded: &mut String) -> usize {
        // Unchanged characters are copied together.
        let (mut copied, mut last, mut before_last) = (0, 0, folded.len());
        for (at, c) in text.char_indices() {
            let Some(simple) = self.simple(c) else {
                match text.get(copied..last) {
                    Some(unchanged) => folded.push_str(unchanged),
                    None => folded.truncate(before_last),
                }
                return last;
            };
            last = at;
            if simple != c {
                folded.push_str(&text[copied..at]);
                before_last = folded.len();
                folded.push(simple);
                copied = at + c.len_utf8();
            }
        }
        folded.push_str(&text[copied..]);
        text.len()
    }

    fn fold_complex(self, text: &str, folded: &mut String) {
        let cased = text.nfkd().default_case_fold();
        match self {
            Self::Case => folded.extend(cased.nfkc()),
            Self::Kana => folded.extend(cased.map(hiragana).nfkc()),
        }
    }

    /// The folded form of a simple character: one that folds to one character, and that never
    /// composes with a character before it. Most texts consist of them, and are folded fast.
    fn simple(self, c: char) -> Option<char> {
        match c {
            'A'..='Z' => Some(c.to_ascii_lowercase()),
            '\0'..='\u{7f}' => Some(c),
            // Hiragana, Han, Hangul.
            '\u{3041}'..='\u{3096}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => Some(c),
            '\u{ac00}'..='\u{d7a3}' | '\u{309d}' | '\u{309e}' => Some(c),
            // Katakana.
            '\u{30a1}'..='\u{30f6}' | '\u{30fd}' | '\u{30fe}' if self == Self::Kana => {
                Some(hiragana(c))
            }
            '\u{30a1}'..='\u{30f6}' | '\u{30fb}'..='\u{30fe}' => Some(c),
            // Punctuation.
            '\u{3001}' | '\u{3002}' | '\u{300c}'..='\u{300f}' => Some(c),
            '\u{2013}'..='\u{2014}' | '\u{2018}'..='\u{201d}' => Some(c),
            '\u{3000}' => Some(' '),
            // Full-width ASCII.
            '\u{ff01}'..='\u{ff5e}' => {
                let ascii = char::from_u32(u32::from(c) - 0xfee0);
                ascii.map(|ascii| ascii.to_ascii_lowercase())
            }
            // Latin, Greek, Cyrillic.
            'à'..='ö' | 'ø'..='ÿ' | 'ά'..='ί' | 'α'..='ρ' | 'σ'..='ώ' | 'а'..='я' => {
                Some(c)
            }
            'À'..='Ö' | 'Ø'..='Þ' | 'Α'..='Ρ' | 'Σ'..='Ω' | 'А'..='Я' => {
                char::from_u32(u32::from(c) + 0x20)
            }
            // Thai.
            '\u{e01}'..='\u{e32}' | '\u{e34}'..='\u{e37}' | '\u{e40}'..='\u{e47}' => Some(c),
            // Emoji.
            '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}' | '\u{1f900}'..='\u{1f9ff}' => {
                Some(c)
            }
            _ => None,
        }
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
        for folding in [Folding::Case, Folding::Kana] {
            for c in '\0'..=char::MAX {
                if let Some(fast) = folding.simple(c) {
                    assert_eq!(canonical_combining_class(c), 0, "{c:?}");
                    assert_eq!(String::from(fast), slow(folding, &c.to_string()), "{c:?}");
                }
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
                assert_eq!(Folding::Case.simple(part), None, "{c:?}");
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
