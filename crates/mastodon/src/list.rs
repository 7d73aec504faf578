use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Mastodon's `List`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct List<'a> {
    /// Its ID.
    pub id: Cow<'a, str>,
    /// Its title.
    pub title: Cow<'a, str>,
    /// The replies that it shows: `followed`, `list` or `none`.
    pub replies_policy: Cow<'a, str>,
    /// True if the home timeline omits the posts of its accounts.
    pub exclusive: bool,
    /// The text form of the predicate that selects the posts of a list without accounts; an addition of Driftline.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predicate: Option<Cow<'a, str>>,
    /// The reason why the predicate of the list cannot be read; the list has no posts meanwhile. An addition of
    /// Driftline.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub predicate_error: Option<Cow<'a, str>>,
    /// True if a list with a predicate notifies its owner of new posts; an addition of Driftline.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub notify: Option<bool>,
    /// The readers whose posts the feed of the list has, `world` or `owner`; an addition of Driftline.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub feed: Option<Cow<'a, str>>,
}
