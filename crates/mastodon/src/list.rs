use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Mastodon's `List`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List<'a> {
    /// Its ID.
    pub id: Cow<'a, str>,
    /// Its name for people.
    pub title: Cow<'a, str>,
    /// Which replies it shows: `followed`, `list` or `none`.
    pub replies_policy: Cow<'a, str>,
    /// Whether its accounts' posts are left out of the home timeline.
    pub exclusive: bool,
}
