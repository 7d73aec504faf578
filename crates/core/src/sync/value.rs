use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DraftValue, ObjectKey, ObjectKind, ProfileValue};
use crate::social::{FilterKeyword, FilterSettings, ListSettings};

/// The value of an object of a kind that this version knows. Messages have the value alone ([`ObjectValue::json`]): the key
/// names the kind.
///
/// Stores keep digests of the JSON: a change of what [`ObjectValue::json`] writes for a stored object raises [`VALUE_FORM`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObjectValue {
    /// A bookmark or favourite.
    #[serde(alias = "bookmark", alias = "favourite")]
    Post(PostValue),
    /// A list.
    List(ListSettings),
    /// An account of a list, or a block.
    #[serde(alias = "list-member", alias = "block")]
    Account(AccountValue),
    /// A read marker.
    Marker(MarkerValue),
    /// A filter.
    Filter(FilterValue),
    /// A note on a post or an account.
    #[serde(alias = "account-note")]
    Note(NoteValue),
    /// A draft.
    Draft(DraftValue),
    /// The account's own profile.
    Profile(ProfileValue),
    /// A follow.
    Follow(FollowValue),
    /// A mute.
    Mute(MuteValue),
}

/// The value of a bookmark or favourite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostValue {
    /// The ID by which the server knows the post. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<String>,
    /// The ID of the bookmark itself on the server: another one if it was removed and added again. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    /// The copy of a bookmark's post: Mastodon's entity. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Value>,
}

/// The value of an account in a list, and of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountValue {
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
    /// Its settings, which are members of the value itself.
    #[serde(flatten)]
    pub settings: FilterSettings,
    /// Its keywords.
    pub keywords: Vec<FilterKeyword>,
    /// The URIs of posts that it selects.
    pub posts: Vec<String>,
}

/// The value of a note on a post or an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteValue {
    /// The text: 1 to [`MAX_NOTE_CHARS`] characters; on an account to [`MAX_ACCOUNT_NOTE_CHARS`].
    pub text: String,
    /// The ID by which the server knows the account. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// The value of a follow. Missing members are as in a new follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowValue {
    /// True if boosts are shown.
    #[serde(default = "yes")]
    pub reblogs: bool,
    /// True if each post is notified.
    #[serde(default)]
    pub notify: bool,
    /// True until the followed account accepts the follow. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<bool>,
    /// The ID by which the server knows the account. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// The value of a mute. Missing members are as in a new mute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MuteValue {
    /// True if notifications by the account are muted, too.
    #[serde(default = "yes")]
    pub notifications: bool,
    /// The time at which it ends, in Unix ms.
    #[serde(default)]
    pub expires_at: Option<i64>,
    /// The ID by which the server knows the account. Devices omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

fn yes() -> bool {
    true
}

/// The reason why JSON is not a value of its key's kind.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(String);

impl ObjectValue {
    /// Reads the value of an object, as the server stores it: a filter has each context once and in order, and a profile no
    /// empty fields.
    ///
    /// # Errors
    /// [`ValueError`] if the JSON is not a value of the key's kind.
    pub fn read(key: &ObjectKey, json: Value) -> Result<Self, ValueError> {
        let Some(kind) = key.kind() else {
            return Err(ValueError(format!(
                "this server has no objects of the kind of {key}"
            )));
        };
        let invalid =
            |reason: String| ValueError(format!("the value of {key} is not valid: {reason}"));
        let of_kind = Value::Object([(kind.name().to_owned(), json)].into_iter().collect());
        let value: Result<Self, _> = serde_json::from_value(of_kind);
        let mut value = value.map_err(|error| invalid(error.to_string()))?;
        let checked = match &mut value {
            Self::Marker(marker) => match marker.place() {
                Some(_) => Ok(()),
                None => Err("last_read must be decimal digits".to_owned()),
            },
            Self::Note(note) if kind == ObjectKind::Note => {
                note.account = None;
                check_text("a note", &note.text, MAX_NOTE_CHARS)
            }
            Self::Note(note) => {
                check_text("a note on an account", &note.text, MAX_ACCOUNT_NOTE_CHARS)
            }
            Self::Filter(filter) => filter.check(),
            Self::Draft(draft) => draft.check(),
            Self::Profile(profile) => profile.check(),
            Self::Mute(mute) => check_end(mute.expires_at),
            _ => Ok(()),
        };
        checked.map(|()| value).map_err(invalid)
    }

    /// The JSON of the value.
    pub fn json(&self) -> Value {
        match serde_json::to_value(self) {
            Ok(Value::Object(of_kind)) => of_kind.into_values().next().unwrap_or_default(),
            // Their keys are texts, so nothing can fail.
            _ => Value::Null,
        }
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

impl FilterValue {
    /// Brings the contexts into their order, and checks the limits.
    fn check(&mut self) -> Result<(), String> {
        let settings = self.settings.clone().checked();
        self.settings = settings.map_err(|error| error.to_string())?;
        for keyword in &self.keywords {
            keyword.check().map_err(|error| error.to_string())?;
        }
        check_end(self.settings.expires_at_ms)
    }
}

fn check_end(expires_at: Option<i64>) -> Result<(), String> {
    match expires_at {
        Some(end) if !(0..MAX_TIME_MS).contains(&end) => {
            Err("expires_at must be a time in Unix ms below 2^47".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks the text of `note`, such as a note on an account.
fn check_text(note: &str, text: &str, max_chars: usize) -> Result<(), String> {
    let length = text.chars().take(max_chars + 1).count();
    match (1..=max_chars).contains(&length) && !text.contains('\0') {
        true => Ok(()),
        false => Err(format!(
            "{note} has 1 to {max_chars} characters, and no U+0000"
        )),
    }
}

/// The number of the form that the JSON of values has. Digests of values in another form are computed again.
pub const VALUE_FORM: i64 = 1;
/// The largest length of a note, in Unicode scalar values.
pub const MAX_NOTE_CHARS: usize = 10_000;
/// The end of the times that every program can show.
const MAX_TIME_MS: i64 = 1 << 47;

/// The largest length of a note on an account, in Unicode scalar values, as in Mastodon.
pub const MAX_ACCOUNT_NOTE_CHARS: usize = 2_000;

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
        assert!(read("later:1", json!({})).is_err());
        let bookmark = read("bookmark:https://a.example/1", json!({})).expect("a bookmark");
        assert_eq!(bookmark.json(), json!({}));
        let follow = read("follow:ann@local", json!({})).expect("a follow");
        assert_eq!(follow.json(), json!({"reblogs": true, "notify": false}));
        let mute = read("mute:ann@local", json!({"expires_at": 7})).expect("a mute");
        assert_eq!(mute.json(), json!({"notifications": true, "expires_at": 7}));
        assert!(read("mute:ann@local", json!({"expires_at": "7"})).is_err());
        let block = read("block:ann@local", json!({"account": "1"})).expect("a block");
        assert_eq!(block.json(), json!({"account": "1"}));
        let note = |text: String| read("account-note:ann@local", json!({ "text": text }));
        assert!(note("字".repeat(MAX_ACCOUNT_NOTE_CHARS)).is_ok());
        assert!(note("a".repeat(MAX_ACCOUNT_NOTE_CHARS + 1)).is_err());
        assert!(note("a\0".to_owned()).is_err());
    }

    #[test]
    fn limits_are_those_of_the_kind() {
        let check = |key: &str, json: &Value, member: &str, good: Value, bad: Value| {
            for (value, is_valid) in [(good, true), (bad, false)] {
                let mut json = json.clone();
                json[member] = value.clone();
                let read = ObjectValue::read(&ObjectKey::parse(key).expect("a key"), json);
                assert_eq!(read.is_ok(), is_valid, "{member}: {value}");
            }
        };
        let filter = json!({
            "title": "cats", "contexts": ["home"], "action": "warn", "expires_at": null,
            "keywords": [{"keyword": "cat", "whole_word": true}], "posts": ["https://a.example/1"],
        });
        let draft = json!({"text": "Hello"});
        let profile = json!({
            "display_name": "Ann", "note": "", "fields": [], "locked": false, "bot": false,
            "discoverable": true,
        });
        let field = json!({"name": "a", "value": "b"});
        let (filter_key, draft_key) = (format!("filter:{:032x}", 1), format!("draft:{:032x}", 1));
        let of_filter = |member, good, bad| check(&filter_key, &filter, member, good, bad);
        of_filter("title", json!("dogs"), json!(" "));
        of_filter("contexts", json!(["thread"]), json!([]));
        of_filter("contexts", json!(["home", "home"]), json!(["sea"]));
        of_filter("action", json!("hide"), json!("sink"));
        of_filter("expires_at", json!(1), json!(1_i64 << 47));
        of_filter("expires_at", json!(0), json!(-1));
        let empty = json!([{"keyword": "", "whole_word": true}]);
        of_filter("keywords", json!([]), empty);
        let of_mute = |good, bad| check("mute:ann@local", &json!({}), "expires_at", good, bad);
        of_mute(json!((1_i64 << 47) - 1), json!(1_i64 << 47));
        of_mute(json!(0), json!(-1));
        let of_draft = |member, good, bad| check(&draft_key, &draft, member, good, bad);
        let long = json!("x".repeat(10_001));
        of_draft("text", json!("x".repeat(10_000)), long);
        of_draft("spoiler_text", json!("cat"), json!("c\0"));
        of_draft("visibility", json!("unlisted"), json!("secret"));
        of_draft("language", json!("pt-BR"), json!(""));
        of_draft("in_reply_to", json!("https://a.example/1"), json!(""));
        let of_profile = |member, good, bad| check("profile:self", &profile, member, good, bad);
        of_profile("display_name", json!(""), json!("a\0"));
        of_profile("note", json!("猫"), json!("x".repeat(1_025)));
        of_profile("fields", json!(vec![&field; 4]), json!(vec![&field; 5]));
        let draft = ObjectValue::read(&ObjectKey::parse(draft_key).expect("a key"), draft);
        let expected = json!({
            "text": "Hello", "spoiler_text": "", "visibility": null, "sensitive": false,
            "language": null, "in_reply_to": null,
        });
        assert_eq!(draft.expect("a draft").json(), expected);
    }

    #[test]
    fn values_are_read_as_the_server_stores_them() {
        let read = |key: String, json| {
            ObjectValue::read(&ObjectKey::parse(key).expect("a key"), json).expect("a value")
        };
        let filter = json!({
            "title": "cats", "contexts": ["public", "home", "public"], "action": "warn", "expires_at": null,
            "keywords": [], "posts": [],
        });
        let filter = read(format!("filter:{:032x}", 1), filter).json();
        assert_eq!(filter["contexts"], json!(["home", "public"]));
        let (field, empty) = (
            json!({"name": "a", "value": ""}),
            json!({"name": "", "value": ""}),
        );
        let profile = json!({
            "display_name": "", "note": "", "fields": [&empty, &field, &empty, &empty, &empty], "locked": false,
            "bot": false, "discoverable": false,
        });
        let profile = read("profile:self".to_owned(), profile).json();
        assert_eq!(profile["fields"], json!([field]));
    }
}
