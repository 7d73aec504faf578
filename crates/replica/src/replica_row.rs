use driftline_core::sync::{Binding, DeviceIdentity, LibraryProgress, StoredPush};
use driftline_db::Tx;
use serde::{Serialize, de::DeserializeOwned};

use crate::{ReplicaError, object_row::number};

/// The row of the replica itself.
#[derive(Clone, Debug)]
pub(crate) struct ReplicaRow {
    pub(crate) url: String,
    pub(crate) binding: Binding,
    pub(crate) progress: LibraryProgress,
    pub(crate) identity: DeviceIdentity,
    pub(crate) synced_at_ms: Option<i64>,
    pub(crate) pull: PullCounts,
    /// The size of the next chunk if the last synchronization lost an answer and failed.
    pub(crate) chunk_bytes: Option<u32>,
}

/// The numbers of objects of a pull that is not complete.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PullCounts {
    /// Objects at its start; `None` if no pull has begun.
    pub(crate) held: Option<usize>,
    /// Objects that it has removed.
    pub(crate) removed: usize,
}

/// Reads the row; `None` in a database that has none yet.
pub(crate) fn get(tx: &mut Tx<'_>) -> Result<Option<ReplicaRow>, ReplicaError> {
    let texts = tx.query_opt(
        "select url, binding, progress, identity, synced_at_ms, pull_held, pull_removed,
             chunk_bytes
         from replica where one = 1",
        &[],
        |row| {
            let json = [
                row.text("binding")?,
                row.text("progress")?,
                row.text("identity")?,
            ];
            let numbers = (row.opt_i64("synced_at_ms")?, row.opt_i64("chunk_bytes")?);
            let pull = (row.opt_i64("pull_held")?, row.i64("pull_removed")?);
            Ok((row.text("url")?, json, numbers, pull))
        },
    )?;
    let Some((url, [binding, progress, identity], numbers, (held, removed))) = texts else {
        return Ok(None);
    };
    let (synced_at_ms, chunk_bytes) = numbers;
    let count = |number: i64| usize::try_from(number).unwrap_or_default();
    Ok(Some(ReplicaRow {
        url,
        binding: from_json(&binding)?,
        progress: from_json(&progress)?,
        identity: from_json(&identity)?,
        synced_at_ms,
        pull: PullCounts {
            held: held.map(count),
            removed: count(removed),
        },
        chunk_bytes: chunk_bytes.and_then(|bytes| u32::try_from(bytes).ok()),
    }))
}

/// Reads the row of a replica that was made.
pub(crate) fn require(tx: &mut Tx<'_>) -> Result<ReplicaRow, ReplicaError> {
    get(tx)?.ok_or_else(|| ReplicaError::damaged("the replica has no row"))
}

/// Adds the row of a new replica.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    url: &str,
    binding: &Binding,
    identity: &DeviceIdentity,
) -> Result<(), ReplicaError> {
    let (binding, identity) = (to_json(binding)?, to_json(identity)?);
    let progress = to_json(&LibraryProgress::default())?;
    tx.execute(
        "insert into replica (one, url, binding, progress, identity, generation, pull_removed)
         values (1, $1, $2, $3, $4, 0, 0)",
        &[&url, &binding, &progress, &identity],
    )?;
    Ok(())
}

/// Stores the server's address, and its identity with the account.
pub(crate) fn set_server(
    tx: &mut Tx<'_>,
    url: &str,
    binding: &Binding,
) -> Result<(), ReplicaError> {
    let binding = to_json(binding)?;
    tx.execute(
        "update replica set url = $1, binding = $2 where one = 1",
        &[&url, &binding],
    )?;
    Ok(())
}

/// Stores the progress of the library.
pub(crate) fn set_progress(
    tx: &mut Tx<'_>,
    progress: &LibraryProgress,
) -> Result<(), ReplicaError> {
    let progress = to_json(progress)?;
    tx.execute(
        "update replica set progress = $1 where one = 1",
        &[&progress],
    )?;
    Ok(())
}

/// Stores the numbers of a pull.
pub(crate) fn set_pull(tx: &mut Tx<'_>, pull: PullCounts) -> Result<(), ReplicaError> {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let (held, removed) = (pull.held.map(count), count(pull.removed));
    tx.execute(
        "update replica set pull_held = $1, pull_removed = $2 where one = 1",
        &[&held, &removed],
    )?;
    Ok(())
}

/// Stores the time of a complete synchronization.
pub(crate) fn set_synced(tx: &mut Tx<'_>, at_ms: i64) -> Result<(), ReplicaError> {
    tx.execute(
        "update replica set synced_at_ms = $1, chunk_bytes = null where one = 1",
        &[&at_ms],
    )?;
    Ok(())
}

/// Stores the size of the next chunk after a synchronization that lost an answer and failed.
pub(crate) fn set_chunk_bytes(tx: &mut Tx<'_>, bytes: u32) -> Result<(), ReplicaError> {
    tx.execute(
        "update replica set chunk_bytes = $1 where one = 1",
        &[&bytes],
    )?;
    Ok(())
}

/// Takes the number of the next edit.
pub(crate) fn next_generation(tx: &mut Tx<'_>) -> Result<u64, ReplicaError> {
    let generation = tx.query_one("select generation from replica where one = 1", &[], |row| {
        row.i64("generation")
    })?;
    let next = u64::try_from(generation).unwrap_or_default() + 1;
    tx.execute(
        "update replica set generation = $1 where one = 1",
        &[&number(next)?],
    )?;
    Ok(next)
}

/// Reads the push that was not answered yet.
pub(crate) fn pending_push(tx: &mut Tx<'_>) -> Result<Option<StoredPush>, ReplicaError> {
    let push = tx.query_opt("select push from pending_push where one = 1", &[], |row| {
        row.text("push")
    })?;
    push.map(|push| from_json(&push)).transpose()
}

/// Stores a push that is about to be sent.
pub(crate) fn set_pending_push(tx: &mut Tx<'_>, push: &StoredPush) -> Result<(), ReplicaError> {
    let push = to_json(push)?;
    tx.execute(
        "insert into pending_push (one, push) values (1, $1)
         on conflict (one) do update set push = excluded.push",
        &[&push],
    )?;
    Ok(())
}

/// Removes the stored push; the next one has this identity.
pub(crate) fn end_push(tx: &mut Tx<'_>, identity: &DeviceIdentity) -> Result<(), ReplicaError> {
    tx.execute("delete from pending_push where one = 1", &[])?;
    let identity = to_json(identity)?;
    tx.execute(
        "update replica set identity = $1 where one = 1",
        &[&identity],
    )?;
    Ok(())
}

fn to_json(value: &impl Serialize) -> Result<String, ReplicaError> {
    serde_json::to_string(value).map_err(ReplicaError::damaged)
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, ReplicaError> {
    serde_json::from_str(text).map_err(ReplicaError::damaged)
}
