//! What routes take, as the description has it, where they read it more loosely than it says.

#![expect(dead_code, reason = "descriptions")]

use utoipa::ToSchema;

use super::entities::{FilterAction, FilterContext, RepliesPolicy};
use crate::description::ids::{AccountId, FilterKeywordId, StatusId};

/// A list to make.
#[derive(ToSchema)]
pub(crate) struct NewList {
    title: String,
    /// `list` without it.
    replies_policy: Option<RepliesPolicy>,
    /// Whether the posts of its accounts are left out of the home timeline.
    exclusive: Option<bool>,
    /// A predicate in its text form: the list then has its posts, and no accounts.
    predicate: Option<String>,
    /// True to notify the account of each new post that the predicate selects.
    notify: Option<bool>,
}

/// What changes of a list.
#[derive(ToSchema)]
pub(crate) struct ListChange {
    title: Option<String>,
    replies_policy: Option<RepliesPolicy>,
    exclusive: Option<bool>,
    /// Another predicate, of a list that has one.
    predicate: Option<String>,
    notify: Option<bool>,
}

/// Accounts that come to a list, or leave it.
#[derive(ToSchema)]
pub(crate) struct ListAccounts {
    account_ids: Vec<AccountId>,
}

/// A filter to make. Forms name members of keywords as `keywords_attributes[0][keyword]`.
#[derive(ToSchema)]
pub(crate) struct NewFilter {
    title: String,
    context: Vec<FilterContext>,
    /// `warn` without it.
    filter_action: Option<FilterAction>,
    /// In how many seconds it expires; never without it.
    #[schema(minimum = 1)]
    expires_in: Option<u64>,
    keywords_attributes: Option<Vec<KeywordAttributes>>,
}

/// What changes of a filter.
#[derive(ToSchema)]
pub(crate) struct FilterChange {
    title: Option<String>,
    context: Option<Vec<FilterContext>>,
    filter_action: Option<FilterAction>,
    /// In how many seconds it expires; never if it is null.
    #[schema(minimum = 1)]
    expires_in: Option<u64>,
    keywords_attributes: Option<Vec<KeywordAttributes>>,
}

/// A filter of version 1 to make.
#[derive(ToSchema)]
pub(crate) struct NewFilterV1 {
    phrase: String,
    context: Vec<FilterContext>,
    /// False without it.
    irreversible: Option<bool>,
    /// True without it.
    whole_word: Option<bool>,
    /// In how many seconds it expires; never without it.
    #[schema(minimum = 1)]
    expires_in: Option<u64>,
}

/// What changes of a filter of version 1.
#[derive(ToSchema)]
pub(crate) struct FilterV1Change {
    phrase: Option<String>,
    context: Option<Vec<FilterContext>>,
    irreversible: Option<bool>,
    whole_word: Option<bool>,
    /// In how many seconds it expires; never if it is null.
    #[schema(minimum = 1)]
    expires_in: Option<u64>,
}

/// A keyword that is added to a filter, changed or removed.
#[derive(ToSchema)]
struct KeywordAttributes {
    /// A new one has none.
    id: Option<FilterKeywordId>,
    keyword: Option<String>,
    whole_word: Option<bool>,
    /// Whether it is removed.
    _destroy: Option<bool>,
}

/// A keyword to add to a filter.
#[derive(ToSchema)]
pub(crate) struct NewKeyword {
    keyword: String,
    /// True without it.
    whole_word: Option<bool>,
}

/// What changes of a keyword.
#[derive(ToSchema)]
pub(crate) struct ChangedKeyword {
    keyword: Option<String>,
    whole_word: Option<bool>,
}

/// A status to add to a filter.
#[derive(ToSchema)]
pub(crate) struct FilteredStatus {
    status_id: StatusId,
}

/// How far timelines were read. Forms name it as `home[last_read_id]`.
#[derive(ToSchema)]
#[schema(example = json!({ "home": { "last_read_id": "3819239792640001" } }))]
pub(crate) struct NewMarkers {
    home: Option<NewMarker>,
    notifications: Option<NewMarker>,
}

/// How far a timeline was read.
#[derive(ToSchema)]
struct NewMarker {
    last_read_id: String,
}
