use super::{
    Base, ChangeResult, Conflict, ConflictReason, Incoming, LocalObject, Outcome, SentChange, Usn,
    incoming, incoming::is_in_set,
};

/// Returns the outcome for the replica's object when the server answers the change that was sent.
///
/// The object may have been edited since. It may also have another base, if the answer is a repeated one and a pull came
/// between: then the pull has brought what the answer reports, unless the answer has a higher USN.
pub fn pushed(local: Option<LocalObject>, sent: &SentChange, result: &ChangeResult) -> Outcome {
    let Some(mut local) = local else {
        return Outcome::default();
    };
    // The server has stored the change above the version that the replica knows: it had collected that tombstone.
    let is_above = matches!(result, ChangeResult::Done { usn, .. } if *usn > local.base_usn());
    if !local.is_dirty() && local.value.is_none() && !is_above {
        return Outcome::default();
    }
    let is_edited = local.generation != sent.generation;
    if local.base_usn() != sent.base && !is_above {
        return match is_edited {
            true => Outcome::without_conflict(Some(local)),
            false => answered_late(local, result),
        };
    }
    match result {
        ChangeResult::Done { usn, value, .. } => {
            local.base = (*usn != Usn::NONE).then(|| Base {
                usn: *usn,
                value: value.clone().or_else(|| sent.value.clone()),
            });
            Outcome::without_conflict(match is_edited && local.is_dirty() {
                true => without_empty(local),
                false => local.reverted(),
            })
        }
        ChangeResult::Conflict { usn, value, .. } => {
            let theirs = Incoming {
                key: local.key.clone(),
                usn: *usn,
                value: value.clone(),
                full_sync: local.seen_in,
            };
            incoming(Some(local), &theirs, None)
        }
        ChangeResult::Refused { .. } if is_edited => {
            Outcome::without_conflict(without_empty(local))
        }
        ChangeResult::Refused { reason, .. } => refused(local, reason),
    }
}

/// The object takes back its base, and its value becomes a conflict. `reason` is the text of the refusal.
pub fn refused(local: LocalObject, reason: &str) -> Outcome {
    Outcome {
        object: local.clone().reverted(),
        conflict: Some(Conflict {
            refusal: Some(reason.to_owned()),
            ..local.conflict(ConflictReason::Refused)
        }),
    }
}

/// The object after an answer that is older than its base. A deletion of another device that comes after the stored addition
/// has seen it.
fn answered_late(local: LocalObject, result: &ChangeResult) -> Outcome {
    let base = local.base_usn();
    let is_seen = matches!(result, ChangeResult::Done { usn, .. } if *usn < base);
    let may_revert = is_in_set(local.key.kind()) || local.base_value().is_none();
    Outcome::without_conflict(match may_revert && is_seen && local.is_dirty() {
        true => local.reverted(),
        false => Some(local),
    })
}

/// Nothing, if the object is a deletion of what the server does not have.
fn without_empty(local: LocalObject) -> Option<LocalObject> {
    let is_empty = local.value.is_none() && local.base_value().is_none();
    (!is_empty).then_some(local)
}
