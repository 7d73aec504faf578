//! A single post, by any of the IDs by which its viewer may know it.

use driftline_db::Tx;

use super::{
    PostKey, TimelinePost, by_post_ids,
    copies::{self, Copies},
    entries,
    first_places::FirstPlaces,
    rule::Rule,
    stored_post,
    visible::may_know,
};
use crate::{
    error::StoreError,
    id_types::{LocalId, sql},
    posts::instance,
    viewer::{ReadableSources, Viewer},
};

/// A post with the content of its best copy, by its ID in the public timeline, by that of an entry
/// in a source that this viewer may read, or by the one by which other posts refer to it; `None` if
/// it is deleted or this viewer may not see it. The ID of an entry that the viewer may not read
/// finds nothing, because a post would reveal that the entry exists.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn status(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
) -> Result<Option<TimelinePost>, StoreError> {
    let raw_id = sql(id);
    let mut alias_source = None;
    let mut post_id = raw_id;
    let mut posts = stored_post::by_ids(tx, &[raw_id], None, viewer)?;
    if posts.is_empty() {
        let alias = tx.query_opt(
            "select post_id, source_id from entry_alias where id = $1",
            &[&raw_id],
            |row| Ok((row.opt_i64("post_id")?, row.opt_i64("source_id")?)),
        )?;
        if let Some((Some(of_alias), source_id)) = alias {
            (post_id, alias_source) = (of_alias, source_id);
            posts = stored_post::by_ids(tx, &[of_alias], None, viewer)?;
        }
    }
    if posts.is_empty() {
        return Ok(None);
    }
    let readable = ReadableSources::load(tx, viewer)?;
    let copies = Copies::load(tx, &mut posts, &readable)?;
    let entries = entries::entries(tx, &posts.values())?;
    let rule = Rule::Readable(&readable);
    let places = FirstPlaces::of(&entries, &posts, &copies, &rule);
    let Some(found) = posts.get(&post_id) else {
        return Ok(None);
    };
    let content = places.of_post(post_id);
    let content = content.and_then(|first| posts.get(&first.content));
    Ok(match content {
        Some(content) if may_know(raw_id, alias_source, found, &entries, &readable) => {
            Some(copies::at_place(content, raw_id, &posts, &copies)?)
        }
        _ => None,
    })
}

/// A post at its first place in everything that a viewer may read, by the ID by which the store
/// knows it; `None` if the viewer may not see it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn at_its_place(
    tx: &mut Tx<'_>,
    post: LocalId,
    viewer: Viewer,
) -> Result<Option<TimelinePost>, StoreError> {
    let Some(instance) = instance::of_post(tx, post)? else {
        return Ok(None);
    };
    let key = PostKey { post, instance };
    Ok(by_post_ids(tx, &[key], viewer)?.remove(&post))
}
