use driftline_core::sync::{
    ChangeResult, DeviceIdentity, LibraryProgress, PushAnswer, StoredPush, next_push, pushed,
    refused,
};
use driftline_db::Tx;

use crate::{ReplicaError, object_row, replica_row};

/// The push to send: the stored one, or a new one of at most `max_changes`, which is stored. `None` if there is nothing to send.
/// `bits` are random, for a new identity; `now_ms` is the time of conflicts in Unix ms.
///
/// # Errors
/// [`ReplicaError::Db`] if the database fails.
pub(crate) fn prepare(
    tx: &mut Tx<'_>,
    max_changes: usize,
    bits: u128,
    now_ms: i64,
) -> Result<Option<StoredPush>, ReplicaError> {
    let row = replica_row::require(tx)?;
    let full_sync = row.progress.full_sync;
    let identity = match replica_row::pending_push(tx)? {
        Some(push) if push.is_current(full_sync) => return Ok(Some(push)),
        Some(_) => {
            let identity = DeviceIdentity::new(bits);
            replica_row::end_push(tx, &identity)?;
            identity
        }
        None => row.identity,
    };
    let dirty = object_row::dirty(tx)?;
    let next = next_push(identity, &row.progress, dirty, max_changes);
    for object in next.too_large {
        let key = object.key.clone();
        let outcome = refused(object, TOO_LARGE);
        object_row::apply(tx, &key, &outcome, now_ms)?;
    }
    if let Some(push) = &next.push {
        replica_row::set_pending_push(tx, push)?;
    }
    Ok(next.push)
}

/// The stored push if its answer decides something: it adds a member of a set that was deleted here since.
///
/// # Errors
/// [`ReplicaError::Db`] if the database fails.
pub(crate) fn deciding(tx: &mut Tx<'_>) -> Result<Option<StoredPush>, ReplicaError> {
    let Some(push) = replica_row::pending_push(tx)? else {
        return Ok(None);
    };
    let mut decides = false;
    for key in push.added_members() {
        let object = object_row::get(tx, key)?;
        decides |= object.is_some_and(|object| object.is_dirty() && object.value.is_none());
    }
    Ok(decides.then_some(push))
}

/// Drops a push that the server has not stored, for this reason. A change that was alone in it is refused, unless the object
/// was edited since.
///
/// # Errors
/// [`ReplicaError::Db`] if the database fails.
pub(crate) fn drop_refused(
    tx: &mut Tx<'_>,
    push: &StoredPush,
    reason: &str,
    now_ms: i64,
) -> Result<(), ReplicaError> {
    if let [only] = push.changes.as_slice()
        && let Some(object) = object_row::get(tx, &only.key)?
        && object.generation == only.generation
    {
        let outcome = refused(object, reason);
        object_row::apply(tx, &only.key, &outcome, now_ms)?;
    }
    replica_row::end_push(tx, &push.identity)
}

/// Stores the answer to a push, with the progress after it. Returns the number of changes that the server has.
///
/// # Errors
/// [`ReplicaError::Db`] if the database fails.
pub(crate) fn take_answer(
    tx: &mut Tx<'_>,
    push: &StoredPush,
    answer: &PushAnswer,
    progress: &LibraryProgress,
    now_ms: i64,
) -> Result<usize, ReplicaError> {
    let mut done = 0;
    for (sent, result) in push.changes.iter().zip(&answer.results) {
        let local = object_row::get(tx, &sent.key)?;
        let outcome = pushed(local, sent, result);
        object_row::apply(tx, &sent.key, &outcome, now_ms)?;
        if matches!(result, ChangeResult::Done { .. }) {
            done += 1;
        }
    }
    replica_row::update(tx, |row| row.progress = progress.clone())?;
    replica_row::end_push(tx, &DeviceIdentity::after(push))?;
    Ok(done)
}

/// True if the results are those of the changes of the push.
pub(crate) fn fits(push: &StoredPush, answer: &PushAnswer) -> bool {
    let sent = push.changes.iter().map(|change| &change.key);
    let results = answer.results.iter().map(|result| match result {
        ChangeResult::Done { key, .. }
        | ChangeResult::Conflict { key, .. }
        | ChangeResult::Refused { key, .. } => key,
    });
    sent.eq(results)
}

/// The reason for which a change is refused that no request has room for.
pub(crate) const TOO_LARGE: &str = "it is larger than a request may be";
