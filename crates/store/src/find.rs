//! Finds a post by what people call it.

use driftline_db::{DbError, Tx};

use crate::{
    error::StoreError,
    ids::{InstanceId, LocalId, from_sql, sql},
    refresh::{RefreshState, refresh_state_of},
};

/// The post that a text names: by its local ID or that of one of its entries, by its address for
/// people or its name across servers, or by `INSTANCE/ID` with the instance's host or origin and
/// the post's ID there. Deleted posts are found too.
///
/// An address is looked up by the ID at its end first; one that an instance knows under another ID
/// is searched for in every post.
pub fn post(tx: &mut Tx<'_>, text: &str) -> Result<Option<LocalId>, StoreError> {
    let text = crate::text::without_nul(text.trim());
    if let Ok(id) = text.parse::<u64>() {
        return by_local_id(tx, LocalId::new(id));
    }
    let Some((place, upstream_id)) = text.trim_end_matches('/').rsplit_once('/') else {
        return Ok(None);
    };
    for (instance_id, _) in instances_of(tx, place)? {
        let found = tx.query_opt(
            "select post_id from upstream_post where upstream_id = $1 and instance_id = $2",
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

/// A post that someone named and that is not stored.
#[derive(Clone, Debug)]
pub struct Named {
    /// The origin of its instance.
    pub origin: String,
    /// Its ID there.
    pub upstream_id: String,
    /// Whether it waits to be looked up; else it was not to be had.
    pub waits: bool,
    /// How its look-ups stand; its birth is when it was named.
    pub refresh_state: RefreshState,
}

/// The post that is named as in [`post`], by an address that ends in its ID or by `INSTANCE/ID`,
/// and that is not stored.
pub fn named(tx: &mut Tx<'_>, text: &str) -> Result<Option<Named>, StoreError> {
    let text = crate::text::without_nul(text.trim());
    let Some((place, upstream_id)) = text.trim_end_matches('/').rsplit_once('/') else {
        return Ok(None);
    };
    for (instance_id, origin) in instances_of(tx, place)? {
        let found = tx.query_opt(
            "select lookup_id, waits from pending_lookup where upstream_id = $1 and instance_id = $2",
            &[&upstream_id, &instance_id],
            |row| Ok((row.i64(0)?, row.bool(1)?)),
        )?;
        let Some((lookup_id, waits)) = found else {
            continue;
        };
        let refresh_state = refresh_state_of(tx, lookup_id)?;
        return Ok(refresh_state.map(|refresh_state| Named {
            origin,
            upstream_id: upstream_id.to_owned(),
            waits,
            refresh_state,
        }));
    }
    Ok(None)
}

/// The instance that a post was upstream_post through.
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
    // An ID outlives its post.
    let found = tx.query_opt(
        "select id from post where id = $1",
        &[&of_entry.flatten()],
        |row| from_sql(row.i64(0)?),
    )?;
    Ok(found)
}

fn instances(tx: &mut Tx<'_>) -> Result<Vec<(i64, String)>, DbError> {
    tx.query("select id, origin from instance order by id", &[], |row| {
        Ok((row.i64(0)?, row.text(1)?))
    })
}

fn instances_of(tx: &mut Tx<'_>, place: &str) -> Result<Vec<(i64, String)>, DbError> {
    let mut all = instances(tx)?;
    all.retain(|(_, origin)| is_of(place, origin));
    Ok(all)
}

/// Whether `place`, an origin or a host and perhaps a path, is on that origin.
fn is_of(place: &str, origin: &str) -> bool {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    let place = place.split_once("://").map_or(place, |(_, place)| place);
    let place = place.split('/').next().unwrap_or(place);
    place.eq_ignore_ascii_case(host)
}
