use unicode_normalization::char::is_combining_mark;

/// Returns true if a character belongs to a word of a script with spaces between words. Scripts
/// without spaces have no word characters here, so 猫 is a whole word in 子猫が.
pub(crate) fn is_word_character(c: char) -> bool {
    (c.is_alphanumeric() || c == '_' || is_combining_mark(c)) && !is_unspaced(c)
}

/// Returns true if a character belongs to a script without spaces between words.
fn is_unspaced(c: char) -> bool {
    UNSPACED
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
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
