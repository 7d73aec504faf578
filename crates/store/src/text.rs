//! Text from upstreams as the databases take it.

use std::borrow::Cow;

/// The text without NUL characters, which no database here holds.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.as_bytes().contains(&0) {
        Cow::Owned(text.replace('\0', ""))
    } else {
        Cow::Borrowed(text)
    }
}
