use serde::{Deserialize, Serialize};

use crate::predicate::Predicate;

named_enum! {
    /// The replies that a list shows. A reply to its author, or to the owner of the list, is always
    /// shown.
    #[derive(Default)]
    pub enum RepliesPolicy: "snake_case" {
        /// Replies to accounts that the owner follows.
        Followed,
        /// Replies to accounts of the list.
        #[default]
        List,
        /// No replies.
        None,
    }
}

/// The settings of a list: of accounts, or of the posts that a predicate selects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSettings {
    /// The title: 1 to 100 characters.
    pub title: String,
    /// The replies that it shows.
    #[serde(default)]
    pub replies_policy: RepliesPolicy,
    /// True if the home timeline omits the posts of its accounts.
    #[serde(default)]
    pub exclusive: bool,
    /// The predicate that selects the posts. Such a list has no accounts.
    #[serde(default)]
    pub predicate: Option<Predicate>,
    /// True if the owner is notified of each new post that the predicate selects.
    #[serde(default)]
    pub notify: bool,
}

/// The reason why a text cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The text contains only white space.
    #[error("{0} can't be blank")]
    Blank(&'static str),
    /// The text is too long.
    #[error("{0} is too long (maximum is {1} characters)")]
    Long(&'static str, usize),
    /// The text contains U+0000.
    #[error("{0} is invalid")]
    Nul(&'static str),
}

impl ListSettings {
    /// Checks the title.
    ///
    /// # Errors
    /// [`TextError`] if the title is blank, too long, or contains U+0000.
    pub fn check(&self) -> Result<(), TextError> {
        check_text("Title", &self.title, MAX_LIST_TITLE_CHARS)
    }
}

/// Checks a text of one line.
pub(super) fn check_text(
    what: &'static str,
    text: &str,
    max_chars: usize,
) -> Result<(), TextError> {
    if text.trim().is_empty() {
        return Err(TextError::Blank(what));
    }
    if text.contains('\0') {
        return Err(TextError::Nul(what));
    }
    match text.chars().take(max_chars + 1).count() <= max_chars {
        true => Ok(()),
        false => Err(TextError::Long(what, max_chars)),
    }
}

/// The largest length of a list's title.
pub const MAX_LIST_TITLE_CHARS: usize = 100;
/// The largest number of an account's lists.
pub const MAX_LISTS: usize = 50;
/// The largest number of a list's accounts.
pub const MAX_LIST_MEMBERS: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_1_to_100_characters() {
        let check = |title: &str| {
            let settings = ListSettings {
                title: title.to_owned(),
                replies_policy: RepliesPolicy::List,
                exclusive: false,
                predicate: None,
                notify: false,
            };
            settings.check()
        };
        assert_eq!(check("友"), Ok(()));
        assert_eq!(check(&"友".repeat(100)), Ok(()));
        assert_eq!(check(&"友".repeat(101)), Err(TextError::Long("Title", 100)));
        assert_eq!(check(" \u{3000}"), Err(TextError::Blank("Title")));
        assert_eq!(check("a\0"), Err(TextError::Nul("Title")));
    }
}
