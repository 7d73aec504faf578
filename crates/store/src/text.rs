//! Text from upstreams, in a form that both databases accept.

use std::borrow::Cow;

/// The text without NUL characters, which PostgreSQL cannot store.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.as_bytes().contains(&0) {
        Cow::Owned(text.replace('\0', ""))
    } else {
        Cow::Borrowed(text)
    }
}
