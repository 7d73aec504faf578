use serde_json::Value;

use super::ObjectKind;

/// True if two versions of an object of `kind` are the same; `None` is a deleted object. Members that only the server
/// gives are not compared.
pub fn same_value(kind: Option<ObjectKind>, one: Option<&Value>, other: Option<&Value>) -> bool {
    let ignored = server_members(kind);
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
pub(super) fn without_server_members(kind: Option<ObjectKind>, mut value: Value) -> Value {
    if let Value::Object(members) = &mut value {
        for name in server_members(kind) {
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
    match kind {
        Some(ObjectKind::Bookmark) => &["post", "added", COPY],
        Some(ObjectKind::Favourite) => &["post"],
        Some(ObjectKind::ListMember) => &["account"],
        // The names of a filter's posts depend on what the account may see.
        Some(ObjectKind::Filter) => &["posts"],
        Some(ObjectKind::List | ObjectKind::Marker | ObjectKind::Note) | None => &[],
    }
}

/// The member of a bookmark's value that has the copy of its post.
const COPY: &str = "status";

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
        assert!(!same(None, json!({"post": "1"}), json!({})));
        assert!(!same_value(bookmark, Some(&json!({})), None));
        assert!(same_value(bookmark, None, None));
        let sent = without_server_members(bookmark, json!({"post": "1", "tag": 1}));
        assert_eq!(sent, json!({"tag": 1}));
    }
}
