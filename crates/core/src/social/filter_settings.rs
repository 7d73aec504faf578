use super::list_settings::{TextError, check_text};

named_enum! {
    /// Where a filter applies.
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
    /// What an app does with a post that a filter matches.
    #[derive(Default)]
    pub enum FilterAction: "snake_case" {
        /// It shows the filter's title instead, until somebody asks for the post.
        #[default]
        Warn,
        /// It leaves the post out.
        Hide,
        /// It hides the post's media until somebody asks for them.
        Blur,
    }
}

/// What somebody says of a filter, but for what it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterSettings {
    /// Its name: 1 to 256 characters.
    pub title: String,
    /// Where it applies: once each, in their order; at least one.
    pub contexts: Vec<FilterContext>,
    /// What apps do.
    pub action: FilterAction,
    /// When it ends by itself, Unix ms.
    pub expires_at_ms: Option<i64>,
}

/// Words that a filter matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterKeyword {
    /// What is looked for: 1 to 512 characters.
    pub keyword: String,
    /// Whether it has to be a word, not a part of one.
    pub whole_word: bool,
}

/// Why a filter cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A text is not valid.
    #[error(transparent)]
    Text(#[from] TextError),
    /// It applies nowhere.
    #[error("Context can't be blank")]
    NoContext,
}

impl FilterSettings {
    /// Checks every limit, and puts the contexts in order.
    ///
    /// # Errors
    /// [`FilterError`]: the first that it is over.
    pub fn checked(mut self) -> Result<Self, FilterError> {
        check_text("Title", &self.title, MAX_FILTER_TITLE_CHARS)?;
        self.contexts.sort_unstable();
        self.contexts.dedup();
        match self.contexts.is_empty() {
            true => Err(FilterError::NoContext),
            false => Ok(self),
        }
    }

    /// Whether it applies at a time, Unix ms.
    pub fn is_active(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_none_or(|end| now_ms < end)
    }
}

impl FilterKeyword {
    /// Checks the keyword.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn check(&self) -> Result<(), TextError> {
        check_text("Keyword", &self.keyword, MAX_KEYWORD_CHARS)
    }
}

const MAX_FILTER_TITLE_CHARS: usize = 256;
const MAX_KEYWORD_CHARS: usize = 512;
/// How many filters an account may have.
pub const MAX_FILTERS: usize = 100;
/// How many keywords a filter may have.
pub const MAX_KEYWORDS_PER_FILTER: usize = 100;
/// How many posts a filter may name.
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
