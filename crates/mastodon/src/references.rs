//! The posts and accounts to which a status refers.
//!
//! Known members are recognised by their position ([`Part`]). Members of unknown servers are
//! recognised by their names (`…status_id`, `…account_ids`) and by the form of their objects: an ID
//! and an `acct` make an account.

use driftline_core::{
    api::Api,
    post::References,
    upstream_id::{MAX_ID_BYTES, UpstreamId},
};
use serde_json::value::RawValue;

use crate::{
    raw_object::{RawObject, id},
    template::Referent,
    viewer::{Member, Part},
};

/// The references of a status besides itself and its author, including those of quoted and boosted
/// posts. They are all the IDs for which [`crate::Copier`] leaves room. Both omit the post of X or
/// Twitter from which a status was made.
pub fn references(status: &RawObject<'_>, api: Api) -> References {
    let mut found = Found {
        ids: References::default(),
        api,
    };
    members(&mut found, Some(Part::Status), status, MAX_DEPTH);
    let mut found = found.ids;
    for ids in [&mut found.posts, &mut found.accounts] {
        ids.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        ids.dedup();
    }
    found
}

struct Found {
    ids: References,
    api: Api,
}

/// The kind of entity to which the ID in a member called `name` refers. Members with lists of IDs
/// count too.
pub(crate) fn referent(name: &str) -> Option<Referent> {
    let name = name.strip_suffix('s').unwrap_or(name);
    let stem = name.strip_suffix("_id")?;
    let last = stem.rsplit('_').next().unwrap_or(stem);
    match (stem, last) {
        (_, "account" | "profile" | "user" | "author") => Some(Referent::Account),
        ("in_reply_to" | "quote" | "quoted" | "reblog" | "reblog_of" | "parent" | "root", _)
        | (_, "status" | "post" | "note")
        | ("status_reference", _) => Some(Referent::Post),
        _ => None,
    }
}

/// The meaning of a member, by the object that contains it, or by its name alone.
pub(crate) fn member(part: Option<Part>, name: &str) -> Member {
    match (part.map(|part| part.member(name)), name) {
        (Some(known @ (Member::OfViewer | Member::Inner(_))), _) => known,
        (_, "account" | "author" | "moved" | "user") => Member::Inner(Part::Account),
        (_, "status" | "reblog" | "quote" | "quoted_status" | "parent") => {
            Member::Inner(Part::Status)
        }
        _ => Member::OfPost,
    }
}

/// The kind of an object, by its position if a post or an account belongs there, otherwise by its
/// members.
pub(crate) fn part_of(position: Option<Part>, object: &RawObject<'_>) -> Option<Part> {
    match position {
        Some(Part::Status | Part::Account) => position,
        _ => form(object).or(position),
    }
}

fn form(object: &RawObject<'_>) -> Option<Part> {
    let has = |name| object.get(name).is_some();
    if !has("id") {
        return None;
    }
    if has("account") && has("visibility") {
        return Some(Part::Status);
    }
    (has("acct") || has("username")).then_some(Part::Account)
}

/// True if the JSON may refer to a post or an account, by the ends of keys.
pub(crate) fn may_refer(json: &str) -> bool {
    let has = |mark| json.contains(mark);
    // The letters of `ids`, as escapes.
    let is_escaped = || has("\\u0069") || has("\\u0064") || has("\\u0073");
    has("id\"") || has("ids\"") || has("\\u00") && is_escaped()
}

/// True if an account, the author, refers to no other account. It is the longest part of most
/// posts.
fn names_itself_only(json: &str) -> bool {
    let Some((before, after)) = json.split_once("\"id\"") else {
        return !may_refer(json);
    };
    before.rfind('{') == Some(0) && !may_refer(before) && !may_refer(after)
}

/// True if media refer only to themselves. Most do, and each has an ID.
fn names_media_only(json: &str) -> bool {
    const MARKS: [&str; 9] = [
        "_id\"",
        "_ids\"",
        "\\u00",
        "acct\"",
        "username\"",
        "account\"",
        "author\"",
        "moved\"",
        "user\"",
    ];
    !MARKS.iter().any(|mark| json.contains(mark)) && !may_nest_status(json)
}

/// True if the JSON may have a member that is a post by its name, whatever contains it ([`member`]).
pub(crate) fn may_nest_status(json: &str) -> bool {
    // The ends of these names, among them that of `quoted_status`.
    const MARKS: [&str; 4] = ["status\"", "reblog\"", "quote\"", "parent\""];
    MARKS.iter().any(|mark| json.contains(mark))
}

/// The deepest nesting of objects and lists that is read. A hostile answer could nest without end.
pub(crate) const MAX_DEPTH: usize = 32;

fn members(found: &mut Found, part: Option<Part>, object: &RawObject<'_>, depth: usize) {
    for (name, value) in object.members() {
        let json = value.get();
        let inner = match member(part, name) {
            Member::OfViewer => continue,
            Member::Inner(inner) => Some(inner),
            Member::OfPost => None,
        };
        // Most nested values refer to nothing, and are not parsed.
        let is_plain = match name {
            "x" | "twitter" => found.api != Api::Mastodon,
            "media_attachments" => names_media_only(json),
            "account" if depth == MAX_DEPTH => names_itself_only(json),
            _ => false,
        };
        if !is_plain {
            value_of(found, inner, (name, value), depth);
        }
    }
}

fn value_of(found: &mut Found, part: Option<Part>, (name, value): (&str, &RawValue), depth: usize) {
    let json = value.get();
    let is_nested = json.starts_with(['{', '[']);
    if !is_nested {
        add(found, referent(name), value);
    } else if depth == 0 {
    } else if json.starts_with('[') {
        let is_of_ids = referent(name).is_some();
        if is_of_ids || may_refer(json) {
            let items: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
            let part = part.and_then(Part::item);
            for item in items {
                value_of(found, part, (name, item), depth - 1);
            }
        }
    } else if may_refer(json)
        && let Some(object) = RawObject::from_value(value)
    {
        let part = part_of(part, &object);
        if let (Some(of), Some(id)) = (part.and_then(of_part), object.get("id")) {
            let is_author = name == "account" && depth == MAX_DEPTH;
            add(found, Some(of).filter(|_| !is_author), id);
        }
        members(found, part, &object, depth - 1);
    }
}

/// The kind of entity to which the `id` of an object refers.
pub(crate) fn of_part(part: Part) -> Option<Referent> {
    match part {
        Part::Status => Some(Referent::Post),
        Part::Account => Some(Referent::Account),
        _ => None,
    }
}

/// True if a text is an address and so not an ID.
pub(crate) fn is_address(text: &str) -> bool {
    text.contains('/')
}

/// True if a text may be an ID at an upstream. Indexes cannot contain longer ones.
pub(crate) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_ID_BYTES && !is_address(text)
}

fn add(found: &mut Found, referent: Option<Referent>, value: &RawValue) {
    let ids = match referent {
        Some(Referent::Post) => &mut found.ids.posts,
        Some(Referent::Account) => &mut found.ids.accounts,
        None => return,
    };
    ids.extend(
        id(value)
            .filter(|id| is_id(id))
            .map(|id| UpstreamId::new(id.into_owned())),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str) -> (Vec<String>, Vec<String>) {
        let found = references(&RawObject::parse(json).expect("an object"), Api::Mastodon);
        let texts = |ids: Vec<UpstreamId>| ids.iter().map(ToString::to_string).collect();
        (texts(found.posts), texts(found.accounts))
    }

    #[test]
    fn what_a_status_points_to_is_found_at_every_depth() {
        let json = r#"{"id":"own","account":{"id":"author","acct":"a","moved":{"id":"a1","acct":"b"}},
            "in_reply_to_id":"p1","in_reply_to_account_id":2,"quote_id":"p2","poll":{"id":"no"},
            "mentions":[{"id":"a3","username":"c","acct":"c"}],"media_attachments":[{"id":"no"}],
            "emoji_reactions":[{"name":"x","account_ids":["a4","a5"]}],"list_id":"no",
            "pleroma":{"conversation_id":7,"quote_id":"p2","quote":{"id":"p3","account":{"id":"a6"}}},
            "unknown":{"deep":[{"author_id":"a7"},[{"id":"p4","visibility":"public","account":{"id":"a8"}}]]},
            "quote":{"state":"accepted","quoted_status":{"id":"p5","quote":{"quoted_status_id":"p6"}}},
            "reblog":{"id":"p7","account":{"id":"a9"},"in_reply_to_id":null}}"#;
        let (posts, accounts) = found(json);
        assert_eq!(posts, ["p1", "p2", "p3", "p4", "p5", "p6", "p7"]);
        assert_eq!(
            accounts,
            ["2", "a1", "a3", "a4", "a5", "a6", "a7", "a8", "a9"]
        );
    }

    #[test]
    fn names_are_found_wherever_the_copier_leaves_room() {
        let json = r#"{"id":"own","account":{"author_id":"a0","acct":"a"},
            "media_attachments":[{"id":"no","account_id":"a1"},{"id":"no","user":{"id":"a2"}}],
            "emojis":[{"profile_id":"a3"}],"tags":[{"status_ids":["p1"]}],"roles":[{"user_id":"a4"}],
            "x":{"author_i\u0064":"a5"},"unknown":{"status_i\u0064\u0073":["p2"]}}"#;
        let (posts, accounts) = found(json);
        assert_eq!(posts, ["p1", "p2"]);
        assert_eq!(accounts, ["a0", "a1", "a2", "a3", "a4", "a5"]);
        let plain = r#"[{"id":"1","type":"image","description":"a \"b\"\n"}]"#;
        assert!(names_media_only(plain));
        assert!(names_itself_only(
            r#"{"id":"1","note":"a \u003cb","emojis":[]}"#
        ));
        assert!(!names_itself_only(r#"{"moved":{"id":"1"}}"#));
    }

    #[test]
    fn nesting_without_end_breaks_nothing() {
        let depth = 10_000;
        let json = format!(
            "{}null{}",
            r#"{"id":"1","reblog":"#.repeat(depth),
            "}".repeat(depth)
        );
        assert_eq!(found(&json).0, ["1"]);
    }
}
