//! The last push of each device, so that a push whose answer was lost is stored once.

use driftline_core::sync::PushRequest;
use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::{LocalAccountId, sql},
};

/// The meaning of a push for the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replay {
    /// The device's last push again, with its answer.
    Answer(String),
    /// The device's next push, or one of a device that the server does not know.
    New,
    /// Neither: the device was restored or cloned.
    Refused,
}

/// Compares a push with the last one of its device. `hash` is that of its body. Only [`Replay::Answer`] is final without the
/// account's root.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn replay(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    push: &PushRequest,
    hash: &str,
) -> Result<Replay, StoreError> {
    let Ok(sequence) = i64::try_from(push.sequence.get()) else {
        return Ok(Replay::Refused);
    };
    let last = tx.query_opt(
        "select sequence, push_hash, answer from sync_device where account_id = $1 and device = $2",
        &[&sql(account), &push.device],
        |row| {
            let last = (row.i64("sequence")?, row.text("push_hash")?);
            Ok((last, row.text("answer")?))
        },
    )?;
    let Some(((last_sequence, last_hash), answer)) = last else {
        return Ok(Replay::New);
    };
    let is_again = sequence == last_sequence && hash == last_hash;
    let is_next = last_sequence.checked_add(1) == Some(sequence) && push.previous == last_hash;
    Ok(match (is_again, is_next) {
        // The changes are stored, so comparing them again changes nothing.
        (true, _) if answer.is_empty() => Replay::New,
        (true, _) => Replay::Answer(answer),
        (_, true) => Replay::New,
        _ => Replay::Refused,
    })
}

/// Records a push that is [`Replay::New`] with its answer, in the transaction that stores it. An
/// account has at most 64 devices: the one that pushed longest ago is forgotten.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn record(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    push: &PushRequest,
    hash: &str,
    answer: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let answer = match answer.len() <= MAX_ANSWER_BYTES {
        true => answer,
        false => "",
    };
    // A larger one is refused by `replay`.
    let sequence = i64::try_from(push.sequence.get()).unwrap_or(i64::MAX);
    let device = &push.device;
    tx.execute_later(
        "insert into sync_device (account_id, device, sequence, push_hash, answer, used_at_ms)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (account_id, device) do update
             set sequence = $3, push_hash = $4, answer = $5, used_at_ms = $6",
        &[&sql(account), device, &sequence, &hash, &answer, &now_ms],
    )?;
    Ok(tx.execute_later(
        "delete from sync_device where account_id = $1 and device in
             (select device from sync_device where account_id = $1 and device <> $2
              order by used_at_ms desc, device limit $3 offset $3)",
        &[&sql(account), device, &(MAX_DEVICES - 1)],
    )?)
}

/// The largest answer that is kept.
const MAX_ANSWER_BYTES: usize = 100_000;
/// The largest number of an account's devices.
const MAX_DEVICES: i64 = 64;
