//! Removes an instance with all that is stored of it.

use driftline_db::Tx;

use super::post_removal;
use crate::{
    directory::{self, Kind},
    error::StoreError,
    id_types::{InstanceId, sql},
    local_ids,
    sharing::change,
};

/// How much is stored of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceContents {
    /// Posts, those of its sources included.
    pub posts: u64,
    /// Accounts: authors, and those that posts name.
    pub accounts: u64,
}

/// How much is stored of an instance. Reads the keys of all posts and accounts.
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

/// What is removed in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Posts, and the names of posts that are not stored.
    Posts,
    /// Accounts.
    Accounts,
}

/// What one step removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How many posts, or accounts.
    pub removed: u64,
    /// After which upstream ID the next step goes on.
    pub after: String,
}

/// Removes the next posts or accounts of an instance that has no source, at most 1,000 with what hangs on
/// them: those after that upstream ID, which is empty at first. `None` after the last. To be written below
/// [`super::instance::root`] of it.
///
/// The IDs of what was removed are never given again.
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

/// Removes an instance that has no sources and no credentials, and of which nothing is stored; `false` if it
/// has. To be written below [`super::instance::root`] of it.
pub fn remove(tx: &mut Tx<'_>, instance: InstanceId) -> Result<bool, StoreError> {
    let id = sql(instance);
    // Sources and credentials are added below that.
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
