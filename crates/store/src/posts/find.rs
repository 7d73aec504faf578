//! Finds a post by an ID or an address that a person gives.

use driftline_db::Tx;

use crate::{
    error::StoreError,
    id_types::{LocalId, from_sql, sql},
    posts::{
        instance::{self, Instance},
        timeline::visible::is_visible,
    },
    viewer::Viewer,
};

/// The post that a text identifies: by its local ID or the ID of one of its entries, by its address
/// for people or its name across servers, or by `INSTANCE/ID` with the instance's host or origin
/// and the post's ID there. Deleted posts are found too.
///
/// An address is looked up by the ID at its end first, and then as a whole, because an instance may
/// know the post under another ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn post(tx: &mut Tx<'_>, text: &str) -> Result<Option<LocalId>, StoreError> {
    let text = crate::text::without_nul(text.trim());
    if let Ok(id) = text.parse::<u64>() {
        return by_local_id(tx, LocalId::new(id));
    }
    if let Some(found) = by_last_segment(tx, &text)?.first() {
        return Ok(Some(*found));
    }
    if !text.contains("://") {
        return Ok(None);
    }
    Ok(by_address(tx, &text)?.into_iter().min())
}

/// The first post that a text identifies as in [`post`] and that a viewer may see. Each instance
/// that shows it may have it for different viewers.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn shown_post(
    tx: &mut Tx<'_>,
    text: &str,
    viewer: Viewer,
) -> Result<Option<LocalId>, StoreError> {
    let mut found = posts_at(tx, text)?;
    if found.is_empty() {
        found.extend(post(tx, text)?);
    }
    for id in found {
        if is_visible(tx, id, viewer)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Every post that an address identifies as in [`post`], in that order. Each instance that shows it
/// may have it for different viewers.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn posts_at(tx: &mut Tx<'_>, address: &str) -> Result<Vec<LocalId>, StoreError> {
    let address = crate::text::without_nul(address.trim());
    let mut found = by_last_segment(tx, &address)?;
    let mut whole = by_address(tx, &address)?;
    whole.sort_unstable();
    whole.retain(|id| !found.contains(id));
    found.extend(whole);
    Ok(found)
}

fn by_last_segment(tx: &mut Tx<'_>, text: &str) -> Result<Vec<LocalId>, StoreError> {
    let mut found = Vec::new();
    let Some((instance, upstream_id)) = text.trim_end_matches('/').rsplit_once('/') else {
        return Ok(found);
    };
    for instance in instances_of(tx, instance)? {
        found.extend(tx.query_opt(
            "select post_id from upstream_post
             where upstream_id = $1 and instance_id = $2 and post_id > 0",
            &[&upstream_id, &sql(instance.id)],
            |row| from_sql(row.i64("post_id")?),
        )?);
    }
    Ok(found)
}

fn by_address(tx: &mut Tx<'_>, address: &str) -> Result<Vec<LocalId>, StoreError> {
    let mut found = Vec::new();
    for sql in BY_ADDRESS {
        found.extend(tx.query(sql, &[&address], |row| from_sql(row.i64("id")?))?);
    }
    Ok(found)
}

/// The conditions by which posts are found by an address for people or a name across servers;
/// public so that tests can look at the plans. They have no order, because a plan could then walk
/// all posts by their IDs.
#[doc(hidden)]
pub const BY_ADDRESS: [&str; 2] = [
    "select id from post
     where substr(uri, length(uri) - 17) = substr($1, length($1) - 17) and $1 in (uri, url)",
    "select id from post
     where substr(url, length(url) - 17) = substr($1, length($1) - 17) and url = $1
         and substr(url, length(url) - 17) is distinct from substr(uri, length(uri) - 17)",
];

fn by_local_id(tx: &mut Tx<'_>, id: LocalId) -> Result<Option<LocalId>, StoreError> {
    // An ID outlives its post.
    let found = tx.query(
        "select id from post where id = $1
         union all select id from post where id = (select post_id from entry_alias where id = $1)",
        &[&sql(id)],
        |row| from_sql(row.i64("id")?),
    )?;
    Ok(found.into_iter().next())
}

/// The instances that `instance` identifies: an origin, or a host with an optional path.
pub(crate) fn instances_of(tx: &mut Tx<'_>, instance: &str) -> Result<Vec<Instance>, StoreError> {
    let mut all = instance::all(tx)?;
    all.retain(|known| is_of(instance, &known.origin));
    Ok(all)
}

/// True if `instance`, an origin or a host with an optional path, is at that origin.
fn is_of(instance: &str, origin: &str) -> bool {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    let without_scheme = instance
        .split_once("://")
        .map_or(instance, |(_, rest)| rest);
    let named = without_scheme.split('/').next().unwrap_or(without_scheme);
    named.eq_ignore_ascii_case(host)
}
