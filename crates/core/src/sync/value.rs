use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ObjectKey, ObjectKind};
use crate::{predicate::Predicate, social::RepliesPolicy};

/// The value of an object of a kind that this version knows. In JSON it is the `value` alone: the key names the kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectValue {
    /// A bookmark or favourite.
    Post(PostValue),
    /// A list.
    List(ListValue),
    /// An account of a list.
    Member(MemberValue),
    /// A read marker.
    Marker(MarkerValue),
    /// A filter.
    Filter(FilterValue),
    /// A note.
    Note(NoteValue),
}

/// The value of a bookmark or favourite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostValue {
    /// The ID by which the server knows the post. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<String>,
    /// Of a bookmark, its own ID on the server: another one if it was removed and added again. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    /// Of a bookmark, the copy of its post: Mastodon's entity. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The value of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListValue {
    /// The title.
    pub title: String,
    /// The replies that it shows.
    #[serde(default)]
    pub replies_policy: RepliesPolicy,
    /// True if the home timeline omits the posts of its accounts.
    #[serde(default)]
    pub exclusive: bool,
    /// The predicate that selects its posts.
    #[serde(default)]
    pub predicate: Option<Predicate>,
    /// True if the owner is notified of its posts.
    #[serde(default)]
    pub notify: bool,
}

/// The value of an account in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberValue {
    /// The ID by which the server knows the account. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// The value of a read marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkerValue {
    /// The place up to which the timeline was read: a decimal number.
    pub last_read: String,
}

/// The value of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterValue {
    /// The title.
    pub title: String,
    /// The contexts in which it applies.
    pub contexts: Vec<String>,
    /// Its effect on posts.
    pub action: String,
    /// The time at which it ends, in Unix ms.
    pub expires_at: Option<i64>,
    /// Its keywords.
    pub keywords: Vec<KeywordValue>,
    /// The URIs of posts that it selects.
    pub posts: Vec<String>,
}

/// A keyword of a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeywordValue {
    /// The keyword.
    pub keyword: String,
    /// True if it is compared with whole words.
    pub whole_word: bool,
}

/// The value of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteValue {
    /// The text: 1 to [`MAX_NOTE_CHARS`] characters.
    pub text: String,
}

/// The reason why a value is not one of its key's kind.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// This version does not know the kind.
    #[error("this server has no objects of the kind of {0}")]
    UnknownKind(ObjectKey),
    /// The JSON is not a value of the kind.
    #[error("the value of {key} is not valid: {source}")]
    Malformed {
        /// The key.
        key: ObjectKey,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The marker's place is not a number.
    #[error("the value of {0} is not valid: last_read must be decimal digits")]
    Place(ObjectKey),
    /// The note is empty or too long.
    #[error(
        "the value of {0} is not valid: a note has 1 to {MAX_NOTE_CHARS} characters, and no U+0000"
    )]
    NoteLength(ObjectKey),
}

impl ObjectValue {
    /// Reads the value of an object.
    ///
    /// # Errors
    /// [`ValueError`] if the JSON is not a value of the key's kind.
    pub fn read(key: &ObjectKey, json: Value) -> Result<Self, ValueError> {
        let kind = key.kind();
        let kind = kind.ok_or_else(|| ValueError::UnknownKind(key.clone()))?;
        let value = match kind {
            ObjectKind::Bookmark | ObjectKind::Favourite => {
                serde_json::from_value(json).map(Self::Post)
            }
            ObjectKind::List => serde_json::from_value(json).map(Self::List),
            ObjectKind::ListMember => serde_json::from_value(json).map(Self::Member),
            ObjectKind::Marker => serde_json::from_value(json).map(Self::Marker),
            ObjectKind::Filter => serde_json::from_value(json).map(Self::Filter),
            ObjectKind::Note => serde_json::from_value(json).map(Self::Note),
        };
        let value = value.map_err(|source| ValueError::Malformed {
            key: key.clone(),
            source,
        })?;
        match &value {
            Self::Marker(marker) if marker.place().is_none() => Err(ValueError::Place(key.clone())),
            Self::Note(note) if !note.is_valid() => Err(ValueError::NoteLength(key.clone())),
            _ => Ok(value),
        }
    }

    /// The JSON of the value.
    pub fn json(&self) -> Value {
        let json = match self {
            Self::Post(value) => serde_json::to_value(value),
            Self::List(value) => serde_json::to_value(value),
            Self::Member(value) => serde_json::to_value(value),
            Self::Marker(value) => serde_json::to_value(value),
            Self::Filter(value) => serde_json::to_value(value),
            Self::Note(value) => serde_json::to_value(value),
        };
        // Their keys are texts, so nothing can fail.
        json.unwrap_or_default()
    }
}

impl MarkerValue {
    /// The value with a place.
    pub fn at(place: u64) -> Self {
        Self {
            last_read: place.to_string(),
        }
    }

    /// The place; `None` if the text is not a number below 2^63.
    pub fn place(&self) -> Option<u64> {
        let is_digits = self.last_read.bytes().all(|b| b.is_ascii_digit());
        let place: Option<u64> = self.last_read.parse().ok().filter(|_| is_digits);
        place.filter(|place| i64::try_from(*place).is_ok())
    }
}

impl NoteValue {
    fn is_valid(&self) -> bool {
        let length = self.text.chars().take(MAX_NOTE_CHARS + 1).count();
        (1..=MAX_NOTE_CHARS).contains(&length) && !self.text.contains('\0')
    }
}

/// The largest length of a note, in Unicode scalar values.
pub const MAX_NOTE_CHARS: usize = 10_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_of_the_kind_of_their_key() {
        let read =
            |key: &str, json| ObjectValue::read(&ObjectKey::parse(key).expect("a key"), json);
        let marker = read("marker:home", json!({"last_read": "12"})).expect("a marker");
        assert_eq!(marker, ObjectValue::Marker(MarkerValue::at(12)));
        assert_eq!(marker.json(), json!({"last_read": "12"}));
        assert!(read("marker:home", json!({"last_read": "9223372036854775808"})).is_err());
        assert!(read("marker:home", json!({"text": "a"})).is_err());
        assert!(read("note:https://a.example/1", json!({"text": ""})).is_err());
        let longest = json!({"text": "字".repeat(MAX_NOTE_CHARS)});
        assert!(read("note:https://a.example/1", longest).is_ok());
        let list = json!({"title": "cats", "predicate": null, "notify": false, "later": 1});
        let list = read(&format!("list:{:032x}", 1), list).expect("a list");
        assert_eq!(list.json()["replies_policy"], "list");
        assert!(read("draft:1", json!({})).is_err());
        let bookmark = read("bookmark:https://a.example/1", json!({})).expect("a bookmark");
        assert_eq!(bookmark.json(), json!({}));
    }
}
