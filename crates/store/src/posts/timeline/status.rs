//! A single post, by any of the IDs that its viewer may know it by.

use driftline_db::{DbError, Tx};

use super::{
    Rule, TimelinePost,
    entries::{self, FirstPlaces, PostEntry},
    stored::{self, StoredPost},
};
use crate::{
    error::StoreError,
    id_types::{LocalId, from_sql, sql},
    viewer::{ReadableSources, Viewer},
};

/// A post by its ID in the public timeline, by that of an entry in a source that this viewer may read, or by
/// the one by which other posts name it; `None` if it is deleted or this viewer may not see it. Under the ID
/// of an entry that the viewer may not read there is nothing: it would tell that the entry exists.
pub fn status(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
) -> Result<Option<TimelinePost>, StoreError> {
    let raw_id = sql(id);
    let mut alias_source = None;
    let mut found = stored::by_ids(tx, &[raw_id], None)?.remove(&raw_id);
    if found.is_none() {
        let alias = tx.query_opt(
            "select post_id, source_id from entry_alias where id = $1",
            &[&raw_id],
            |row| Ok((row.opt_i64("post_id")?, row.opt_i64("source_id")?)),
        )?;
        if let Some((Some(post_id), source_id)) = alias {
            alias_source = source_id;
            found = stored::by_ids(tx, &[post_id], None)?.remove(&post_id);
        }
    }
    let Some(found) = found else {
        return Ok(None);
    };
    let readable = ReadableSources::load(tx, viewer)?;
    let is_shown = is_shown(tx, raw_id, alias_source, &found, &readable)?;
    Ok(is_shown.then_some(TimelinePost { id, ..found.post }))
}

/// A post at the place that it took first in all that a viewer may read, by the ID that the store knows it
/// by; `None` if that viewer may not see it.
pub fn at_its_place(
    tx: &mut Tx<'_>,
    post: LocalId,
    viewer: Viewer,
) -> Result<Option<TimelinePost>, StoreError> {
    let post_id = sql(post);
    let posts = stored::by_ids(tx, &[post_id], None)?;
    let Some(found) = posts.get(&post_id) else {
        return Ok(None);
    };
    let public_id = found.post.public_id;
    let readable = ReadableSources::load(tx, viewer)?;
    let places = FirstPlaces::load(tx, &posts, &Rule::Readable(&readable))?;
    match places.of(post_id) {
        Some(place) => status(tx, from_sql(place)?, viewer),
        None => status(tx, public_id, viewer),
    }
}

fn is_shown(
    tx: &mut Tx<'_>,
    id: i64,
    alias_source: Option<i64>,
    found: &StoredPost,
    readable: &ReadableSources,
) -> Result<bool, DbError> {
    if found.listed && sql(found.post.public_id) == id {
        return Ok(true);
    }
    let post_id = sql(found.post.post_id);
    let entries = entries::entries(tx, &std::iter::once(found))?;
    let shown: Vec<&PostEntry> = entries
        .iter()
        .filter(|entry| entry.is_shown(readable, found))
        .collect();
    // A post that its source no longer lists is still found by its ID, where it was listed in public.
    if shown.is_empty() && !found.listed {
        return Ok(false);
    }
    let of_entry = entries
        .iter()
        .find(|entry| entry.id == id || entry.place == id);
    Ok(match of_entry {
        Some(entry) => entry.is_shown(readable, found),
        None if id == post_id => readable.of_raw(found.first_source_id).is_some(),
        None => alias_source.is_none_or(|source| readable.of_raw(source).is_some()),
    })
}
