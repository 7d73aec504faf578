//! Removes sources.

use std::collections::{HashMap, HashSet};

use driftline_db::{Column, DbError, Tx};

use crate::{
    directory,
    error::StoreError,
    id_types::{SourceKey, from_sql},
    library,
    mirror::machine::LockedSource,
    new_ids::TakenIds,
    posts::{
        account_profile, index_pending, instance, post, post_removal, post_text, scoped_content,
    },
    refresh,
    sharing::change,
    viewer::Owner,
};

/// The rows that are removed with a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// The number of its entries.
    pub entries: u64,
    /// The number of their posts that no other source has: removed, or kept without a source.
    pub posts: u64,
    /// The number of its gaps: ranges that are not proven complete.
    pub gaps: u64,
    /// The number of its pending look-ups, including failed ones.
    pub lookups: u64,
    /// The number of its items from which no post could be read.
    pub unreadable: u64,
}

/// The treatment of posts that no other source has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastPosts {
    /// They are removed, with their histories.
    Remove,
    /// They stay, are shown and refreshed as before, and belong to no source.
    Keep,
}

/// The rows that would be removed with a source now. Reads each of its entries.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn removal(tx: &mut Tx<'_>, source: SourceKey) -> Result<Removed, StoreError> {
    let others = others(tx, source)?;
    let mut removed = counts(tx, source)?;
    let mut after = i64::MIN;
    let mut last = HashSet::new();
    while let Some(ids) = next_posts(tx, source, &mut after)? {
        removed.entries += ids.len() as u64;
        let kept = new_owners(tx, &others, &ids)?;
        last.extend(ids.into_iter().filter(|id| !kept.contains_key(id)));
    }
    removed.posts = last.len() as u64;
    Ok(removed)
}

/// Removes a source with its entries and its gaps. Posts that another source has stay. Must be
/// written below [`crate::mirror::source::root`] of it.
///
/// The removed IDs are never given again.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn remove(
    tx: &mut Tx<'_>,
    source: SourceKey,
    last_posts: LastPosts,
) -> Result<Removed, StoreError> {
    let held = LockedSource::load(tx, source, None)?;
    instance::hold(tx, held.instance_id)?;
    let others = others(tx, source)?;
    let mut removed = counts(tx, source)?;
    let mut after = i64::MIN;
    // A source may list a post more than once.
    let mut kept = HashSet::new();
    while let Some(ids) = next_posts(tx, source, &mut after)? {
        removed.entries += ids.len() as u64;
        let new_owners = new_owners(tx, &others, &ids)?;
        hand_over(tx, &held, &new_owners)?;
        let stay: Vec<i64> = new_owners.keys().copied().collect();
        scoped_content::release(tx, held.instance_id, &stay, (held.scope, Some(held.id)))?;
        post_text::remove_unused(tx, held.instance_id, &stay)?;
        index_pending::add(tx, held.instance_id, ids.iter().copied(), &TakenIds::NONE)?;
        if held.is_public() {
            let hidden = no_longer_public(tx, &held, &stay)?;
            post::withdraw(tx, held.instance_id, &hidden)?;
        }
        let last = ids.into_iter().filter(|id| !new_owners.contains_key(id));
        match last_posts {
            LastPosts::Remove => {
                let mut last: Vec<i64> = last.collect();
                let others = kept_by_operator(tx, &held, &last)?;
                last.retain(|id| !others.contains(id));
                removed.posts += remove_posts(tx, &held, &last)?;
            }
            LastPosts::Keep => kept.extend(last),
        }
    }
    removed.posts += kept.len() as u64;
    if !kept.is_empty() {
        instance::set_keeps_posts(tx, held.instance_id)?;
    }
    account_profile::remove_all(tx, source)?;
    let lookup_ids = lookups_of(tx, source)?;
    refresh::unschedule(tx, held.instance_id, &lookup_ids)?;
    for sql in [
        "delete from pending_lookup where source_id = $1 and instance_id = $2",
        "delete from entry where source_id = $1 and instance_id = $2",
        "delete from gap where source_id = $1 and instance_id = $2",
        "delete from quarantine where source_id = $1 and instance_id = $2",
        "delete from fetched_account where source_id = $1 and instance_id = $2",
        "delete from source where id = $1 and instance_id = $2",
    ] {
        tx.execute(sql, &[&held.id, &held.instance_id])?;
    }
    library::remove(tx, library::LibraryOwner::Source(source))?;
    directory::remove(tx, directory::Kind::Source, held.id)?;
    change::raise_later(tx)?;
    Ok(removed)
}

/// The look-ups of a source, pending or failed.
pub(crate) fn lookups_of(tx: &mut Tx<'_>, source: SourceKey) -> Result<Vec<i64>, DbError> {
    tx.query(
        "select lookup_id from pending_lookup where source_id = $1 and instance_id = $2",
        &[&source.id(), &source.instance_id()],
        |row| row.i64("lookup_id"),
    )
}

/// The other sources of its instance.
fn others(tx: &mut Tx<'_>, source: SourceKey) -> Result<Vec<SourceKey>, DbError> {
    tx.query(
        "select id from source where instance_id = $1 and id <> $2 order by id",
        &[&source.instance_id(), &source.id()],
        |row| {
            let id = from_sql(row.i64("id")?)?;
            Ok(SourceKey { id, ..source })
        },
    )
}

/// The rows that are removed with it, besides entries and posts.
fn counts(tx: &mut Tx<'_>, source: SourceKey) -> Result<Removed, DbError> {
    let mut count = |table: &str| {
        let sql = format!(
            "select count(*) as found from {table} where source_id = $1 and instance_id = $2"
        );
        let found = tx.query_one(&sql, &[&source.id(), &source.instance_id()], |row| {
            row.i64("found")
        });
        found.map(i64::cast_unsigned)
    };
    Ok(Removed {
        gaps: count("gap")?,
        lookups: count("pending_lookup")?,
        unreadable: count("quarantine")?,
        ..Removed::default()
    })
}

/// The posts of the source's next entries, in the order of these; `None` after the last.
pub(crate) fn next_posts(
    tx: &mut Tx<'_>,
    source: SourceKey,
    after: &mut i64,
) -> Result<Option<Vec<i64>>, DbError> {
    let entries = tx.query(
        "select id, post_id from entry
         where source_id = $1 and instance_id = $4 and id > $2 order by id limit $3",
        &[&source.id(), after, &BATCH, &source.instance_id()],
        |row| Ok((row.i64("id")?, row.i64("post_id")?)),
    )?;
    let Some((last, _)) = entries.last() else {
        return Ok(None);
    };
    *after = *last;
    Ok(Some(entries.iter().map(|(_, post_id)| *post_id).collect()))
}

/// The posts that other sources have, each with the first of these sources.
fn new_owners(
    tx: &mut Tx<'_>,
    others: &[SourceKey],
    post_ids: &[i64],
) -> Result<HashMap<i64, i64>, DbError> {
    let mut new_owners: HashMap<i64, i64> = HashMap::new();
    for other in others {
        for post_id in refresh::held_by(tx, (other.id(), other.instance_id()), post_ids)? {
            new_owners.entry(post_id).or_insert(other.id());
        }
    }
    Ok(new_owners)
}

/// The posts that the world reads although no source shows them to it, because the operator keeps
/// them. No other source has any of these.
fn kept_by_operator(
    tx: &mut Tx<'_>,
    held: &LockedSource,
    post_ids: &[i64],
) -> Result<HashSet<i64>, DbError> {
    let found = tx.query(
        "select id from post where id {in $1} and instance_id = $2 and in_public and (claimed and $3 or not $4)",
        &[
            &Column::i64(post_ids.iter().copied()),
            &held.instance_id,
            &held.is_accounts,
            &held.is_public(),
        ],
        |row| row.i64("id"),
    )?;
    Ok(found.into_iter().collect())
}

/// The posts that only one public source shows to the world.
pub(crate) fn no_longer_public(
    tx: &mut Tx<'_>,
    held: &LockedSource,
    post_ids: &[i64],
) -> Result<Vec<i64>, DbError> {
    let mut hidden = without_public_source(tx, held.key, post_ids)?;
    if held.is_accounts {
        let claimed = post::claimed(tx, held.instance_id, hidden.iter().copied())?;
        hidden.retain(|id| !claimed.contains(id));
    }
    Ok(hidden)
}

/// The posts that no other source of its instance shows to the world.
fn without_public_source(
    tx: &mut Tx<'_>,
    source: SourceKey,
    post_ids: &[i64],
) -> Result<Vec<i64>, DbError> {
    let public = tx.query(
        "select id, owner_id from source where instance_id = $1 and id <> $2 and audience = 'public'",
        &[&source.instance_id(), &source.id()],
        |row| {
            let id = from_sql(row.i64("id")?)?;
            let owner = Owner::of(row.i64("owner_id")?)?;
            Ok((owner == Owner::Operator, SourceKey { id, ..source }))
        },
    )?;
    let (operators, accounts): (Vec<_>, Vec<_>) = public.into_iter().partition(|(is, _)| *is);
    let [operators, accounts] =
        [operators, accounts].map(|of| of.into_iter().map(|(_, key)| key).collect::<Vec<_>>());
    let shown = new_owners(tx, &operators, post_ids)?;
    let mut hidden: Vec<i64> = post_ids.to_vec();
    hidden.retain(|id| !shown.contains_key(id));
    let published = new_owners(tx, &accounts, &hidden)?;
    let claimed = post::claimed(tx, source.instance_id(), published.keys().copied())?;
    hidden.retain(|id| !published.contains_key(id) || claimed.contains(id));
    Ok(hidden)
}

/// Assigns posts to other sources that have them.
fn hand_over(
    tx: &mut Tx<'_>,
    held: &LockedSource,
    new_owners: &HashMap<i64, i64>,
) -> Result<(), DbError> {
    tx.execute_many(
        "update post set first_source_id = r.source_id from {rows as r(id, source_id)}
         where post.id = r.id and post.instance_id = $2 and post.first_source_id = $1",
        &[&held.id, &held.instance_id],
        &[
            Column::i64(new_owners.keys().copied()),
            Column::i64(new_owners.values().copied()),
        ],
    )?;
    Ok(())
}

/// Removes posts that no other source has.
fn remove_posts(
    tx: &mut Tx<'_>,
    held: &LockedSource,
    unreferenced: &[i64],
) -> Result<u64, StoreError> {
    let removed = post_removal::remove(tx, held.instance_id, unreferenced)?;
    tx.execute(
        "update entry_alias set post_id = null where instance_id = $3 and id in
             (select id from entry
              where source_id = $1 and instance_id = $3 and post_id {in $2})",
        &[
            &held.id,
            &Column::i64(unreferenced.iter().copied()),
            &held.instance_id,
        ],
    )?;
    Ok(removed)
}

const BATCH: i64 = 1000;
