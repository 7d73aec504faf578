//! The IDs at which a viewer finds posts that other posts name.

use std::collections::HashMap;

use driftline_db::{Column, Tx};

use super::{copies::Copies, first_places::FirstPlaces, replied_to, rule::Rule, stored_post};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    viewer::{ReadableSources, SourceOwner},
};

/// The IDs at which a viewer first found posts of an instance, by their IDs there. It has only
/// posts that are in sources that show them to this viewer and not to everybody, and posts of which
/// the viewer may read copies, or copies of replies to them. All others are referred to by the IDs
/// that posts use ([`crate::reference`]).
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn named(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    upstream_ids: &[&str],
    readable: &ReadableSources,
) -> Result<HashMap<String, LocalId>, StoreError> {
    if upstream_ids.is_empty() {
        return Ok(HashMap::new());
    }
    let has_hidden = readable.all().iter().any(|source| {
        let is_worlds = source.is_public && source.is_of != SourceOwner::Viewer;
        !is_worlds && source.key.instance == instance
    });
    if !has_hidden && readable.instances().len() < 2 {
        return Ok(HashMap::new());
    }
    let found = tx.query_each(
        "select upstream_id, post_id from upstream_post
         where upstream_id = {row 1} and instance_id = $1 and post_id <> 0",
        &[&sql(instance)],
        &[Column::text(upstream_ids.iter().copied())],
        |row| Ok((row.text("upstream_id")?, row.i64("post_id")?)),
    )?;
    let found: HashMap<String, i64> = found.into_iter().collect();
    let ids: Vec<i64> = found.values().copied().collect();
    let mut posts = stored_post::by_ids(tx, &ids, Some(&[sql(instance)]), readable.viewer())?;
    let copies = Copies::load(tx, &mut posts, readable)?;
    if !has_hidden {
        posts.retain(|id, found| copies.has(*id) || !found.listed);
    }
    let places = FirstPlaces::load(tx, &posts, &copies, &Rule::Readable(readable))?;
    let (mut named, mut unseen) = (HashMap::new(), Vec::new());
    for upstream_id in upstream_ids {
        let stored = found.get(*upstream_id);
        match stored.and_then(|id| Some((id, places.of_post(*id)?))) {
            Some((id, first)) if has_hidden || copies.has(*id) => {
                named.insert((*upstream_id).to_owned(), from_sql(first.place)?);
            }
            Some(_) => {}
            None if stored.is_none_or(|id| posts.get(id).is_some_and(|found| !found.listed)) => {
                unseen.push(*upstream_id);
            }
            None => {}
        }
    }
    named.extend(replied_to::through_copies(tx, instance, &unseen, readable)?);
    Ok(named)
}
