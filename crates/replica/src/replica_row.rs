use driftline_core::sync::{Binding, DeviceIdentity, LibraryProgress, StoredPush};
use driftline_db::Tx;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::ReplicaError;

/// The row of the replica itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReplicaRow {
    /// The server's address.
    pub(crate) url: String,
    pub(crate) binding: Binding,
    pub(crate) progress: LibraryProgress,
    pub(crate) identity: DeviceIdentity,
    /// The number of the device's last edit.
    pub(crate) generation: u64,
    /// The time of the last complete synchronization in Unix ms, by the device's clock.
    pub(crate) synced_at_ms: Option<i64>,
    pub(crate) pull: PullCounts,
    /// The size of the next chunk if the last synchronization lost an answer and failed.
    pub(crate) chunk_bytes: Option<u32>,
    /// The version of the terms that the search index has (`TEXT_EXTRACTION`).
    #[serde(default)]
    pub(crate) text_extraction: i64,
}

/// The numbers of objects of a pull that is not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PullCounts {
    /// Objects when they were counted last, with those that were removed before; `None` if they were not counted yet.
    pub(crate) held: Option<usize>,
    /// Objects that it has removed.
    pub(crate) removed: usize,
}

/// Reads the row; `None` in a database that has none yet.
pub(crate) fn get(tx: &mut Tx<'_>) -> Result<Option<ReplicaRow>, ReplicaError> {
    let sql = "select state from replica where one = 1";
    let state = tx.query_opt(sql, &[], |row| row.text("state"))?;
    state.map(|state| from_json(&state)).transpose()
}

/// Reads the row of a replica that was made.
pub(crate) fn require(tx: &mut Tx<'_>) -> Result<ReplicaRow, ReplicaError> {
    get(tx)?.ok_or_else(|| ReplicaError::damaged("the replica has no row"))
}

/// Stores the row.
pub(crate) fn put(tx: &mut Tx<'_>, row: &ReplicaRow) -> Result<(), ReplicaError> {
    let state = to_json(row)?;
    tx.execute(
        "insert into replica (one, state) values (1, $1)
         on conflict (one) do update set state = excluded.state",
        &[&state],
    )?;
    Ok(())
}

/// Changes the row of a replica that was made. Returns it.
pub(crate) fn update(
    tx: &mut Tx<'_>,
    change: impl FnOnce(&mut ReplicaRow),
) -> Result<ReplicaRow, ReplicaError> {
    let mut row = require(tx)?;
    change(&mut row);
    put(tx, &row)?;
    Ok(row)
}

/// Takes the number of the next edit.
pub(crate) fn next_generation(tx: &mut Tx<'_>) -> Result<u64, ReplicaError> {
    let row = update(tx, |row| row.generation += 1)?;
    Ok(row.generation)
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
    update(tx, |row| row.identity = identity.clone())?;
    Ok(())
}

/// Writes a value that is stored as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, ReplicaError> {
    serde_json::to_string(value).map_err(ReplicaError::damaged)
}

/// Reads a value that is stored as JSON.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, ReplicaError> {
    serde_json::from_str(text).map_err(ReplicaError::damaged)
}
