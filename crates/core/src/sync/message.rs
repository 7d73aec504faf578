use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{ObjectKey, RawJson, Usn};
use crate::predicate::Predicate;

/// The body of a pull: `POST /api/driftline/v1/sync`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SyncRequest {
    /// The libraries of the replica.
    pub libraries: Vec<LibraryRequest>,
    /// The largest number of objects and tombstones in the answer, 1 to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_entries: Option<u32>,
    /// The largest size of the objects of the answer, 10,000 to 4,000,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
}

/// A library of a replica. It is also the body of a request for a digest: `POST /api/driftline/v1/sync/digest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LibraryRequest {
    /// The library: `account`, or `source:ID`.
    pub library: String,
    /// The replica's cursor. For the next part of a source's digest, the cursor of the previous answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The predicate that selects the replica's posts of a source, in its JSON form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub filter: Option<Predicate>,
}

/// The answer to a pull.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SyncAnswer {
    /// The identity of the server's store.
    pub server: String,
    /// The ID of the account.
    pub account: String,
    /// The libraries that have news.
    pub news: Vec<LibraryNews>,
}

named_enum! {
    /// The meaning of an answer for a replica of a library.
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub enum LibraryState: "kebab-case" {
        /// Objects and tombstones above the cursor, by ascending USN.
        Changes,
        /// Part of a full sync: living objects, by descending USN.
        Full,
        /// The replica has seen changes that the store does not have.
        Diverged,
        /// The account may not read the library.
        Gone,
    }
}

/// The news of a library.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LibraryNews {
    /// The library.
    pub library: String,
    /// The meaning of this answer.
    pub state: LibraryState,
    /// The cursor after this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// True for the first chunk of a full sync.
    #[serde(default)]
    pub first: bool,
    /// True if more objects follow after the cursor.
    #[serde(default)]
    pub more: bool,
    /// With the first of several chunks of a full sync, the number of objects of all of them, if the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Objects as they are now.
    #[serde(default)]
    pub objects: Vec<SyncedObject>,
    /// Objects that were deleted.
    #[serde(default)]
    pub gone: Vec<Tombstone>,
}

impl LibraryNews {
    /// News without a cursor and objects.
    pub fn empty(library: &str, state: LibraryState) -> Self {
        Self {
            library: library.to_owned(),
            state,
            cursor: None,
            first: false,
            more: false,
            count: None,
            objects: Vec::new(),
            gone: Vec::new(),
        }
    }
}

/// An object of a library.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SyncedObject {
    /// The key.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: ObjectKey,
    /// The USN of the last change.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub usn: Usn,
    /// The value.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub value: RawJson,
}

/// A deleted object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tombstone {
    /// The key.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: ObjectKey,
    /// The USN of the deletion.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub usn: Usn,
}

/// The body of a push: `POST /api/driftline/v1/sync/push`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PushRequest {
    /// The device: 32 hexadecimal digits.
    pub device: String,
    /// The number of the push, from 1.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub sequence: Usn,
    /// The SHA-256, in hexadecimal, of the body of the device's previous push; empty for the first.
    #[serde(default)]
    pub previous: String,
    /// The changes, in their order.
    pub changes: Vec<PushChange>,
    /// The replica's cursor when the push was made.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// A change of a push.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PushChange {
    /// The key.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub key: ObjectKey,
    /// The USN of the version, or tombstone, that was changed; 0 if the device has never seen the object.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub base: Usn,
    /// The new value; null deletes the object. A missing one is invalid.
    #[serde(deserialize_with = "present")]
    pub value: Option<Value>,
}

/// The answer to a push.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PushAnswer {
    /// The identity of the server's store.
    pub server: String,
    /// The ID of the account.
    pub account: String,
    /// The library's cursor before this push.
    pub before: String,
    /// The library's cursor after this push.
    pub after: String,
    /// The result of each change, in their order.
    pub results: Vec<ChangeResult>,
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum ChangeResult {
    /// It is stored, or the object already had this value.
    Done {
        /// The key.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        key: ObjectKey,
        /// The object's USN.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        usn: Usn,
        /// The value as it is stored, if it is not the one that was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// The object has changed since `base`. Nothing was stored.
    Conflict {
        /// The key.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        key: ObjectKey,
        /// The object's USN; 0 if the server has never had it.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        usn: Usn,
        /// The object's value; null if it is deleted.
        #[serde(deserialize_with = "present")]
        value: Option<Value>,
    },
    /// The server does not accept it.
    Refused {
        /// The key.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        key: ObjectKey,
        /// The reason, in words for a person.
        reason: String,
    },
}

/// Reads a member that may be null, but not missing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Option::deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_without_a_value_deletes_nothing() {
        let read = |json: &str| serde_json::from_str::<PushChange>(json);
        assert!(read(r#"{"key": "marker:home", "base": "1", "val": {}}"#).is_err());
        let deletes = read(r#"{"key": "marker:home", "base": "1", "value": null}"#);
        assert_eq!(deletes.expect("a change").value, None);
    }
}
