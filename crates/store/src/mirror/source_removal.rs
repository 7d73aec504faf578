//! Removes sources.

use std::collections::HashMap;

use driftline_db::{Column, DbError, Tx};

use crate::{
    error::StoreError, id_types::SourceId, library, mirror::machine::LockedSource, posts::instance,
    refresh, sharing::change,
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
pub fn remove(tx: &mut Tx<'_>, source: SourceId) -> Result<Removed, StoreError> {
    let held = LockedSource::load(tx, source, None)?;
    instance::hold(tx, held.instance_id)?;
    let others = tx.query(
        "select id from source where instance_id = $1 and id <> $2 order by id",
        &[&held.instance_id, &held.id],
        |row| row.i64("id"),
    )?;
    let mut removed = Removed::default();
    let mut after = i64::MIN;
    loop {
        let posts = tx.query(
            "select id, post_id from entry where source_id = $1 and id > $2 order by id limit $3",
            &[&held.id, &after, &BATCH],
            |row| Ok((row.i64("id")?, row.i64("post_id")?)),
        )?;
        let Some((last, _)) = posts.last() else { break };
        after = *last;
        removed.entries += posts.len() as u64;
        let ids: Vec<i64> = posts.iter().map(|(_, post_id)| *post_id).collect();
        removed.posts += remove_posts(tx, &held, &others, &ids)?;
    }
    let lookup_ids = tx.query(
        "select lookup_id from pending_lookup where source_id = $1",
        &[&held.id],
        |row| row.i64("lookup_id"),
    )?;
    refresh::unschedule(tx, &lookup_ids)?;
    for sql in [
        "delete from pending_lookup where source_id = $1",
        "delete from entry where source_id = $1",
        "delete from gap where source_id = $1",
        "delete from quarantine where source_id = $1",
        "delete from source where id = $1",
    ] {
        tx.execute(sql, &[&held.id])?;
    }
    library::remove(tx, held.id)?;
    change::raise_later(tx)?;
    Ok(removed)
}

/// Removes the posts that no other source has, and hands each of the rest over to one that has it.
fn remove_posts(
    tx: &mut Tx<'_>,
    held: &LockedSource,
    others: &[i64],
    post_ids: &[i64],
) -> Result<u64, StoreError> {
    let mut new_owners: HashMap<i64, i64> = HashMap::new();
    for other in others {
        for post_id in held_by(tx, *other, post_ids)? {
            new_owners.entry(post_id).or_insert(*other);
        }
    }
    tx.execute_many(
        "update post set first_source_id = r.source_id from {rows as r(id, source_id)}
         where post.id = r.id and post.first_source_id = $1",
        &[&held.id],
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
         where reference_id is not null and (upstream_id, instance_id) in
             (select upstream_id, instance_id from post where id {in $1})",
        "delete from upstream_post
         where reference_id is null and (upstream_id, instance_id) in
             (select upstream_id, instance_id from post where id {in $1})",
    ] {
        tx.execute(sql, &[&column()])?;
    }
    // Saves lock posts before what hangs on them.
    let posts = tx.execute("delete from post where id {in $1}", &[&column()])?;
    refresh::unschedule(tx, &unreferenced)?;
    for sql in [
        "delete from count_history where post_id {in $1}",
        "delete from post_history where post_id {in $1}",
    ] {
        tx.execute(sql, &[&column()])?;
    }
    // An alias without a post keeps an ID from being given again.
    tx.execute(
        "update entry_alias set post_id = null where id in
             (select id from entry where source_id = $1 and post_id {in $2})",
        &[&held.id, &column()],
    )?;
    tx.execute_many(
        "insert into entry_alias (id, post_id) select r.id, null from {rows as r(id)} where true
         on conflict (id) do nothing",
        &[],
        &[column()],
    )?;
    Ok(posts)
}

fn held_by(tx: &mut Tx<'_>, source_id: i64, post_ids: &[i64]) -> Result<Vec<i64>, DbError> {
    let ids = Column::i64(post_ids.iter().copied());
    tx.query(
        "select post_id from entry where source_id = $1 and id {in $2} and id = post_id
         union
         select post_id from entry where source_id = $1 and post_id {in $2} and id <> post_id",
        &[&source_id, &ids],
        |row| row.i64("post_id"),
    )
}

const BATCH: i64 = 1000;
