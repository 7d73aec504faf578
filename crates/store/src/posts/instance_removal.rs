//! Removes an instance with all its stored data.

use driftline_db::Tx;

use super::post_removal;
use crate::{
    directory::{self, Kind},
    error::StoreError,
    id_types::{InstanceId, sql},
    local_ids,
    sharing::change,
};

/// The numbers of stored objects of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceContents {
    /// Posts, including those of its sources.
    pub posts: u64,
    /// Accounts: authors, and accounts that posts name.
    pub accounts: u64,
}

/// The numbers of stored objects of an instance. Reads the keys of all posts and accounts.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn contents(tx: &mut Tx<'_>, instance: InstanceId) -> Result<InstanceContents, StoreError> {
    let mut count = |rows: &str| {
        let query = format!("select count(*) as found from {rows} and instance_id = $1");
        let found = tx.query_one(&query, &[&sql(instance)], |row| row.i64("found"));
        found.map(i64::cast_unsigned)
    };
    Ok(InstanceContents {
        posts: count("upstream_post where post_id <> 0")?,
        accounts: count("account where true")?,
    })
}

/// The kinds of objects that are removed in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Posts, and the names of posts that are not stored.
    Posts,
    /// Accounts.
    Accounts,
}

/// The result of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of removed posts or accounts.
    pub removed: u64,
    /// The upstream ID after which the next step continues.
    pub after: String,
}

/// Removes the next posts or accounts of an instance that has no source, at most 1,000 together
/// with their dependent rows: those after this upstream ID, which is empty at first. `None` after
/// the last ones. Must be written below [`super::instance::root`] of the instance.
///
/// The IDs of removed objects are never given again.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove_next(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    part: Part,
    after: &str,
) -> Result<Option<Step>, StoreError> {
    let id = sql(instance);
    let (table, column) = match part {
        Part::Posts => ("upstream_post", "post_id"),
        Part::Accounts => ("account", "id"),
    };
    let next = tx.query(
        &format!(
            "select upstream_id, {column} as id from {table}
             where instance_id = $1 and upstream_id > $2 order by upstream_id limit $3"
        ),
        &[&id, &after, &BATCH],
        |row| Ok((row.text("upstream_id")?, row.i64("id")?)),
    )?;
    let Some((last, _)) = next.last().cloned() else {
        return Ok(None);
    };
    let mut removed = next.len() as u64;
    if part == Part::Posts {
        let stored = next.into_iter().map(|(_, id)| id).filter(|id| *id != 0);
        removed = post_removal::remove(tx, id, &stored.collect::<Vec<_>>())?;
    }
    let rows = format!(
        "delete from {table} where instance_id = $1 and upstream_id > $2 and upstream_id <= $3"
    );
    tx.execute(&rows, &[&id, &after, &last])?;
    Ok(Some(Step {
        removed,
        after: last,
    }))
}

/// Removes an instance that has no sources, no credentials and no stored objects. Returns `false`
/// if it has any. Must be written below [`super::instance::root`] of the instance.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove(tx: &mut Tx<'_>, instance: InstanceId) -> Result<bool, StoreError> {
    let id = sql(instance);
    // Sources and credentials are added below this root.
    tx.lock_later(local_ids::root())?;
    for table in ["source", "credential", "account", "upstream_post"] {
        let query = format!("select 1 as one from {table} where instance_id = $1 limit 1");
        if tx.query_opt(&query, &[&id], |_| Ok(()))?.is_some() {
            return Ok(false);
        }
    }
    for table in [
        "claim_lease",
        "outbox",
        "learned_state",
        "instance_info",
        "object_uri",
    ] {
        let rows = format!("delete from {table} where instance_id = $1");
        tx.execute(&rows, &[&id])?;
    }
    directory::remove(tx, Kind::Instance, id)?;
    tx.execute("delete from instance where id = $1", &[&id])?;
    change::raise_later(tx)?;
    Ok(true)
}

const BATCH: i64 = 1000;
