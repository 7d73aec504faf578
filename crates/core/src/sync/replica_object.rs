use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ObjectKey, Usn, same_value};

/// An object of a replica, as the device stores it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LocalObject {
    /// The key.
    pub key: ObjectKey,
    /// The server's version on which the value is based. `None` if the replica knows no version, and no tombstone.
    pub base: Option<Base>,
    /// The value on the device. `None` if it was deleted there. A clean object without a value is a tombstone, which the replica
    /// keeps while the stored push has a change of the object.
    pub value: Option<Value>,
    /// 0 if the object is clean, else the number of its last edit on the device. The device counts its edits from 1.
    pub generation: u64,
    /// The number of the full sync in which the object last came.
    pub seen_in: u64,
}

/// The server's version of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Base {
    /// Its USN.
    pub usn: Usn,
    /// Its value. `None` if it is a tombstone.
    pub value: Option<Value>,
}

impl LocalObject {
    /// An object that was added on the device with its edit number `generation`.
    pub fn added(key: ObjectKey, value: Value, generation: u64) -> Self {
        Self {
            key,
            base: None,
            value: Some(value),
            generation,
            seen_in: 0,
        }
    }

    /// True if the object was changed on the device and the server has not stored the change.
    pub fn is_dirty(&self) -> bool {
        self.generation != 0
    }

    /// The USN of the base; [`Usn::NONE`] without a base.
    pub fn base_usn(&self) -> Usn {
        self.base.as_ref().map_or(Usn::NONE, |base| base.usn)
    }

    /// The value of the base. `None` without a base, and if it is a tombstone.
    pub fn base_value(&self) -> Option<&Value> {
        self.base.as_ref()?.value.as_ref()
    }

    /// The object after the device's edit number `generation`; a `value` of `None` deletes it. Returns `None` if nothing is
    /// left to store or to push.
    ///
    /// An edit back to the base makes the object clean. `is_sent` is true if the stored push has a change of the object: the
    /// server may have that change, so the object stays dirty in any case.
    pub fn edit(mut self, value: Option<Value>, generation: u64, is_sent: bool) -> Option<Self> {
        self.value = value;
        self.generation = generation;
        let is_base = same_value(self.key.kind(), self.value.as_ref(), self.base_value());
        match is_base && !is_sent {
            true => self.reverted(),
            false => Some(self),
        }
    }

    /// The object as the base has it. `None` if the base has no value.
    pub(super) fn reverted(mut self) -> Option<Self> {
        let value = self.base_value()?.clone();
        self.value = Some(value);
        self.generation = 0;
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::parse("note:https://a.example/1").expect("a key")
    }

    fn note(text: &str) -> Value {
        json!({ "text": text })
    }

    #[test]
    fn an_edit_back_to_the_base_is_clean() {
        let clean = LocalObject {
            key: key(),
            base: Some(Base {
                usn: Usn::new(5),
                value: Some(note("a")),
            }),
            value: Some(note("a")),
            generation: 0,
            seen_in: 2,
        };
        let dirty = clean.clone().edit(Some(note("b")), 7, false);
        let dirty = dirty.expect("a dirty object");
        assert!(dirty.is_dirty());
        assert_eq!(dirty.base_usn(), Usn::new(5));
        let back = dirty.clone().edit(Some(note("a")), 8, false);
        assert_eq!(back, Some(clean));
        // The server may have "b".
        let back = dirty.clone().edit(Some(note("a")), 8, true);
        assert_eq!(back.expect("an object").generation, 8);
        let deleted = dirty.edit(None, 9, false).expect("a deletion to push");
        assert_eq!((deleted.value, deleted.generation), (None, 9));
    }

    #[test]
    fn an_addition_that_is_deleted_again_leaves_nothing() {
        let added = LocalObject::added(key(), note("a"), 1);
        assert_eq!(added.clone().edit(None, 2, false), None);
        let deleted = added.clone().edit(None, 2, true).expect("a deletion");
        assert!(deleted.is_dirty() && deleted.value.is_none());
        let tombstone = Base {
            usn: Usn::new(9),
            value: None,
        };
        let added_again = LocalObject {
            base: Some(tombstone),
            ..added
        };
        assert_eq!(added_again.edit(None, 2, false), None);
    }
}
