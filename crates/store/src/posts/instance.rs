//! Instances: the servers that timelines come from.

use driftline_core::api::Api;
use driftline_db::{DbError, Root, Row, Tx};

use crate::{
    directory::{self, Kind},
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    local_ids,
};

/// A server that timelines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its ID here.
    pub id: InstanceId,
    /// Its origin: scheme, host and port.
    pub origin: String,
    /// The API that it speaks.
    pub api: Api,
}

/// The root for writes to data that the sources of an instance share.
pub const fn root(instance: InstanceId) -> Root {
    Root::row("instance", "id", instance.raw().cast_signed())
}

/// Holds an instance until the commit. Data that its sources share are read after that if they are
/// to be changed. No write holds two instances, and none takes one while it holds the clock.
pub(crate) fn hold(tx: &mut Tx<'_>, instance_id: i64) -> Result<(), DbError> {
    tx.lock_later(Root::row("instance", "id", instance_id))
}

/// The instance with this origin. It is added if it is unknown; a known one keeps its API. The
/// clock must be held.
pub(crate) fn find_or_add(tx: &mut Tx<'_>, origin: &str, api: Api) -> Result<i64, StoreError> {
    if let Some(known) = by_origin(tx, origin)? {
        return Ok(sql(known.id));
    }
    let id = local_ids::take_numbers(tx, "last_instance_id", 1)?;
    tx.execute(
        "insert into instance (id, origin, api) values ($1, $2, $3)",
        &[&id, &origin, &api.name()],
    )?;
    directory::add(tx, Kind::Instance, origin, (id, id))?;
    Ok(id)
}

/// Every instance, in order of their IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all(tx: &mut Tx<'_>) -> Result<Vec<Instance>, StoreError> {
    let sql = "select id, origin, api from instance order by id";
    Ok(tx.query(sql, &[], from_row)?)
}

/// The instance with this ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_id(tx: &mut Tx<'_>, id: InstanceId) -> Result<Option<Instance>, StoreError> {
    let query = "select id, origin, api from instance where id = $1";
    Ok(tx.query_opt(query, &[&sql(id)], from_row)?)
}

/// The instance with this origin.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_origin(tx: &mut Tx<'_>, origin: &str) -> Result<Option<Instance>, StoreError> {
    let sql = format!(
        "select i.id, origin, api from instance i {} where d.name = $1",
        Kind::Instance.join("i", "id")
    );
    Ok(tx.query_opt(&sql, &[&origin], from_row)?)
}

fn from_row(row: &Row<'_>) -> Result<Instance, DbError> {
    Ok(Instance {
        id: from_sql(row.i64("id")?)?,
        origin: row.text("origin")?,
        api: api(row.str("api")?)?,
    })
}

/// True if the upstream looks up several posts at once; `None` while that is unknown.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn has_batch_look_up(
    tx: &mut Tx<'_>,
    instance: InstanceId,
) -> Result<Option<bool>, StoreError> {
    let known = tx.query_opt(
        "select batch_look_up from instance where id = $1",
        &[&sql(instance)],
        |row| row.opt_bool("batch_look_up"),
    )?;
    Ok(known.flatten())
}

/// Stores that the upstream looks up several posts at once, that it does not, or that this is
/// unknown.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn set_batch_look_up(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    has_it: Option<bool>,
) -> Result<(), StoreError> {
    tx.execute(
        "update instance set batch_look_up = $2 where id = $1",
        &[&sql(instance), &has_it],
    )?;
    Ok(())
}

/// Stores that the instance keeps posts that belong to no source.
pub(crate) fn set_keeps_posts(tx: &mut Tx<'_>, instance_id: i64) -> Result<(), DbError> {
    let sql = "update instance set keeps_posts = true where id = $1";
    tx.execute_later(sql, &[&instance_id])
}

pub(crate) fn api(name: &str) -> Result<Api, DbError> {
    name.parse()
        .map_err(|_| DbError::invalid("an instance of an unknown API"))
}

/// The instance through which a post was seen; `None` if it is not stored.
///
/// # Errors
/// [`StoreError::Db`] if the database failed.
pub fn of_post(tx: &mut Tx<'_>, post: LocalId) -> Result<Option<InstanceId>, StoreError> {
    Ok(tx.query_opt(
        "select instance_id from post where id = $1",
        &[&sql(post)],
        |row| from_sql(row.i64("instance_id")?),
    )?)
}
