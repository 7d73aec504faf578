use driftline_core::sync::{Conflict, ConflictReason, ObjectKey, ObjectKind};
use driftline_db::{DbError, Row, ToValue, Tx};
use serde::Serialize;
use serde_json::Value;

use crate::{
    ReplicaError,
    object_row::{count_by, json},
};

/// A conflict as a person sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConflictRow {
    /// Its number.
    pub id: i64,
    /// The key of the object.
    pub key: ObjectKey,
    /// The value of this device; `None` if the object was deleted here.
    pub mine: Option<Value>,
    /// The value that took its place; `None` if there was none.
    pub theirs: Option<Value>,
    /// The server's value on which `mine` is based.
    pub base: Option<Value>,
    /// Why `mine` is not the object's value.
    pub reason: ConflictReason,
    /// The server's words, if it refused the value.
    pub detail: Option<String>,
    /// The time at which it was found, in Unix ms.
    pub at_ms: i64,
    /// True if a person or a rule has resolved it.
    pub is_resolved: bool,
}

/// Adds a conflict that was found at `at_ms`, in Unix ms, with the value that took the device's place. One that a rule has resolved
/// is listed as resolved.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    conflict: &Conflict,
    theirs: Option<&Value>,
    at_ms: i64,
) -> Result<(), ReplicaError> {
    // A copy of a post would stay here after the account may not see it any more.
    let theirs = theirs.map(|theirs| without_copy(&conflict.key, theirs).to_string());
    let value = conflict.value.as_ref().map(Value::to_string);
    let base_value = conflict.base.as_ref().and_then(|base| base.value.as_ref());
    let base_value = base_value.map(Value::to_string);
    let is_resolved = conflict.reason == ConflictReason::Merged;
    let parameters: [&dyn ToValue; 8] = [
        &conflict.key.as_str(),
        &value,
        &theirs,
        &base_value,
        &conflict.reason.name(),
        &conflict.refusal,
        &at_ms,
        &is_resolved,
    ];
    tx.execute(
        "insert into conflict
             (id, key, value, theirs, base_value, reason, refusal, at_ms, is_resolved)
         select coalesce(max(id), 0) + 1, $1, $2, $3, $4, $5, $6, $7, $8 from conflict",
        &parameters,
    )?;
    Ok(())
}

/// Lists the open conflicts, or all, by their numbers.
pub(crate) fn list(tx: &mut Tx<'_>, all: bool) -> Result<Vec<ConflictRow>, ReplicaError> {
    let condition = if all { "true" } else { "not is_resolved" };
    let sql = format!("{SELECT} where {condition} order by id");
    Ok(tx.query(&sql, &[], conflict_row)?)
}

/// Reads an open conflict.
///
/// # Errors
/// [`ReplicaError::NoConflict`] if no conflict has this number.
pub(crate) fn open(tx: &mut Tx<'_>, id: i64) -> Result<ConflictRow, ReplicaError> {
    let sql = format!("{SELECT} where id = $1 and not is_resolved");
    let found = tx.query_opt(&sql, &[&id], conflict_row)?;
    found.ok_or(ReplicaError::NoConflict(id))
}

/// Marks a conflict as resolved.
pub(crate) fn resolve(tx: &mut Tx<'_>, id: i64) -> Result<(), ReplicaError> {
    tx.execute(
        "update conflict set is_resolved = true where id = $1",
        &[&id],
    )?;
    Ok(())
}

/// The number of all conflicts.
pub(crate) fn count(tx: &mut Tx<'_>) -> Result<usize, ReplicaError> {
    count_by(tx, "select count(*) as number from conflict", &[])
}

/// The number of open conflicts.
pub(crate) fn count_open(tx: &mut Tx<'_>) -> Result<usize, ReplicaError> {
    let sql = "select count(*) as number from conflict where not is_resolved";
    count_by(tx, sql, &[])
}

fn conflict_row(row: &Row<'_>) -> Result<ConflictRow, DbError> {
    let key = ObjectKey::parse(row.str("key")?);
    let reason = row.str("reason")?.parse::<ConflictReason>();
    Ok(ConflictRow {
        id: row.i64("id")?,
        key: key.map_err(|error| DbError::invalid(error.to_string()))?,
        mine: json(row.opt_str("value")?)?,
        theirs: json(row.opt_str("theirs")?)?,
        base: json(row.opt_str("base_value")?)?,
        reason: reason.map_err(|_| DbError::invalid("an unknown reason of a conflict"))?,
        detail: row.opt_text("refusal")?,
        at_ms: row.i64("at_ms")?,
        is_resolved: row.bool("is_resolved")?,
    })
}

/// A value without the copy of a post that a bookmark has.
fn without_copy(key: &ObjectKey, value: &Value) -> Value {
    let mut value = value.clone();
    if key.kind() == Some(ObjectKind::Bookmark)
        && let Some(members) = value.as_object_mut()
    {
        members.remove("status");
    }
    value
}

const SELECT: &str =
    "select id, key, value, theirs, base_value, reason, refusal, at_ms, is_resolved from conflict";
