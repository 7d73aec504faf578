//! What servers say of themselves.
//!
//! To be written below [`driftline_db::Root::none`]: each write is one statement on one row, and says
//! what it replaces.

use driftline_core::social::{Instance, InstanceId, InstanceProfile};
use driftline_db::{DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{self, from_sql, sql},
    text::{from_json, to_json},
};

/// A server as its row has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceInfo {
    /// The server.
    pub instance: Instance,
    /// The mirrored instance that it is.
    pub mirrored: Option<id_types::InstanceId>,
    /// When it last said so, Unix ms; `None` if it was never asked, or never answered.
    pub fetched_ms: Option<i64>,
    /// When it is to be asked again, Unix ms.
    pub next_ms: Option<i64>,
}

/// Adds servers that are known by their hosts alone; known ones stay as they are.
pub fn add_hosts<'o>(
    tx: &mut Tx<'_>,
    hosts: impl IntoIterator<Item = &'o str>,
) -> Result<(), StoreError> {
    for host in hosts {
        add(tx, &format!("https://{host}"), 0, None)?;
    }
    Ok(())
}

/// Adds a mirrored server, to be asked at `next_ms`, or notes that a known one is mirrored.
pub fn add_mirrored(
    tx: &mut Tx<'_>,
    origin: &str,
    mirrored: id_types::InstanceId,
    next_ms: i64,
) -> Result<(), StoreError> {
    let id = sql(Instance::id_of(origin));
    add(tx, origin, sql(mirrored), Some(next_ms))?;
    tx.execute(
        "update instance_info set origin = $2, instance_id = $3, next_ms = $4
         where id = $1 and (instance_id <> $3 or origin <> $2)",
        &[&id, &origin, &sql(mirrored), &next_ms],
    )?;
    Ok(())
}

fn add(
    tx: &mut Tx<'_>,
    origin: &str,
    mirrored: i64,
    next_ms: Option<i64>,
) -> Result<(), StoreError> {
    let instance = Instance::new(origin, InstanceProfile::default());
    tx.execute(
        "insert into instance_info (id, origin, instance_id, name, description, version,
             software_name, extensions, maintainer_name, fetched_ms, next_ms)
         values ($1, $2, $3, $4, '', '', '', '[]', '', null, $5) on conflict (id) do nothing",
        &[
            &sql(instance.id),
            &instance.origin,
            &mirrored,
            &instance.profile.name,
            &next_ms,
        ],
    )?;
    Ok(())
}

/// Takes a server that is to be asked by `now_ms`, and will be asked again by others at `retry_ms`;
/// `None` if there is none. Below its own write, so that no two processes ask the same.
pub fn claim(
    tx: &mut Tx<'_>,
    now_ms: i64,
    retry_ms: i64,
) -> Result<Option<InstanceInfo>, StoreError> {
    let due = tx.query_opt(
        &format!(
            "select {COLUMNS} from instance_info
             where next_ms is not null and next_ms <= $1 order by next_ms, id limit 1"
        ),
        &[&now_ms],
        from_row,
    )?;
    let Some(due) = due else { return Ok(None) };
    let taken = tx.execute(
        "update instance_info set next_ms = $2 where id = $1 and next_ms = $3",
        &[&sql(due.instance.id), &retry_ms, &due.next_ms],
    )?;
    Ok((taken == 1).then_some(due))
}

/// Stores what a server said at `fetched_ms`, and when it is to be asked again.
pub fn save(
    tx: &mut Tx<'_>,
    instance: &Instance,
    fetched_ms: i64,
    next_ms: i64,
) -> Result<(), StoreError> {
    let profile = &instance.profile;
    let extensions = to_json(EXTENSIONS, &profile.extensions)?;
    tx.execute(
        "update instance_info set name = $2, description = $3, version = $4, software_name = $5,
             extensions = $6, maintainer_name = $7, fetched_ms = $8, next_ms = $9 where id = $1",
        &[
            &sql(instance.id),
            &profile.name,
            &profile.description,
            &profile.version,
            &profile.software_name,
            &extensions,
            &profile.maintainer_name,
            &fetched_ms,
            &next_ms,
        ],
    )?;
    Ok(())
}

/// The server of that ID.
pub fn by_id(tx: &mut Tx<'_>, id: InstanceId) -> Result<Option<InstanceInfo>, StoreError> {
    let query = format!("select {COLUMNS} from instance_info where id = $1");
    Ok(tx.query_opt(&query, &[&sql(id)], from_row)?)
}

const COLUMNS: &str = "origin, instance_id, name, description, version, software_name, extensions,
     maintainer_name, fetched_ms, next_ms";

fn from_row(row: &Row<'_>) -> Result<InstanceInfo, DbError> {
    let profile = InstanceProfile {
        name: row.text("name")?,
        description: row.text("description")?,
        version: row.text("version")?,
        software_name: row.text("software_name")?,
        extensions: from_json(EXTENSIONS, row.str("extensions")?)
            .map_err(|error| DbError::invalid(error.to_string()))?,
        maintainer_name: row.text("maintainer_name")?,
    };
    let mirrored = row.i64("instance_id")?;
    Ok(InstanceInfo {
        instance: Instance::new(row.str("origin")?, profile),
        mirrored: match mirrored {
            0 => None,
            id => Some(from_sql(id)?),
        },
        fetched_ms: row.opt_i64("fetched_ms")?,
        next_ms: row.opt_i64("next_ms")?,
    })
}

const EXTENSIONS: &str = "the extensions of an instance";
