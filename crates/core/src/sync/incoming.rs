use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Base, ConflictReason, LocalObject, MarkerValue, NoteValue, ObjectKey, ObjectKind, ObjectValue,
    Outcome, SentChange, Usn, merge_lines, same_value,
    same_value::{is_stored_as, same_version},
};

/// An object or tombstone that came from the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incoming {
    /// The key.
    pub key: ObjectKey,
    /// The USN of the object or tombstone; [`Usn::NONE`] if the server has neither.
    pub usn: Usn,
    /// The value. `None` if the object is deleted.
    pub value: Option<Value>,
    /// The number of the replica's last full sync.
    pub full_sync: u64,
}

/// Returns the outcome for the replica's object when `theirs` comes. `sent` is the object's change in the stored push, which the
/// server may have stored without the replica knowing.
pub fn incoming(
    local: Option<LocalObject>,
    theirs: &Incoming,
    sent: Option<&SentChange>,
) -> Outcome {
    let mut outcome = receive(local, theirs, sent);
    if outcome.object.is_none() && sent.is_some() {
        outcome.object = Some(theirs.tombstone());
    }
    outcome
}

fn receive(local: Option<LocalObject>, theirs: &Incoming, sent: Option<&SentChange>) -> Outcome {
    let Some(mut local) = local else {
        return Outcome::without_conflict(theirs.clean());
    };
    local.seen_in = theirs.full_sync;
    let kind = local.key.kind();
    let is_theirs = same_value(kind, local.value.as_ref(), theirs.value.as_ref());
    if !local.is_dirty() {
        let is_lost = !is_theirs && theirs.contradicts(&local);
        return Outcome {
            object: theirs.clean(),
            conflict: is_lost.then(|| local.conflict(ConflictReason::LostByServer)),
        };
    }
    // First, since the server may have another version that was sent: then even a value like the base's is an edit.
    if theirs.is_base_of(&local) {
        return theirs.keep(local);
    }
    if is_theirs {
        return Outcome::without_conflict(theirs.clean());
    }
    let is_echo = sent.is_some_and(|sent| theirs.is_echo(sent, &local));
    match is_echo || theirs.is_like_base_of(&local) {
        true => theirs.keep(local),
        false => merge(local, theirs),
    }
}

/// Merges a dirty object with another version.
fn merge(local: LocalObject, theirs: &Incoming) -> Outcome {
    let mine = local.value.as_ref();
    let is_addition = mine.is_some() && local.base_value().is_none();
    if is_addition && theirs.value.is_none() {
        return theirs.keep(local);
    }
    match local.key.kind() {
        Some(ObjectKind::Marker) => merge_marker(local, theirs),
        kind if is_in_set(kind) => match (mine, &theirs.value) {
            (Some(_), None) => theirs.keep(local),
            (None, Some(value)) if is_same_addition(local.base_value(), value) => {
                theirs.keep(local)
            }
            (None, Some(_)) => theirs.take(local, ConflictReason::Merged),
            _ => theirs.win(local),
        },
        Some(ObjectKind::Note | ObjectKind::AccountNote) => merge_note(local, theirs),
        _ => theirs.win(local),
    }
}

/// True if the objects of a kind are members of a set.
pub(super) fn is_in_set(kind: Option<ObjectKind>) -> bool {
    kind.is_some_and(ObjectKind::is_in_set)
}

/// True if only the server's part of a member of a set is newer than the base, such as the copy of a post: then the device has
/// seen the addition.
fn is_same_addition(base: Option<&Value>, theirs: &Value) -> bool {
    let added = base.and_then(|base| base.get("added"));
    added.is_some() && added == theirs.get("added")
}

/// The larger place stays.
fn merge_marker(local: LocalObject, theirs: &Incoming) -> Outcome {
    let place = |value: &Value| {
        let marker: Option<MarkerValue> = serde_json::from_value(value.clone()).ok();
        marker.and_then(|marker| marker.place())
    };
    let mine = local.value.as_ref().and_then(place);
    match (mine, theirs.value.as_ref().map(place)) {
        (Some(_), None) => theirs.keep(local),
        (Some(mine), Some(Some(place))) if mine > place => theirs.keep(local),
        (Some(_), Some(Some(_))) => Outcome::without_conflict(theirs.clean()),
        _ => theirs.win(local),
    }
}

/// Changes of different lines are both kept.
fn merge_note(mut local: LocalObject, theirs: &Incoming) -> Outcome {
    // A base that the server has lost is no ancestor of its version.
    let merged = match theirs.contradicts(&local) {
        true => None,
        false => merged_note(&local, theirs),
    };
    let Some(merged) = merged else {
        return theirs.win(local);
    };
    if same_value(local.key.kind(), Some(&merged), theirs.value.as_ref()) {
        return Outcome::without_conflict(theirs.clean());
    }
    local.value = Some(merged);
    theirs.keep(local)
}

/// The merged value; `None` if the changes overlap or the merged text is not valid.
fn merged_note(local: &LocalObject, theirs: &Incoming) -> Option<Value> {
    let text = |value: &Value| {
        let note: Option<NoteValue> = serde_json::from_value(value.clone()).ok();
        note.map(|note| note.text)
    };
    let base = local.base_value().and_then(text)?;
    let mine = local.value.as_ref().and_then(text)?;
    let mut merged = theirs.value.clone()?;
    let text = merge_lines(&base, &mine, &text(&merged)?)?;
    merged
        .as_object_mut()?
        .insert("text".to_owned(), Value::String(text));
    let is_valid = ObjectValue::read(&local.key, merged.clone()).is_ok();
    is_valid.then_some(merged)
}

impl Incoming {
    /// The object without local changes; `None` for a tombstone.
    fn clean(&self) -> Option<LocalObject> {
        let value = self.value.clone()?;
        Some(LocalObject {
            key: self.key.clone(),
            base: self.base(),
            value: Some(value),
            generation: 0,
            seen_in: self.full_sync,
        })
    }

    /// The part of a deleted object that is kept while the stored push has a change of it: a late answer must not be mistaken for
    /// the answer to an object that is added again.
    fn tombstone(&self) -> LocalObject {
        LocalObject {
            key: self.key.clone(),
            base: self.base(),
            value: None,
            generation: 0,
            seen_in: self.full_sync,
        }
    }

    fn base(&self) -> Option<Base> {
        (self.usn != Usn::NONE).then(|| Base {
            usn: self.usn,
            value: self.value.clone(),
        })
    }

    /// The dirty object stays, based on this version.
    fn keep(&self, mut local: LocalObject) -> Outcome {
        local.base = self.base();
        Outcome::without_conflict(Some(local))
    }

    /// This version replaces the dirty object, which is listed.
    fn take(&self, local: LocalObject, reason: ConflictReason) -> Outcome {
        Outcome {
            object: self.clean(),
            conflict: Some(local.conflict(reason)),
        }
    }

    /// This version replaces the dirty object, which becomes a conflict for a person.
    fn win(&self, local: LocalObject) -> Outcome {
        let reason = match self.contradicts(&local) {
            true => ConflictReason::LostByServer,
            false => ConflictReason::Changed,
        };
        self.take(local, reason)
    }

    /// True if this is the version on which the object is based.
    fn is_base_of(&self, local: &LocalObject) -> bool {
        let kind = local.key.kind();
        self.usn == local.base_usn() && same_version(kind, self.value.as_ref(), local.base_value())
    }

    /// True if this is newer than the version on which the object is based, and differs only in members that the server gives:
    /// the followed account has accepted the follow, for example. Members of sets have no values that distinguish two additions.
    fn is_like_base_of(&self, local: &LocalObject) -> bool {
        let kind = local.key.kind();
        !is_in_set(kind)
            && self.usn > local.base_usn()
            && self.value.is_some()
            && same_value(kind, self.value.as_ref(), local.base_value())
    }

    /// True if this is the device's own change, after which the object was edited. Members of sets have no values that
    /// distinguish the device's addition from another's.
    fn is_echo(&self, sent: &SentChange, local: &LocalObject) -> bool {
        let kind = local.key.kind();
        !is_in_set(kind)
            && local.base_usn() == sent.base
            && self.usn > sent.base
            && is_stored_as(kind, sent.value.as_ref(), self.value.as_ref())
    }

    /// True if the server has lost the object's base: its USNs go on from an earlier state.
    fn contradicts(&self, local: &LocalObject) -> bool {
        let base = local.base_usn();
        let is_other = self.usn == base && !self.is_base_of(local);
        self.usn != Usn::NONE && (self.usn < base || is_other)
    }
}
