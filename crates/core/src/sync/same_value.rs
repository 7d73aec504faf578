use serde_json::Value;

use super::{ObjectKind, kind::COPY};

/// True if two versions of an object of `kind` are the same; `None` is a deleted object. Members that only the server
/// gives are not compared.
pub fn same_value(kind: Option<ObjectKind>, one: Option<&Value>, other: Option<&Value>) -> bool {
    same_without(server_members(kind), one, other)
}

/// True if two values of an object with the same USN belong to one version. Members that may change without a USN are not
/// compared.
pub(super) fn same_version(
    kind: Option<ObjectKind>,
    one: Option<&Value>,
    other: Option<&Value>,
) -> bool {
    same_without(unversioned_members(kind), one, other)
}

/// True if the server stores the value `sent` of an object as `stored`. Of a filter it leaves out posts that the account cannot
/// see, and keeps keywords that it has in their order.
pub(super) fn is_stored_as(
    kind: Option<ObjectKind>,
    sent: Option<&Value>,
    stored: Option<&Value>,
) -> bool {
    if kind != Some(ObjectKind::Filter) {
        return same_value(kind, sent, stored);
    }
    let keywords = |value| {
        let mut texts: Vec<String> = items(value, "keywords").map(Value::to_string).collect();
        texts.sort_unstable();
        texts
    };
    let is_sent = |post: &Value| items(sent, "posts").any(|sent| sent == post);
    same_without(&["posts", "keywords"], sent, stored)
        && keywords(sent) == keywords(stored)
        && items(stored, "posts").all(is_sent)
}

/// The items of a list in a value.
fn items<'v>(value: Option<&'v Value>, name: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    let list = value.and_then(|value| value.get(name)?.as_array());
    list.into_iter().flatten()
}

fn same_without(ignored: &[&str], one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let is_compared = |name: &str| !ignored.contains(&name);
            let members = |map: &serde_json::Map<String, Value>| {
                map.keys().filter(|name| is_compared(name)).count()
            };
            let mut compared = one.iter().filter(|(name, _)| is_compared(name));
            members(one) == members(other)
                && compared.all(|(name, value)| other.get(name) == Some(value))
        }
        (one, other) => one == other,
    }
}

/// The value without the members that only the server gives, as a device sends it.
pub(super) fn without_server_members(kind: Option<ObjectKind>, value: Value) -> Value {
    without(server_members(kind), value)
}

/// The value without the members that may change without a USN.
pub(super) fn versioned(kind: Option<ObjectKind>, value: Value) -> Value {
    without(unversioned_members(kind), value)
}

fn without(names: &[&str], mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        for name in names {
            members.remove(*name);
        }
    }
    value
}

/// The value without the copy of a post. The copy is kept only where later versions of the object replace it.
pub(super) fn without_copy(kind: Option<ObjectKind>, mut value: Value) -> Value {
    if let (Some(ObjectKind::Bookmark), Value::Object(members)) = (kind, &mut value) {
        members.remove(COPY);
    }
    value
}

/// The members of a kind's values that only the server gives.
fn server_members(kind: Option<ObjectKind>) -> &'static [&'static str] {
    kind.map(ObjectKind::server_members).unwrap_or_default()
}

/// The members of a kind's values that may change without a USN.
fn unversioned_members(kind: Option<ObjectKind>) -> &'static [&'static str] {
    match kind {
        // A post that the server does not have any more has no name.
        Some(ObjectKind::Filter) => &["posts"],
        kind => server_members(kind),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_of_the_server_are_not_compared() {
        let same = |kind, one: Value, other: Value| same_value(kind, Some(&one), Some(&other));
        let bookmark = Some(ObjectKind::Bookmark);
        assert!(same(bookmark, json!({}), json!({"post": "1"})));
        assert!(same(bookmark, json!({"post": "2"}), json!({"post": "1"})));
        assert!(!same(bookmark, json!({"tag": 1}), json!({"post": "1"})));
        assert!(!same(bookmark, json!({"post": "1"}), json!({"tag": 1})));
        assert!(!same(bookmark, json!({"tag": 2}), json!({"tag": 1})));
        let copy = json!({"post": "1", "added": "7", "status": {"content": "a"}});
        assert!(same(bookmark, json!({}), copy.clone()));
        assert!(same(bookmark, copy.clone(), json!({"status": {}})));
        assert!(!same(Some(ObjectKind::Favourite), json!({}), copy.clone()));
        assert_eq!(without_server_members(bookmark, copy.clone()), json!({}));
        let bare = json!({"post": "1", "added": "7"});
        assert_eq!(without_copy(bookmark, copy.clone()), bare);
        assert_eq!(without_copy(None, copy.clone()), copy);
        let member = Some(ObjectKind::ListMember);
        assert!(same(member, json!({"account": "1"}), json!({})));
        assert!(!same(member, json!({"post": "1"}), json!({})));
        let follow = Some(ObjectKind::Follow);
        let requested = json!({"reblogs": true, "account": "1", "requested": true});
        assert!(same(follow, requested.clone(), json!({"reblogs": true})));
        assert!(!same(follow, requested, json!({"reblogs": false})));
        assert!(!same(None, json!({"post": "1"}), json!({})));
        assert!(!same_value(bookmark, Some(&json!({})), None));
        assert!(same_value(bookmark, None, None));
        let sent = without_server_members(bookmark, json!({"post": "1", "tag": 1}));
        assert_eq!(sent, json!({"tag": 1}));
        let filter = Some(ObjectKind::Filter);
        let (one, other) = (json!({"posts": ["a"]}), json!({"posts": []}));
        assert!(!same(filter, one.clone(), other.clone()));
        assert!(same_version(filter, Some(&one), Some(&other)));
        assert!(!same_version(filter, Some(&one), None));
        assert_eq!(without_server_members(filter, one.clone()), one);
        assert_eq!(versioned(filter, one), json!({}));
    }

    #[test]
    fn a_filter_is_stored_without_posts_that_are_not_seen() {
        let filter = |posts: &[&str], keywords: &[&str], title: &str| json!({"posts": posts, "keywords": keywords, "title": title});
        let stored = |sent: &Value, stored: &Value| {
            is_stored_as(Some(ObjectKind::Filter), Some(sent), Some(stored))
        };
        let sent = filter(&["a", "b"], &["x", "y"], "t");
        assert!(stored(&sent, &sent));
        assert!(stored(&sent, &filter(&["b"], &["y", "x"], "t")));
        assert!(!stored(&sent, &filter(&["a", "b", "c"], &["x", "y"], "t")));
        assert!(!stored(&sent, &filter(&["a", "b"], &["x"], "t")));
        assert!(!stored(&sent, &filter(&["a", "b"], &["x", "x"], "t")));
        assert!(!stored(&sent, &filter(&["a", "b"], &["x", "y"], "u")));
        assert!(!is_stored_as(Some(ObjectKind::Filter), Some(&sent), None));
        assert!(is_stored_as(Some(ObjectKind::Filter), None, None));
        let list = Some(ObjectKind::List);
        let (one, other) = (json!({"posts": ["a"]}), json!({"posts": []}));
        assert!(!is_stored_as(list, Some(&one), Some(&other)));
    }
}
