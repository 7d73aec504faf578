//! Text from outside, in a form that every database accepts.

use std::borrow::Cow;

/// The text with U+FFFD in place of U+0000, which PostgreSQL cannot store. If U+0000 were removed,
/// two texts could become equal, and one name could pass for another.
pub fn without_nul(text: &str) -> Cow<'_, str> {
    if text.as_bytes().contains(&0) {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}
