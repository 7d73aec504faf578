use serde::{Deserialize, Serialize};

use super::list_settings::{TextError, check_text};

named_enum! {
    /// A place where a filter applies.
    #[derive(PartialOrd, Ord)]
    pub enum FilterContext: "snake_case" {
        /// In the home timeline and in lists.
        Home,
        /// In notifications.
        Notifications,
        /// In public timelines.
        Public,
        /// In threads.
        Thread,
        /// In an account's timeline.
        Account,
    }
}

named_enum! {
    /// The action of an app for a post that a filter matches.
    #[derive(Default)]
    pub enum FilterAction: "snake_case" {
        /// The app shows the filter's title instead, until the user opens the post.
        #[default]
        Warn,
        /// The app omits the post.
        Hide,
        /// The app hides the post's media until the user opens them.
        Blur,
    }
}

/// The settings of a filter, except for what it matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterSettings {
    /// The title: 1 to 256 characters.
    pub title: String,
    /// The places where it applies: at least one, each once, in their order.
    pub contexts: Vec<FilterContext>,
    /// The action of apps.
    pub action: FilterAction,
    /// The time at which it ends by itself, in Unix ms.
    #[serde(rename = "expires_at")]
    pub expires_at_ms: Option<i64>,
}

/// A keyword of a filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterKeyword {
    /// The text to find: 1 to 512 characters.
    pub keyword: String,
    /// True if it must be a whole word.
    pub whole_word: bool,
}

/// The reason why a filter cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A text is invalid.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The filter has no context.
    #[error("Context can't be blank")]
    NoContext,
}

impl FilterSettings {
    /// Checks every limit, and sorts the contexts.
    ///
    /// # Errors
    /// [`FilterError`] with the first limit that is exceeded.
    pub fn checked(mut self) -> Result<Self, FilterError> {
        check_text("Title", &self.title, MAX_FILTER_TITLE_CHARS)?;
        self.contexts.sort_unstable();
        self.contexts.dedup();
        match self.contexts.is_empty() {
            true => Err(FilterError::NoContext),
            false => Ok(self),
        }
    }

    /// True if it applies at `now_ms`, in Unix ms.
    pub fn is_active(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|end| now_ms < end)
    }
}

impl FilterKeyword {
    /// Checks the keyword.
    ///
    /// # Errors
    /// [`TextError`] if the keyword is blank, too long, or contains U+0000.
    pub fn check(&self) -> Result<(), TextError> {
        check_text("Keyword", &self.keyword, MAX_KEYWORD_CHARS)
    }
}

const MAX_FILTER_TITLE_CHARS: usize = 256;
const MAX_KEYWORD_CHARS: usize = 512;
/// The largest number of an account's filters.
pub const MAX_FILTERS: usize = 100;
/// The largest number of a filter's keywords.
pub const MAX_KEYWORDS_PER_FILTER: usize = 100;
/// The largest number of a filter's posts.
pub const MAX_POSTS_PER_FILTER: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_once_each_in_one_order() {
        use FilterContext::{Home, Thread};
        let with = |title: &str, contexts: &[FilterContext]| {
            let settings = FilterSettings {
                title: title.to_owned(),
                contexts: contexts.to_vec(),
                action: FilterAction::Warn,
                expires_at_ms: Some(10),
            };
            settings.checked()
        };
        let checked = with("cats", &[Thread, Home, Thread]).expect("a filter");
        assert_eq!(checked.contexts, [Home, Thread]);
        assert!(checked.is_active(9) && !checked.is_active(10));
        assert_eq!(with("cats", &[]), Err(FilterError::NoContext));
        let blank = FilterError::Text(TextError::Blank("Title"));
        assert_eq!(with(" ", &[Home]), Err(blank));
    }
}
