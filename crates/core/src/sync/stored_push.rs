use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    LibraryProgress, LocalObject, ObjectKey, ObjectKind, PushChange, PushRequest, Usn,
    same_value::without_server_members,
};

/// The identity under which a device pushes, and its place in the sequence of its pushes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// 32 hexadecimal digits.
    pub device: String,
    /// The number of the next push, from 1.
    pub sequence: Usn,
    /// The SHA-256, in hexadecimal, of the body of the previous push; empty for the first.
    pub previous: String,
}

/// A push that is stored with its body before it is sent, and sent again until it is answered.
///
/// It is dropped without an answer, and the device takes a new identity, if the server refuses the device, and if the replica
/// has begun a full sync since ([`Self::is_current`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoredPush {
    /// The identity of the device for this push.
    pub identity: DeviceIdentity,
    /// The number of the replica's last full sync before the push.
    pub full_sync: u64,
    /// The changes, in the order of the body.
    pub changes: Vec<SentChange>,
    /// The body: a [`PushRequest`] and the replica's cursor, as JSON.
    pub body: String,
}

/// A change of a stored push.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SentChange {
    /// The key.
    pub key: ObjectKey,
    /// The USN of the object's base.
    pub base: Usn,
    /// The value that was sent. `None` deletes the object.
    pub value: Option<Value>,
    /// The generation of the object when it was sent.
    pub generation: u64,
}

/// The next push of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NextPush {
    /// The push. `None` if there is nothing to push.
    pub push: Option<StoredPush>,
    /// Dirty objects that no push can hold. The caller refuses them.
    pub too_large: Vec<LocalObject>,
}

impl DeviceIdentity {
    /// A new identity from 128 random bits.
    pub fn new(bits: u128) -> Self {
        Self {
            device: format!("{bits:032x}"),
            sequence: Usn::new(1),
            previous: String::new(),
        }
    }

    /// The identity after the server has answered `push`.
    pub fn after(push: &StoredPush) -> Self {
        Self {
            device: push.identity.device.clone(),
            sequence: Usn::new(push.identity.sequence.get().saturating_add(1)),
            previous: push.hash(),
        }
    }
}

impl StoredPush {
    /// The SHA-256 of the body, in hexadecimal.
    pub fn hash(&self) -> String {
        push_hash(self.body.as_bytes())
    }

    /// The change of an object.
    pub fn change(&self, key: &ObjectKey) -> Option<&SentChange> {
        self.changes.iter().find(|change| change.key == *key)
    }

    /// The keys of the members of sets that the push adds.
    pub fn added_members(&self) -> impl Iterator<Item = &ObjectKey> {
        let added = self.changes.iter().filter(|change| {
            change.value.is_some() && change.key.kind().is_some_and(ObjectKind::is_in_set)
        });
        added.map(|change| &change.key)
    }

    /// True if the push may be sent. `full_sync` is the number of the replica's last full sync. After a full sync a late
    /// answer could bring back what the server no longer has, and the server may be an earlier state of itself.
    pub fn is_current(&self, full_sync: u64) -> bool {
        self.full_sync == full_sync
    }
}

impl SentChange {
    /// True if this may change objects that the push does not name. Deleting a list deletes its members. The end of a
    /// follow takes the account out of lists, a block ends the follow, and each of these and a mute replaces what
    /// another name of the account has.
    pub(super) fn may_change_others(&self) -> bool {
        match self.key.kind() {
            Some(ObjectKind::List) => self.value.is_none(),
            Some(ObjectKind::Follow | ObjectKind::Block | ObjectKind::Mute) => true,
            _ => false,
        }
    }
}

/// The SHA-256 of the body of a push, in hexadecimal.
pub fn push_hash(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Builds the next push from at most `max_changes` dirty objects of a replica, and from no more than a push may have.
///
/// Deleted blocks, filters, notes and drafts come first, then lists and follows that are added or changed, and deleted lists
/// last; else objects come in the order of their edits.
///
/// The body also has the replica's cursor. Pushes of two clones of a device are equal only if the clones have seen the same
/// changes.
pub fn next_push(
    identity: DeviceIdentity,
    progress: &LibraryProgress,
    mut dirty: Vec<LocalObject>,
    max_changes: usize,
) -> NextPush {
    let max_changes = max_changes.clamp(1, MAX_PUSH_CHANGES);
    dirty.sort_by(|one, other| {
        let place = |object: &LocalObject| (rank(object), object.generation);
        place(one)
            .cmp(&place(other))
            .then_with(|| one.key.cmp(&other.key))
    });
    let mut request = PushRequest {
        device: identity.device.clone(),
        sequence: identity.sequence,
        previous: identity.previous.clone(),
        cursor: progress.cursor.clone(),
        changes: Vec::new(),
    };
    let mut free = MAX_PUSH_BYTES.saturating_sub(json(&request).len());
    let largest = free;
    let (mut changes, mut too_large) = (Vec::new(), Vec::new());
    for object in dirty {
        let change = change(&object);
        // The change and a comma.
        let size = json(&change).len() + 1;
        if size > largest {
            too_large.push(object);
            continue;
        }
        if size > free || changes.len() == max_changes {
            break;
        }
        free -= size;
        changes.push(SentChange {
            key: change.key.clone(),
            base: change.base,
            value: change.value.clone(),
            generation: object.generation,
        });
        request.changes.push(change);
    }
    let push = (!changes.is_empty()).then(|| StoredPush {
        identity,
        full_sync: progress.full_sync,
        changes,
        body: json(&request),
    });
    NextPush { push, too_large }
}

fn change(object: &LocalObject) -> PushChange {
    let kind = object.key.kind();
    let value = object.value.clone();
    PushChange {
        key: object.key.clone(),
        base: object.base_usn(),
        value: value.map(|value| without_server_members(kind, value)),
    }
}

/// The place of a change among those of a push: a list is there before its members, and as long as they are. Only followed
/// accounts are members, and only accounts that are not blocked are followed. The numbers of filters, notes
/// and drafts are limited, so one is deleted before another is added.
fn rank(object: &LocalObject) -> u8 {
    match (object.key.kind(), &object.value) {
        (
            Some(
                ObjectKind::Block
                | ObjectKind::Filter
                | ObjectKind::Note
                | ObjectKind::Draft
                | ObjectKind::AccountNote,
            ),
            None,
        ) => 0,
        (Some(ObjectKind::List | ObjectKind::Follow), Some(_)) => 1,
        (Some(ObjectKind::List), None) => 3,
        _ => 2,
    }
}

fn json(value: &impl Serialize) -> String {
    // Their keys are texts, so nothing can fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// The largest number of changes in a push.
pub const MAX_PUSH_CHANGES: usize = 100;

/// The largest size of a push's body.
pub const MAX_PUSH_BYTES: usize = 1_000_000;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added(key: &str, value: Value, generation: u64) -> LocalObject {
        LocalObject::added(ObjectKey::parse(key).expect("a key"), value, generation)
    }

    fn deleted(key: &str, generation: u64) -> LocalObject {
        LocalObject {
            value: None,
            ..added(key, json!({}), generation)
        }
    }

    /// The next push of a new device.
    fn next(dirty: Vec<LocalObject>) -> NextPush {
        let progress = LibraryProgress::default();
        next_push(DeviceIdentity::new(1), &progress, dirty, MAX_PUSH_CHANGES)
    }

    fn push(dirty: Vec<LocalObject>) -> StoredPush {
        next(dirty).push.expect("a push")
    }

    fn keys(push: &StoredPush) -> Vec<&str> {
        push.changes
            .iter()
            .map(|change| change.key.as_str())
            .collect()
    }

    #[test]
    fn lists_are_there_before_their_members_and_after_them() {
        let (new, old) = (format!("{:032x}", 2), format!("{:032x}", 1));
        let list = format!("list:{new}");
        let (member, other) = (
            format!("list-member:{new}:ann@a.example"),
            format!("list-member:{old}:ann@a.example"),
        );
        let dirty = vec![
            deleted(&format!("list:{old}"), 1),
            added(&member, json!({"account": "7"}), 2),
            deleted(&other, 3),
            added(&list, json!({"title": "cats"}), 4),
        ];
        let progress = LibraryProgress {
            cursor: Some("a".to_owned()),
            full_sync: 3,
            ..LibraryProgress::default()
        };
        let next = next_push(DeviceIdentity::new(1), &progress, dirty, MAX_PUSH_CHANGES);
        let push = next.push.expect("a push");
        let old_list = format!("list:{old}");
        assert_eq!(keys(&push), [&list, &member, &other, &old_list]);
        assert!(push.body.ends_with(r#"],"cursor":"a"}"#));
        let sent: PushRequest = serde_json::from_str(&push.body).expect("a request");
        assert_eq!(sent.changes[1].value, Some(json!({})), "without `account`");
        assert_eq!(sent.changes[2].value, None);
        assert_eq!(sent.device, format!("{:032x}", 1));
        assert!(push.is_current(3) && !push.is_current(4));
        assert_eq!(
            push.change(&sent.changes[3].key)
                .map(|sent| sent.generation),
            Some(1)
        );
    }

    #[test]
    fn an_unblocked_account_is_followed_before_it_is_in_a_list() {
        let member = format!("list-member:{:032x}:ann@a.example", 1);
        let follow = json!({"reblogs": false, "account": "7", "requested": true});
        let push = push(vec![
            added(&member, json!({}), 1),
            added("follow:ann@a.example", follow, 3),
            deleted("block:ann@a.example", 4),
            added("mute:bob@a.example", json!({}), 2),
        ]);
        let expected = [
            "block:ann@a.example",
            "follow:ann@a.example",
            &member,
            "mute:bob@a.example",
        ];
        assert_eq!(keys(&push), expected);
        let sent = &push.changes[1].value;
        assert_eq!(*sent, Some(json!({"reblogs": false})));
    }

    #[test]
    fn a_deletion_makes_room_for_an_addition() {
        let kinds = ["filter", "draft"].map(|kind| format!("{kind}:{:031x}", 0));
        let names = ["note:".to_owned(), "account-note:ann@a.example".to_owned()];
        for name in kinds.into_iter().chain(names) {
            let (new, old) = (format!("{name}1"), format!("{name}2"));
            let dirty = vec![added(&new, json!({"text": "a"}), 1), deleted(&old, 2)];
            assert_eq!(keys(&push(dirty)), [&old, &new]);
        }
    }

    #[test]
    fn the_chain_of_pushes_has_the_hash_of_the_body() {
        let first = DeviceIdentity::new(9);
        assert_eq!((first.sequence, first.previous.as_str()), (Usn::new(1), ""));
        let next = next_push(
            first,
            &LibraryProgress::default(),
            vec![added("marker:home", json!({"last_read": "1"}), 1)],
            MAX_PUSH_CHANGES,
        );
        let push = next.push.expect("a push");
        assert_eq!(
            push.body,
            r#"{"device":"00000000000000000000000000000009","sequence":"1","previous":"","changes":[{"key":"marker:home","base":"0","value":{"last_read":"1"}}],"cursor":null}"#
        );
        let second = DeviceIdentity::after(&push);
        assert_eq!(second.sequence, Usn::new(2));
        // printf %s BODY | sha256sum
        assert_eq!(second.previous, HASH);
        assert_eq!(
            next_push(
                second,
                &LibraryProgress::default(),
                Vec::new(),
                MAX_PUSH_CHANGES
            ),
            NextPush::default()
        );
    }

    #[test]
    fn a_push_is_bounded() {
        let note = |number: u64, length: usize| {
            let text = "n".repeat(length);
            added(&format!("note:{number}"), json!({ "text": text }), number)
        };
        let many = push((1..=250).map(|number| note(number, 10)).collect());
        assert_eq!(many.changes.len(), MAX_PUSH_CHANGES);
        assert_eq!(keys(&many)[99], "note:100");

        let large = push((1..=40).map(|number| note(number, 30_000)).collect());
        assert!(large.body.len() <= MAX_PUSH_BYTES);
        assert!(large.body.len() > MAX_PUSH_BYTES - 31_000);

        let both = push(vec![note(1, 999_000), note(2, 2)]);
        assert_eq!(both.changes.len(), 2);
        let next = next(vec![note(1, 1_000_000), note(2, 2)]);
        assert_eq!(next.too_large, [note(1, 1_000_000)]);
        assert_eq!(keys(&next.push.expect("a push")), ["note:2"]);
    }

    const HASH: &str = "f80d234aaad25f93c67c824a2cf87263f751c77b812a366b167667a766acea8e";
}
