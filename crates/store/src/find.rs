//! Finds a post by what people call it.

use driftline_db::{DbError, Tx};

use crate::{
    error::StoreError,
    ids::{InstanceId, LocalId, from_sql, sql},
};

/// The post that a text names: by its local ID or that of one of its entries, by its address for
/// people or its name across servers, or by `INSTANCE/ID` with the instance's host or origin and
/// the post's ID there. Deleted posts are found too.
///
/// An address is looked up by the ID at its end first; one that an instance knows under another ID
/// is searched for in every post.
pub fn post(tx: &mut Tx<'_>, text: &str) -> Result<Option<LocalId>, StoreError> {
    let text = crate::text::clean(text.trim());
    if let Ok(id) = text.parse::<u64>() {
        return by_local_id(tx, LocalId::new(id));
    }
    let Some((place, upstream_id)) = text.trim_end_matches('/').rsplit_once('/') else {
        return Ok(None);
    };
    for (instance_id, origin) in instances(tx)? {
        if !is_of(place, &origin) {
            continue;
        }
        let found = tx.query_opt(
            "select post_id from seen where upstream_id = $1 and instance_id = $2",
            &[&upstream_id, &instance_id],
            |row| from_sql(row.i64(0)?),
        )?;
        if found.is_some() {
            return Ok(found);
        }
    }
    if !text.contains("://") {
        return Ok(None);
    }
    let found = tx.query(
        "select id from post where url = $1 or uri = $1 order by id limit 1",
        &[&&*text],
        |row| from_sql(row.i64(0)?),
    )?;
    Ok(found.first().copied())
}

/// The instance that a post was seen through.
pub fn instance_of(tx: &mut Tx<'_>, post: LocalId) -> Result<Option<InstanceId>, StoreError> {
    let found = tx.query_opt(
        "select instance_id from post where id = $1",
        &[&sql(post)],
        |row| from_sql(row.i64(0)?),
    )?;
    Ok(found)
}

fn by_local_id(tx: &mut Tx<'_>, id: LocalId) -> Result<Option<LocalId>, StoreError> {
    let found = tx.query_opt("select id from post where id = $1", &[&sql(id)], |row| {
        from_sql(row.i64(0)?)
    })?;
    if found.is_some() {
        return Ok(found);
    }
    let of_entry = tx.query_opt(
        "select post_id from entry_alias where id = $1",
        &[&sql(id)],
        |row| row.opt_i64(0),
    )?;
    Ok(of_entry.flatten().map(from_sql).transpose()?)
}

fn instances(tx: &mut Tx<'_>) -> Result<Vec<(i64, String)>, DbError> {
    tx.query("select id, origin from instance order by id", &[], |row| {
        Ok((row.i64(0)?, row.text(1)?))
    })
}

/// Whether `place`, an origin or a host and perhaps a path, is on that origin.
fn is_of(place: &str, origin: &str) -> bool {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    let place = place.split_once("://").map_or(place, |(_, place)| place);
    let place = place.split('/').next().unwrap_or(place);
    place.eq_ignore_ascii_case(host)
}
