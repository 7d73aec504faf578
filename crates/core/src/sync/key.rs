use std::fmt;

use serde::{Deserialize, Serialize};

use super::ObjectKind;
use crate::social::MarkedTimeline;

/// The key of an object: the name of its kind, a colon, and what names it among those of the kind. It never changes. The
/// device that creates the object makes it, so a repeated creation is the same object.
///
/// Keys of kinds that this version does not know are valid: a replica stores them as they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectKey(String);

/// The reason why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

impl ObjectKey {
    /// Parses a key.
    ///
    /// # Errors
    /// [`KeyError`] if the text is not `KIND:NAME`, is too long, or has a name that its kind does not allow.
    pub fn parse(text: impl Into<String>) -> Result<Self, KeyError> {
        let text = text.into();
        let refused = |reason: String| Err(KeyError(reason));
        if text.len() > MAX_KEY_BYTES {
            return refused(format!("a key has at most {MAX_KEY_BYTES} bytes"));
        }
        if text.chars().any(char::is_control) {
            return refused("a key has no control characters".to_owned());
        }
        let parts = text.split_once(':').filter(|(kind, name)| {
            let is_kind = kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
            !kind.is_empty() && is_kind && !name.is_empty()
        });
        let Some((kind, name)) = parts else {
            return refused(format!(
                "{text:?} is not a key; expected KIND:NAME, such as marker:home"
            ));
        };
        let expected = kind.parse().ok().and_then(|kind| refusal(kind, name));
        match expected {
            Some(expected) => refused(format!("{text:?} is not a key: {expected}")),
            None => Ok(Self(text)),
        }
    }

    /// The key of an object with this name: for a bookmark, favourite or note the post's URI, for a follow, block, mute or note
    /// of an account its `acct` with a host.
    ///
    /// # Errors
    /// [`KeyError`] if the kind does not allow the name, or it is empty, too long, or has a control character.
    pub fn named(kind: ObjectKind, name: &str) -> Result<Self, KeyError> {
        Self::parse(format!("{}:{name}", kind.name()))
    }

    /// The key of a list, filter or draft with 128 random bits.
    pub fn random(kind: ObjectKind, bits: u128) -> Self {
        Self(format!("{}:{bits:032x}", kind.name()))
    }

    /// The key of a timeline's read marker.
    pub fn marker(timeline: MarkedTimeline) -> Self {
        Self(format!("{}:{}", ObjectKind::Marker.name(), timeline.name()))
    }

    /// The key of the account's own profile.
    pub fn own_profile() -> Self {
        Self(format!("{}:{OWN}", ObjectKind::Profile.name()))
    }

    /// The key of an account in a list. `acct` has a host.
    ///
    /// # Errors
    /// [`KeyError`] if `list` is not the key of a list, or `acct` has no host.
    pub fn member(list: &Self, acct: &str) -> Result<Self, KeyError> {
        Self::named(ObjectKind::ListMember, &format!("{}:{acct}", list.name()))
    }

    /// The kind; `None` if this version does not know it.
    pub fn kind(&self) -> Option<ObjectKind> {
        self.0.split_once(':')?.0.parse().ok()
    }

    /// The key without its kind.
    pub fn name(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, name)| name)
    }

    /// The key of the list and the `acct`, for the key of an account in a list.
    pub fn list_and_acct(&self) -> Option<(Self, &str)> {
        if self.kind() != Some(ObjectKind::ListMember) {
            return None;
        }
        let (list, acct) = self.name().split_once(':')?;
        let list = Self(format!("{}:{list}", ObjectKind::List.name()));
        Some((list, acct))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The form of names of a kind, if this one is not valid.
fn refusal(kind: ObjectKind, name: &str) -> Option<&'static str> {
    let (is_valid, expected) = match kind {
        ObjectKind::Bookmark | ObjectKind::Favourite | ObjectKind::Note => return None,
        ObjectKind::List | ObjectKind::Filter | ObjectKind::Draft => (
            is_hex(name, 32),
            "expected 32 hexadecimal digits in lower case",
        ),
        ObjectKind::Marker => (
            name.parse::<MarkedTimeline>().is_ok(),
            "expected home or notifications",
        ),
        ObjectKind::ListMember => {
            let parts = name.split_once(':');
            (
                parts.is_some_and(|(list, acct)| is_hex(list, 32) && is_acct(acct)),
                "expected a list's 32 digits, a colon, and USER@HOST",
            )
        }
        ObjectKind::Profile => (name == OWN, "expected self"),
        ObjectKind::Follow | ObjectKind::Block | ObjectKind::Mute | ObjectKind::AccountNote => {
            (is_acct(name), "expected USER@HOST")
        }
    };
    (!is_valid).then_some(expected)
}

/// True if a text has exactly this number of hexadecimal digits, in lower case, and nothing else.
pub(super) fn is_hex(text: &str, digits: usize) -> bool {
    let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == digits && text.bytes().all(is_digit)
}

fn is_acct(acct: &str) -> bool {
    let parts = acct.split_once('@');
    parts.is_some_and(|(user, host)| !user.is_empty() && !host.is_empty())
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ObjectKey> for String {
    fn from(key: ObjectKey) -> Self {
        key.0
    }
}

impl TryFrom<String> for ObjectKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(text)
    }
}

/// The host of the server's accounts in keys: that of its address may change.
pub const LOCAL_HOST: &str = "local";
/// The host of accounts in keys whose names are unknown, which have their IDs as names.
pub const UNNAMED_HOST: &str = "unnamed";
/// The beginning of the name of a post without a URI in keys and values; the ID follows.
pub const POST_ID_PREFIX: &str = "id:";
/// The name of the one object of its kind.
const OWN: &str = "self";
/// The largest length of a key: PostgreSQL has no longer ones in an index.
const MAX_KEY_BYTES: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_kind_and_a_name_of_it() {
        let list = ObjectKey::random(ObjectKind::List, 12);
        let member = ObjectKey::member(&list, "ann@a.example").expect("a key");
        let same = ObjectKey::parse(member.as_str()).expect("a key");
        assert_eq!(same.list_and_acct(), Some((list.clone(), "ann@a.example")));
        assert_eq!(list.list_and_acct(), None);
        let bookmark = ObjectKey::named(ObjectKind::Bookmark, "https://a.example/1");
        let bookmark = bookmark.expect("a key");
        assert_eq!(bookmark.kind(), Some(ObjectKind::Bookmark));
        assert_eq!(bookmark.name(), "https://a.example/1");
        let later = ObjectKey::parse("later:1").expect("a key of a later version");
        let note = ObjectKey::named(ObjectKind::AccountNote, "ann@local").expect("a key");
        assert_eq!(note.as_str(), "account-note:ann@local");
        assert_eq!(
            (note.kind(), note.name()),
            (Some(ObjectKind::AccountNote), "ann@local")
        );
        assert_eq!(later.kind(), None);
        let own = ObjectKey::parse("profile:self").expect("a key");
        assert_eq!(own, ObjectKey::own_profile());
        let long = format!("note:{}", "a".repeat(2_000));
        for wrong in [
            "",
            "marker",
            "marker:",
            ":home",
            "Marker:home",
            "marker:public",
            "list:12",
            "list:0000000000000000000000000000000G",
            "draft:1",
            "profile:1",
            "list-member:00000000000000000000000000000001:ann",
            "note:a\0",
            "follow:ann",
            "block:@a.example",
            "mute:ann@",
            &long,
        ] {
            assert!(ObjectKey::parse(wrong).is_err(), "{wrong}");
        }
    }
}
