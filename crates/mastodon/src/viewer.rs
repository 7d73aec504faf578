//! The parts of a status that concern the account whose token was used to read it.
//!
//! They are not part of the post: no other account may see them. Posts and accounts are recognised
//! wherever they are nested, by the same rules as in answers (`references::{member, part_of}`).

use serde_json::value::RawValue;

use crate::{
    raw_object::{RawObject, items, text},
    references::{may_nest_status, member, part_of},
};

/// A status, split from the parts that concern its reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The status, JSON. Its members are as written.
    pub status: String,
    /// The removed parts, as an object of the same shape, JSON.
    pub viewer: String,
}

/// Splits a status from the parts that concern its reader, including those inside nested posts and
/// accounts, and inside the tweet from which it was made. `None` if there are no such parts, or the
/// JSON is not an object.
pub fn split(json: &str) -> Option<Split> {
    split_status(&RawObject::parse(json).ok()?)
}

/// A status without the parts that concern its reader.
pub fn without(json: String) -> String {
    split(&json).map_or(json, |split| split.status)
}

/// [`split`] for a status that is already parsed.
pub(crate) fn split_status(status: &RawObject<'_>) -> Option<Split> {
    split_object(status, Some(Part::Status), MAX_DEPTH)
}

/// An account without the parts that concern its reader.
pub(crate) fn without_in_account(account: &RawObject<'_>, json: &str) -> String {
    let part = Some(Part::Account);
    let split = may_concern_viewer(part, json).then(|| split_object(account, part, MAX_DEPTH));
    let split = split.flatten();
    split.map_or_else(|| json.to_owned(), |split| split.status)
}

/// The kinds of values that contain such members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Status,
    Poll,
    QuoteApproval,
    /// The members that Pleroma and Akkoma add to a status.
    Pleroma,
    /// The members that Akkoma adds to a status.
    Akkoma,
    /// The members that Friendica adds to a status.
    Friendica,
    /// The conversation of a status, by Mitra.
    Conversation,
    /// The posts to which a post links, by Mitra.
    Links,
    /// The list of a post's emoji reactions, by Pleroma and forks of Mastodon.
    Reactions,
    Reaction,
    /// The list of a post's hashtags.
    Tags,
    Tag,
    Account,
    /// The members that Pleroma and Akkoma add to an account.
    PleromaAccount,
    /// The permissions for a post, by GoToSocial.
    InteractionPolicy,
    /// The permission for one action.
    InteractionRule,
    /// The list of permitted accounts.
    Interactors,
    /// A tweet in the form of Twitter's API 1.1.
    Tweet,
    TwitterUser,
    /// The preview of a page that a post links to.
    Card,
    /// The list of a profile's rows.
    Fields,
    /// A row of a profile.
    Field,
    /// A post as its author typed it.
    Source,
}

/// The kind of a member of a [`Part`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    OfViewer,
    Inner(Part),
    OfPost,
}

impl Part {
    /// The kind of a list's items.
    pub(crate) fn item(self) -> Option<Self> {
        match self {
            Self::Reactions => Some(Self::Reaction),
            Self::Tags => Some(Self::Tag),
            Self::Links => Some(Self::Status),
            Self::Fields => Some(Self::Field),
            _ => None,
        }
    }

    /// True if all contents may be copied, provided that nothing in them looks like HTML or an ID.
    pub(crate) fn may_be_plain(self) -> bool {
        matches!(self, Self::Card | Self::Fields | Self::Field | Self::Source)
    }

    /// True if an item of a list belongs to the reader.
    pub(crate) fn is_viewers_item(self, item: &RawValue) -> bool {
        self == Self::Interactors && text(item).is_some_and(|item| item == "me")
    }

    /// The value of a member for other readers; `None` if it has the same value for all of them. The
    /// reader's own blocks and mutes replace the state of an accepted quote.
    pub(crate) fn value_for_others(self, name: &str, json: &str) -> Option<&'static str> {
        let is_state = self == Self::Status && name == "state";
        let is_readers = matches!(
            json,
            "\"blocked_account\"" | "\"blocked_domain\"" | "\"muted_account\""
        );
        (is_state && is_readers).then_some("\"accepted\"")
    }

    pub(crate) fn member(self, name: &str) -> Member {
        match (self, name) {
            (
                Self::Status,
                "favourited"
                | "reblogged"
                | "muted"
                | "bookmarked"
                | "pinned"
                | "filtered"
                | "conversation_tracking"
                | "emoji_reactioned"
                | "circle_id",
            )
            | (Self::Conversation, "tracking" | "can_moderate")
            | (Self::Poll, "voted" | "own_votes")
            | (Self::QuoteApproval, "current_user")
            | (
                Self::Pleroma,
                "bookmark_folder"
                | "thread_muted"
                | "direct_conversation_id"
                | "parent_visible"
                | "quote_visible",
            )
            | (Self::Friendica, "disliked" | "delivery_data" | "visibility")
            | (Self::Reaction, "me")
            | (Self::Tag, "following" | "featuring")
            | (
                Self::Account,
                "relationship"
                | "relationships"
                | "source"
                | "role"
                | "mute_expires_at"
                | "authentication_methods"
                | "client_config"
                | "follow_requests_count",
            )
            | (
                Self::PleromaAccount,
                "relationship"
                | "email"
                | "is_admin"
                | "is_moderator"
                | "privileges"
                | "deactivated"
                | "settings_store"
                | "chat_token"
                | "notification_settings"
                | "allow_following_move"
                | "unread_conversation_count"
                | "unread_notifications_count",
            )
            | (Self::Tweet, "favorited" | "retweeted")
            | (
                Self::TwitterUser,
                "following"
                | "follow_request_sent"
                | "notifications"
                | "muting"
                | "blocking"
                | "blocked_by",
            ) => Member::OfViewer,
            // Mastodon's quote contains a `quoted_status`; with some servers the quote itself is a
            // status.
            (Self::Status, "reblog" | "quote" | "quoted_status" | "in_reply_to_status")
            | (Self::Pleroma, "quote") => Member::Inner(Self::Status),
            (Self::Status, "card") => Member::Inner(Self::Card),
            (Self::Account, "fields") => Member::Inner(Self::Fields),
            (Self::Akkoma, "source") => Member::Inner(Self::Source),
            (Self::Status, "akkoma") => Member::Inner(Self::Akkoma),
            (Self::Status, "poll") => Member::Inner(Self::Poll),
            (Self::Status, "quote_approval") => Member::Inner(Self::QuoteApproval),
            (Self::Status, "pleroma") => Member::Inner(Self::Pleroma),
            (Self::Status, "conversation") => Member::Inner(Self::Conversation),
            (Self::Status, "interaction_policy") => Member::Inner(Self::InteractionPolicy),
            (Self::InteractionPolicy, _) => Member::Inner(Self::InteractionRule),
            (
                Self::InteractionRule,
                "always" | "with_approval" | "automatic_approval" | "manual_approval",
            ) => Member::Inner(Self::Interactors),
            (Self::Account, "feature_approval") => Member::Inner(Self::QuoteApproval),
            (Self::Status, "friendica") => Member::Inner(Self::Friendica),
            (Self::Status, "tags") => Member::Inner(Self::Tags),
            (Self::Status | Self::Pleroma, "reactions" | "emoji_reactions") => {
                Member::Inner(Self::Reactions)
            }
            (Self::Status, "links") => Member::Inner(Self::Links),
            (Self::Status, "account" | "group") | (Self::Account, "moved") => {
                Member::Inner(Self::Account)
            }
            (Self::Account, "pleroma") => Member::Inner(Self::PleromaAccount),
            (Self::Status, "twitter") | (Self::Tweet, "retweeted_status" | "quoted_status") => {
                Member::Inner(Self::Tweet)
            }
            (Self::Account, "twitter") | (Self::Tweet, "user") => Member::Inner(Self::TwitterUser),
            _ => Member::OfPost,
        }
    }
}

fn split_value(value: &RawValue, part: Option<Part>, depth: usize) -> Option<Split> {
    if part == Some(Part::Interactors) {
        return split_items(value, Part::Interactors);
    }
    match value.get().starts_with('[') {
        true => split_list(value, part.and_then(Part::item), depth),
        false => split_object(&RawObject::from_value(value)?, part, depth),
    }
}

/// True if a value may contain parts that concern the reader. Most accounts, media and hashtags
/// contain none and are not parsed.
fn may_concern_viewer(part: Option<Part>, json: &str) -> bool {
    let has = |marks: &[&str]| marks.iter().any(|mark| json.contains(mark));
    match part {
        None
        | Some(
            Part::Account | Part::Card | Part::Fields | Part::Field | Part::Akkoma | Part::Source,
        ) => {
            json.starts_with(['{', '['])
                && (has(MARKS_OF_ACCOUNT)
                    || has(MARKS_OF_STATUS)
                    || may_nest_status(json)
                    || may_escape_names(json))
        }
        Some(Part::Tags) => has(&["\"following\"", "\"featuring\""]) || may_escape_names(json),
        Some(Part::InteractionPolicy) => has(&["\"me\"", "\\"]),
        Some(_) => true,
    }
}

/// True if a name may be written with escapes. Names consist of lowercase letters and `_`. Most
/// texts with HTML have escapes of other characters.
fn may_escape_names(json: &str) -> bool {
    let has = |mark| json.contains(mark);
    has("\\u00") && (has("\\u005") || has("\\u006") || has("\\u007"))
}

/// The meaning of a member. A value is an account or a post by its position, or by its own members.
fn meaning(position: Option<Part>, part: Option<Part>, name: &str) -> Member {
    match position.map(|position| position.member(name)) {
        None | Some(Member::OfPost) => member(part, name),
        Some(known) => known,
    }
}

fn split_object(object: &RawObject<'_>, position: Option<Part>, depth: usize) -> Option<Split> {
    let length = |(_, key, value): (_, &str, &RawValue)| key.len() + value.get().len() + 2;
    let mut status = String::with_capacity(object.written().map(length).sum());
    let mut viewer = String::new();
    let part = part_of(position, object);
    for (name, key, value) in object.written() {
        let json = value.get();
        if let Some(common) = part.and_then(|part| part.value_for_others(name, json)) {
            add(&mut status, key, common);
            add(&mut viewer, key, json);
            continue;
        }
        let inner = match meaning(position, part, name) {
            Member::OfViewer => {
                add(&mut viewer, key, json);
                continue;
            }
            Member::Inner(inner) => Some(inner),
            Member::OfPost => None,
        };
        let may_have = depth > 0 && may_concern_viewer(inner, json);
        let split = may_have.then(|| split_value(value, inner, depth - 1));
        match split.flatten() {
            Some(split) => {
                add(&mut status, key, &split.status);
                add(&mut viewer, key, &split.viewer);
            }
            None => add(&mut status, key, json),
        }
    }
    (!viewer.is_empty()).then(|| Split {
        status: format!("{{{status}}}"),
        viewer: format!("{{{viewer}}}"),
    })
}

/// Splits each value of a list. The removed parts form a list of the same length.
fn split_list(list: &RawValue, part: Option<Part>, depth: usize) -> Option<Split> {
    let items = items(list)?;
    let splits: Vec<_> = items
        .iter()
        .map(|item| {
            let nested = depth > 0 && item.get().starts_with(['{', '[']);
            nested.then(|| split_value(item, part, depth - 1)).flatten()
        })
        .collect();
    if splits.iter().all(Option::is_none) {
        return None;
    }
    let (status, viewer): (Vec<_>, Vec<_>) = items
        .iter()
        .zip(splits)
        .map(|(item, split)| match split {
            Some(split) => (split.status, split.viewer),
            None => (item.get().to_owned(), "{}".to_owned()),
        })
        .unzip();
    Some(Split {
        status: format!("[{}]", status.join(",")),
        viewer: format!("[{}]", viewer.join(",")),
    })
}

/// Splits a list from the reader's items.
fn split_items(list: &RawValue, part: Part) -> Option<Split> {
    let items = items(list)?.into_iter();
    let (viewer, status): (Vec<_>, Vec<_>) = items.partition(|item| part.is_viewers_item(item));
    let list = |items: &[&RawValue]| {
        let items: Vec<&str> = items.iter().map(|item| item.get()).collect();
        format!("[{}]", items.join(","))
    };
    (!viewer.is_empty()).then(|| Split {
        status: list(&status),
        viewer: list(&viewer),
    })
}

fn add(members: &mut String, key: &str, value: &str) {
    if !members.is_empty() {
        members.push(',');
    }
    members.extend([key, ":", value]);
}

/// Parts of the names of members that concern the reader of an account.
const MARKS_OF_ACCOUNT: &[&str] = &[
    "\"relationship",
    "\"source\"",
    "\"role\"",
    "\"mute_",
    "\"pleroma\"",
    "\"feature_",
    "\"authentication_",
    "\"client_config\"",
    "\"follow_requests_count\"",
    "\"twitter\"",
];
/// Members of all statuses, or of most that have parts that concern the reader.
const MARKS_OF_STATUS: &[&str] = &["\"visibility\"", "\"favourited\""];

/// The account of an author of the page to which a boosted post's quoted post links is nine values
/// deep, and may have moved. A hostile answer could nest without end.
const MAX_DEPTH: usize = 16;

#[cfg(test)]
mod tests;
