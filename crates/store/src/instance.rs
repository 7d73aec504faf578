use driftline_db::{DbError, Tx};

use crate::{
    clock::{self, Counter},
    ids::{InstanceId, from_sql},
};

/// A server that timelines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its ID here.
    pub id: InstanceId,
    /// Its origin: scheme, host and port.
    pub origin: String,
}

/// The instance of that origin, made if it is not known. The clock must be held.
pub(crate) fn find_or_add(tx: &mut Tx<'_>, origin: &str) -> Result<i64, DbError> {
    let known = tx.query_opt(
        "select id from instance where origin = $1",
        &[&origin],
        |row| row.i64(0),
    )?;
    if let Some(id) = known {
        return Ok(id);
    }
    let id = clock::count(tx, Counter::Instance, 1)?;
    tx.execute(
        "insert into instance (id, origin) values ($1, $2)",
        &[&id, &origin],
    )?;
    Ok(id)
}

pub(crate) fn all(tx: &mut Tx<'_>) -> Result<Vec<Instance>, DbError> {
    tx.query("select id, origin from instance order by id", &[], |row| {
        Ok(Instance {
            id: from_sql(row.i64(0)?)?,
            origin: row.text(1)?,
        })
    })
}
