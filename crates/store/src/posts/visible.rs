//! Which stored posts a viewer may see at all, in whatever source.

use std::collections::HashSet;

use driftline_core::post::Visibility;
use driftline_db::{Column, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    posts::find,
    viewer::{ReadableSources, Viewer},
};

/// Those of these posts of an instance that a viewer may see: a source that the viewer may read has them, or the
/// operator keeps them without one.
pub fn visible(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[LocalId],
    viewer: Viewer,
) -> Result<HashSet<LocalId>, StoreError> {
    if posts.is_empty() || viewer == Viewer::Operator && is_operators_alone(tx, instance)? {
        return Ok(posts.iter().copied().collect());
    }
    let readable = ReadableSources::load(tx, viewer)?;
    let (instance_id, ids) = (sql(instance), Column::i64(posts.iter().map(|id| sql(*id))));
    let entries = tx.query(
        "select post_id, source_id, visibility from entry
         where instance_id = $1 and id {in $2} and id = post_id
         union
         select post_id, source_id, visibility from entry
         where instance_id = $1 and post_id {in $2} and id <> post_id",
        &[&instance_id, &ids],
        |row| {
            Ok((
                row.i64("post_id")?,
                row.i64("source_id")?,
                row.i64("visibility")?,
            ))
        },
    )?;
    let stored = tx.query(
        "select id, visibility, in_public from post where id {in $2} and instance_id = $1",
        &[&instance_id, &ids],
        |row| {
            let visibility = Visibility::named_or_narrowest(row.str("visibility")?);
            Ok((
                row.i64("id")?,
                visibility.narrowness(),
                row.bool("in_public")?,
            ))
        },
    )?;
    let mut seen = HashSet::new();
    for (id, visibility, in_public) in stored {
        let mut own = entries
            .iter()
            .filter(|(post_id, ..)| *post_id == id)
            .peekable();
        let is_kept = own.peek().is_none() && in_public && visibility == 0;
        let is_shown = own.any(|(_, source_id, of_entry)| {
            let source = readable.of_raw(*source_id);
            source.is_some_and(|source| visibility.max(*of_entry) <= source.shows.narrowness())
        });
        if is_kept || is_shown {
            seen.insert(from_sql(id)?);
        }
    }
    Ok(seen)
}

/// Whether no account has anything of an instance, threads included.
fn is_operators_alone(tx: &mut Tx<'_>, instance: InstanceId) -> Result<bool, StoreError> {
    let of_account = tx.query_opt(
        "select id from source where instance_id = $1 and owner_id <> 0 limit 1",
        &[&sql(instance)],
        |row| row.i64("id"),
    )?;
    Ok(of_account.is_none())
}

/// Whether a viewer may see a stored post.
pub fn is_visible(tx: &mut Tx<'_>, post: LocalId, viewer: Viewer) -> Result<bool, StoreError> {
    let Some(instance) = find::instance_of(tx, post)? else {
        return Ok(false);
    };
    Ok(visible(tx, instance, &[post], viewer)?.contains(&post))
}
