//! Changes of a source's name, and of the refreshing of its posts.

use driftline_core::refresh::Policy;
use driftline_db::{DbError, Tx};

use crate::mirror::source::{NameRefused, by_id, by_name, is_name_for, set};
use crate::{
    directory::{self, Kind},
    error::StoreError,
    id_types::SourceKey,
    local_ids,
    posts::instance,
    refresh,
    sharing::change,
};

/// Gives a source another name, which must have its owner's prefix for an account's source. Must be
/// written below [`crate::mirror::source::root`] of it.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn rename(
    tx: &mut Tx<'_>,
    source: SourceKey,
    name: &str,
) -> Result<Result<(), NameRefused>, StoreError> {
    let known = by_id(tx, source.id)?.ok_or(StoreError::NoSource)?;
    if !is_name_for(known.owner, name) {
        return Ok(Err(NameRefused::Bad));
    }
    // Only the transaction that locks the clock gives names.
    tx.lock_later(local_ids::root())?;
    if by_name(tx, name)?.is_some() {
        return Ok(Err(NameRefused::Taken));
    }
    set(tx, source, "name", &name)?;
    directory::remove(tx, Kind::Source, source.id())?;
    let row = (source.id(), source.instance_id());
    directory::add(tx, Kind::Source, name, row)?;
    Ok(Ok(()))
}

/// Turns refreshing of a source's posts on or off. Posts without a due time get one by the policy.
/// Posts that no source keeps fresh any more are removed from the schedule when they are due. Must
/// be written below [`crate::mirror::source::root`] of it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn set_refreshing(
    tx: &mut Tx<'_>,
    source: SourceKey,
    refreshing: bool,
    policy: &Policy,
) -> Result<(), StoreError> {
    // A save that removes posts from the schedule locks it, too.
    instance::hold(tx, source.instance_id())?;
    set(tx, source, "refreshing", &refreshing)?;
    let mut after = i64::MIN;
    while refreshing && let Some(ids) = live_posts(tx, source, &mut after)? {
        // No request was sent for them, so their last answers stay the last.
        refresh::revive(tx, source.instance_id(), policy, i64::MIN, &ids)?;
    }
    Ok(())
}

/// Stops fetching for a source because its owner's account is frozen, or lets it continue. Returns
/// `false` if nothing changed.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn set_suspended(
    tx: &mut Tx<'_>,
    source: SourceKey,
    suspended: bool,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "update source set suspended = $2 where id = $1 and instance_id = $3 and suspended <> $2",
        &[&source.id(), &suspended, &source.instance_id()],
    )?;
    if changed > 0 {
        change::raise_later(tx)?;
    }
    Ok(changed > 0)
}

/// The posts of the source's next entries that are not deleted; `None` after the last.
fn live_posts(
    tx: &mut Tx<'_>,
    source: SourceKey,
    after: &mut i64,
) -> Result<Option<Vec<i64>>, DbError> {
    let entries = tx.query(
        "select e.id, e.post_id from entry e
         join post p on p.id = e.post_id and p.instance_id = e.instance_id
         where e.source_id = $1 and e.instance_id = $4 and e.id > $2 and p.deleted_at_ms is null
         order by e.id limit $3",
        &[&source.id(), after, &BATCH, &source.instance_id()],
        |row| Ok((row.i64("id")?, row.i64("post_id")?)),
    )?;
    let Some((last, _)) = entries.last() else {
        return Ok(None);
    };
    *after = *last;
    let mut posts: Vec<i64> = entries.iter().map(|(_, post_id)| *post_id).collect();
    posts.sort_unstable();
    posts.dedup();
    Ok(Some(posts))
}

const BATCH: i64 = 1000;
