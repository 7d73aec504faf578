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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_concerns_the_reader_is_taken() {
        let json = r#"{ "id":"1", "favourited" : true,"reblogged":false,"n":1e400,"muted":null,
            "bookmarked":true,"pinned":true,"filtered":[{"a":1}],"n":18446744073709551616,
            "poll":{"id":"2","voted":true,"own_votes":[0], "options":[ {"voted":1} ]},
            "quote_approval":{"automatic":[],"current_user":"denied"},
            "account":{"favourited":"kept"},"a\u0062":"\u0000" }"#;
        let split = split(json).expect("something to take");
        assert_eq!(
            split.status,
            r#"{"id":"1","n":1e400,"n":18446744073709551616,"poll":{"id":"2","options":[ {"voted":1} ]},"quote_approval":{"automatic":[]},"account":{"favourited":"kept"},"a\u0062":"\u0000"}"#
        );
        assert_eq!(
            split.viewer,
            r#"{"favourited":true,"reblogged":false,"muted":null,"bookmarked":true,"pinned":true,"filtered":[{"a":1}],"poll":{"voted":true,"own_votes":[0]},"quote_approval":{"current_user":"denied"}}"#
        );
    }

    #[test]
    fn boosted_and_quoted_posts_lose_it_too() {
        let inner = r#"{"favourited":true,"poll":{"voted":false}}"#;
        for json in [
            format!(r#"{{"reblog":{inner}}}"#),
            format!(r#"{{"quote":{inner}}}"#),
            format!(r#"{{"quoted_status":{inner}}}"#),
            format!(r#"{{"quote":{{"quoted_status":{inner}}}}}"#),
            format!(r#"{{"reblog":{{"quote":{{"quoted_status":{inner}}}}}}}"#),
        ] {
            let split = split(&json).expect("something to take");
            assert_eq!(split.status, json.replace(inner, r#"{"poll":{}}"#));
            assert_eq!(split.viewer, json);
        }
    }

    /// Puts members into an entity, and the entity into a status.
    fn nested(places: [&str; 2], members: &str) -> String {
        let [entity, status] = places;
        status.replace('*', &entity.replace('+', members))
    }

    #[test]
    fn nothing_of_the_reader_is_left_in_nested_entities() {
        // The members of an entity with and without the reader's.
        let of_account = [
            (r#","source":{"note":"n"}"#, ""),
            (r#","role":{"id":"3","permissions":"1"}"#, ""),
            (r#","relationship":{"id":"2","following":true}"#, ""),
            (r#","mute_expires_at":null"#, ""),
            (
                r#","feature_approval":{"automatic":[],"current_user":"denied"}"#,
                r#","feature_approval":{"automatic":[]}"#,
            ),
            (
                r#","pleroma":{"relationship":{"following":true},"tags":[]}"#,
                r#","pleroma":{"tags":[]}"#,
            ),
        ];
        let of_status = [
            (r#","favourited":true"#, ""),
            (r#","reblogged":false"#, ""),
            (r#","muted":true"#, ""),
            (r#","bookmarked":true"#, ""),
            (r#","pinned":true"#, ""),
            (r#","filtered":[{"filter":{"id":"9"}}]"#, ""),
            (
                r#","quote_approval":{"automatic":[],"current_user":"manual"}"#,
                r#","quote_approval":{"automatic":[]}"#,
            ),
            (
                r#","poll":{"id":"8","voted":true,"own_votes":[0]}"#,
                r#","poll":{"id":"8"}"#,
            ),
            (
                r#","tags":[{"name":"t"},{"name":"u","following":true}]"#,
                r#","tags":[{"name":"t"},{"name":"u"}]"#,
            ),
            (
                r#","quote":{"state":"muted_account","quoted_status":null}"#,
                r#","quote":{"state":"accepted","quoted_status":null}"#,
            ),
        ];
        let statuses = [
            "*",
            r#"{"reblog":*}"#,
            r#"{"quote":{"state":"accepted","quoted_status":*}}"#,
            r#"{"reblog":{"quote":{"state":"accepted","quoted_status":*}}}"#,
            r#"{"unknown":[{"status":*}]}"#,
            r#"{"account":{"id":"7","acct":"b","last":*}}"#,
        ];
        let accounts = [
            r#"{"id":"1","visibility":"public","account":@}"#,
            r#"{"id":"1","visibility":"public","account":{"id":"7","acct":"b","moved":@}}"#,
            r#"{"id":"1","visibility":"public","mentions":[{"id":"7","acct":"b"},@]}"#,
            r#"{"id":"1","visibility":"public","card":{"url":"u","authors":[{"name":"n","account":@}]}}"#,
            r#"{"id":"1","visibility":"public","unknown":{"people":[@]}}"#,
        ];
        let account = r#"{"id":"2","acct":"a"+}"#;
        let mut entities: Vec<(String, &str, &str)> = Vec::new();
        for (whole, kept) in of_status {
            let status = r#"{"id":"1","visibility":"public","account":{"id":"7","acct":"b"}+}"#;
            entities.push((status.to_owned(), whole, kept));
        }
        for place in accounts {
            for (whole, kept) in of_account {
                entities.push((place.replace('@', account), whole, kept));
            }
        }
        for status in statuses {
            for (entity, whole, kept) in &entities {
                let json = nested([entity, status], whole);
                let split = split(&json).unwrap_or_else(|| panic!("nothing was taken: {json}"));
                assert_eq!(split.status, nested([entity, status], kept), "{json}");
                assert_eq!(super::split(&split.status), None, "{json}");
            }
        }
    }

    #[test]
    fn an_account_alone_is_kept_without_its_readers_parts() {
        let json = r#"{"id":"2","acct":"a","source":{"note":"n"},"moved":{"id":"3","acct":"b","feature_approval":{"current_user":"denied"}},"roles":[]}"#;
        let account = RawObject::parse(json).expect("an object");
        assert_eq!(
            without_in_account(&account, json),
            r#"{"id":"2","acct":"a","moved":{"id":"3","acct":"b","feature_approval":{}},"roles":[]}"#
        );
        let plain = r#"{ "id":"2", "acct":"a" }"#;
        let account = RawObject::parse(plain).expect("an object");
        assert_eq!(without_in_account(&account, plain), plain);
    }

    #[test]
    fn reactions_do_not_reveal_the_readers_own() {
        let reactions =
            r#"[ {"name":"\ud83c\udf89","count":2,"me":true},7,{"me":false,"name":"x"}]"#;
        let kept = r#"[{"name":"\ud83c\udf89","count":2},7,{"name":"x"}]"#;
        let taken = r#"[{"me":true},{},{"me":false}]"#;
        for path in [
            r#"{"reactions":*}"#,
            r#"{"emoji_reactions":*}"#,
            r#"{"pleroma":{"emoji_reactions":*}}"#,
            r#"{"reblog":{"quote":{"quoted_status":{"pleroma":{"reactions":*}}}}}"#,
        ] {
            let split = split(&path.replace('*', reactions)).expect("something to take");
            assert_eq!(split.status, path.replace('*', kept));
            assert_eq!(split.viewer, path.replace('*', taken));
        }
        let others = r#"{"reactions":[ {"name":"x"}],"pleroma":{"emoji_reactions":{"me":true}}}"#;
        assert_eq!(without(others.into()), others);
    }

    #[test]
    fn pleromas_folder_and_muted_thread_are_taken() {
        let json = r#"{"pleroma":{"local":true,"thread_muted":true,"bookmark_folder":"f"}}"#;
        assert_eq!(without(json.into()), r#"{"pleroma":{"local":true}}"#);
    }

    #[test]
    fn what_an_account_alone_sees_of_itself_is_taken() {
        let json = r#"{"account":{"acct":"a","follow_requests_count":2,"pleroma":{"email":"a@b.example","tags":[],"is_admin":true,"is_moderator":false,"privileges":["x"],"deactivated":false}}}"#;
        let kept = r#"{"account":{"acct":"a","pleroma":{"tags":[]}}}"#;
        assert_eq!(without(json.into()), kept);
        let json = r#"{"account":{"acct":"a","follow_requests_count":2},"emoji_reactioned":true,"circle_id":"7"}"#;
        assert_eq!(without(json.into()), r#"{"account":{"acct":"a"}}"#);
    }

    #[test]
    fn policies_do_not_reveal_what_the_reader_may_do() {
        let json = r#"{"interaction_policy":{"can_reply":{"always":["me", "public" ],"with_approval":["\u006de"],"note":["me"]},"can_quote":{"automatic_approval":["followers","me"],"manual_approval":[]}}}"#;
        let split = split(json).expect("something to take");
        assert_eq!(
            split.status,
            r#"{"interaction_policy":{"can_reply":{"always":["public"],"with_approval":[],"note":["me"]},"can_quote":{"automatic_approval":["followers"],"manual_approval":[]}}}"#
        );
        assert_eq!(
            split.viewer,
            r#"{"interaction_policy":{"can_reply":{"always":["me"],"with_approval":["\u006de"]},"can_quote":{"automatic_approval":["me"]}}}"#
        );
        let others =
            r#"{"interaction_policy":{"can_reply":{"always":["public", 7],"with_approval":"me"}}}"#;
        assert_eq!(without(others.into()), others);
    }

    #[test]
    fn tweets_of_version_1_1_lose_it_at_every_level() {
        let user = r#"{"id_str":"1","following":true,"notifications":null,"protected":false}"#;
        let user_kept = r#"{"id_str":"1","protected":false}"#;
        let tweet = |user: &str, own: &str| {
            let quoted = format!(r#"{{"id_str":"3","user":{user}{own}}}"#);
            let retweeted =
                format!(r#"{{"id_str":"2","user":{user},"quoted_status":{quoted}{own}}}"#);
            let tweet =
                format!(r#"{{"id_str":"1","user":{user},"retweeted_status":{retweeted}{own}}}"#);
            format!(
                r#"{{"account":{{"twitter":{user}}},"reblog":{{"twitter":{retweeted}}},"twitter":{tweet}}}"#
            )
        };
        let json = tweet(user, r#","favorited":true,"retweeted":false"#);
        assert_eq!(without(json), tweet(user_kept, ""));
        // Elsewhere, members of the same names do not concern the reader.
        for json in [r#"{"favorited":true}"#, r#"{"x":{"retweeted":true}}"#] {
            assert_eq!(without(json.into()), json);
        }
    }

    #[test]
    fn repeated_and_escaped_names_are_taken() {
        let without =
            without(r#"{"favourited":1,"\u0066avourited":2,"a":3,"favourited":4}"#.into());
        assert_eq!(without, r#"{"a":3}"#);
    }

    #[test]
    fn posts_in_unknown_containers_are_recognised_by_their_names() {
        for name in ["status", "reblog", "quote", "quoted_status", "parent"] {
            let nested =
                |members: &str| format!(r#"{{"unknown":{{"{name}":{{"id":"1"{members}}}}}}}"#);
            let json = nested(r#","muted":true,"pinned":true"#);
            assert_eq!(without(json), nested(""), "{name}");
        }
    }

    #[test]
    fn escaped_names_are_recognised_in_nested_values() {
        for (json, kept) in [
            (
                r#"{"account":{"id":"2","acct":"a","\u0072ole":{"id":"3"}}}"#,
                r#"{"account":{"id":"2","acct":"a"}}"#,
            ),
            (
                r#"{"account":{"id":"2","acct":"a","mute\u005Fexpires\u005Fat":null}}"#,
                r#"{"account":{"id":"2","acct":"a"}}"#,
            ),
            (
                r#"{"unknown":{"\u0073tatus":{"id":"1","muted":true}}}"#,
                r#"{"unknown":{"\u0073tatus":{"id":"1"}}}"#,
            ),
            (
                r#"{"unknown":[{"people":[{"id":"2","acct":"a","r\u006fle":{"id":"3"}}]}]}"#,
                r#"{"unknown":[{"people":[{"id":"2","acct":"a"}]}]}"#,
            ),
            (
                r#"{"tags":[{"name":"t","f\u006Fllowing":true}]}"#,
                r#"{"tags":[{"name":"t"}]}"#,
            ),
        ] {
            assert_eq!(without(json.into()), kept, "{json}");
        }
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for json in [
            r#"{ "id" : "1", "poll": {"id":"2"}, "reblog":null, "quote":[{"favourited":true}] }"#,
            r#"[{"favourited":true}]"#,
            "{\"favourited\":tru",
            "",
        ] {
            assert_eq!(without(json.into()), json);
        }
    }

    #[test]
    fn nesting_without_end_breaks_nothing() {
        let depth = 100_000;
        let json = format!(
            "{}null{}",
            r#"{"favourited":true,"reblog":"#.repeat(depth),
            "}".repeat(depth)
        );
        assert!(split(&json).is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_taken(json: String) {
            without(json);
        }
    }
}
