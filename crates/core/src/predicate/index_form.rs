use caseless::Caseless as _;
use unicode_normalization::{UnicodeNormalization as _, char::canonical_combining_class};

use super::folding::hiragana;

/// Returns the form in which an index contains a text. Each character is mapped by itself, so the
/// form of a part of a text is a part of the text's form. If a word matches a text in any way and
/// under any folding, then the word's form is a part of the text's form.
///
/// A character is decomposed (NFKD), case-folded and decomposed again. Combining marks are dropped,
/// because normalisation reorders them. Katakana becomes hiragana.
pub fn index_form(text: &str) -> String {
    let decomposed = text.chars().flat_map(|c| std::iter::once(c).nfkd());
    let folded = decomposed.default_case_fold();
    let decomposed = folded.flat_map(|c| std::iter::once(c).nfkd());
    let unmarked = decomposed.filter(|c| canonical_combining_class(*c) == 0);
    unmarked.map(hiragana).collect()
}
