//! Removes sources.

use std::collections::HashMap;

use driftline_db::{Column, DbError, Tx};

use crate::{
    directory,
    error::StoreError,
    id_types::{SourceKey, from_sql},
    library,
    mirror::machine::LockedSource,
    posts::instance,
    refresh,
    sharing::change,
};

/// How much was removed with a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Its entries.
    pub entries: u64,
    /// Their posts that no other source has.
    pub posts: u64,
}

/// Removes a source with its entries, its gaps and the posts that no other source has. To be
/// written below [`crate::mirror::source::root`] of it.
///
/// The IDs of what was removed are never given again.
pub fn remove(tx: &mut Tx<'_>, source: SourceKey) -> Result<Removed, StoreError> {
    let held = LockedSource::load(tx, source, None)?;
    instance::hold(tx, held.instance_id)?;
    let others = tx.query(
        "select id from source where instance_id = $1 and id <> $2 order by id",
        &[&held.instance_id, &held.id],
        |row| {
            let id = from_sql(row.i64("id")?)?;
            Ok(SourceKey { id, ..source })
        },
    )?;
    let mut removed = Removed::default();
    let mut after = i64::MIN;
    loop {
        let posts = tx.query(
            "select id, post_id from entry
             where source_id = $1 and instance_id = $4 and id > $2 order by id limit $3",
            &[&held.id, &after, &BATCH, &held.instance_id],
            |row| Ok((row.i64("id")?, row.i64("post_id")?)),
        )?;
        let Some((last, _)) = posts.last() else { break };
        after = *last;
        removed.entries += posts.len() as u64;
        let ids: Vec<i64> = posts.iter().map(|(_, post_id)| *post_id).collect();
        removed.posts += remove_posts(tx, &held, &others, &ids)?;
    }
    let lookup_ids = tx.query(
        "select lookup_id from pending_lookup where source_id = $1 and instance_id = $2",
        &[&held.id, &held.instance_id],
        |row| row.i64("lookup_id"),
    )?;
    refresh::unschedule(tx, held.instance_id, &lookup_ids)?;
    for sql in [
        "delete from pending_lookup where source_id = $1 and instance_id = $2",
        "delete from entry where source_id = $1 and instance_id = $2",
        "delete from gap where source_id = $1 and instance_id = $2",
        "delete from quarantine where source_id = $1 and instance_id = $2",
        "delete from source where id = $1 and instance_id = $2",
    ] {
        tx.execute(sql, &[&held.id, &held.instance_id])?;
    }
    library::remove(tx, source)?;
    directory::remove(tx, directory::Kind::Source, held.id)?;
    change::raise_later(tx)?;
    Ok(removed)
}

/// Removes the posts that no other source has, and hands each of the rest over to one that has it.
fn remove_posts(
    tx: &mut Tx<'_>,
    held: &LockedSource,
    others: &[SourceKey],
    post_ids: &[i64],
) -> Result<u64, StoreError> {
    let mut new_owners: HashMap<i64, i64> = HashMap::new();
    for other in others {
        for post_id in held_by(tx, *other, post_ids)? {
            new_owners.entry(post_id).or_insert(other.id());
        }
    }
    tx.execute_many(
        "update post set first_source_id = r.source_id from {rows as r(id, source_id)}
         where post.id = r.id and post.instance_id = $2 and post.first_source_id = $1",
        &[&held.id, &held.instance_id],
        &[
            Column::i64(new_owners.keys().copied()),
            Column::i64(new_owners.values().copied()),
        ],
    )?;
    let unreferenced: Vec<i64> = post_ids
        .iter()
        .copied()
        .filter(|id| !new_owners.contains_key(id))
        .collect();
    let column = || Column::i64(unreferenced.iter().copied());
    // A post that others name keeps the ID by which they do.
    for sql in [
        "update upstream_post set post_id = 0
         where reference_id is not null and instance_id = $2 and upstream_id in
             (select upstream_id from post where id {in $1} and instance_id = $2)",
        "delete from upstream_post
         where reference_id is null and instance_id = $2 and upstream_id in
             (select upstream_id from post where id {in $1} and instance_id = $2)",
    ] {
        tx.execute(sql, &[&column(), &held.instance_id])?;
    }
    // Saves lock posts before what hangs on them.
    let posts = tx.execute(
        "delete from post where id {in $1} and instance_id = $2",
        &[&column(), &held.instance_id],
    )?;
    refresh::unschedule(tx, held.instance_id, &unreferenced)?;
    for sql in [
        "delete from count_history where post_id {in $1} and instance_id = $2",
        "delete from post_history where post_id {in $1} and instance_id = $2",
    ] {
        tx.execute(sql, &[&column(), &held.instance_id])?;
    }
    // An alias without a post keeps an ID from being given again.
    tx.execute(
        "update entry_alias set post_id = null where instance_id = $3 and id in
             (select id from entry
              where source_id = $1 and instance_id = $3 and post_id {in $2})",
        &[&held.id, &column(), &held.instance_id],
    )?;
    tx.execute_many(
        "insert into entry_alias (id, instance_id, post_id)
         select r.id, $1, null from {rows as r(id)} where true
         on conflict ({key id + instance_id}) do nothing",
        &[&held.instance_id],
        &[column()],
    )?;
    Ok(posts)
}

fn held_by(tx: &mut Tx<'_>, source: SourceKey, post_ids: &[i64]) -> Result<Vec<i64>, DbError> {
    let ids = Column::i64(post_ids.iter().copied());
    tx.query(
        "select post_id from entry
         where source_id = $1 and instance_id = $3 and id {in $2} and id = post_id
         union
         select post_id from entry
         where source_id = $1 and instance_id = $3 and post_id {in $2} and id <> post_id",
        &[&source.id(), &ids, &source.instance_id()],
        |row| row.i64("post_id"),
    )
}

const BATCH: i64 = 1000;
