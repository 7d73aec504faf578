use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Base, LocalObject, ObjectKey, same_value::without_copy};

/// An edit that was not stored, or a version that the server no longer has. The replica lists it until a person has resolved
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conflict {
    /// The key of the object.
    pub key: ObjectKey,
    /// The replica's value. `None` if it was deleted there.
    pub value: Option<Value>,
    /// The server's version on which the value is based.
    pub base: Option<Base>,
    /// Why the value is not stored.
    pub reason: ConflictReason,
    /// The text of the server, for [`ConflictReason::Refused`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

named_enum! {
    /// The reason of a conflict.
    pub enum ConflictReason: "kebab-case" {
        /// The device and the server both changed the object.
        Changed,
        /// The server refused the change.
        Refused,
        /// The server no longer has the version that the replica had.
        LostByServer,
        /// The account may not read the library any more.
        LibraryGone,
        /// A rule resolved it: the change was dropped.
        Merged,
    }
}

/// The outcome for an object of a replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The object to store. `None` removes it.
    pub object: Option<LocalObject>,
    /// A conflict to list.
    pub conflict: Option<Conflict>,
}

impl Outcome {
    /// An outcome without a conflict.
    pub(super) fn without_conflict(object: Option<LocalObject>) -> Self {
        Self {
            object,
            conflict: None,
        }
    }
}

impl LocalObject {
    /// The conflict of the object's value. It has no copy of a post: no later version would remove it there.
    pub(super) fn conflict(self, reason: ConflictReason) -> Conflict {
        let kind = self.key.kind();
        let without_copy = |value: Value| without_copy(kind, value);
        Conflict {
            value: self.value.map(without_copy),
            base: self.base.map(|base| Base {
                value: base.value.map(without_copy),
                ..base
            }),
            key: self.key,
            reason,
            refusal: None,
        }
    }
}
