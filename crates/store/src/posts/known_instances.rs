//! The instances that a viewer may know. Private sources of others are treated as if they did not
//! exist.

use std::collections::{HashMap, HashSet};

use driftline_db::{Column, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, from_sql, sql},
    mirror::source,
    posts::{
        instance::{self, Instance},
        shown_condition::ShownCondition,
    },
    quota::credential,
    viewer::{ReadableSources, Viewer},
};

/// The instances that a viewer may know, in order of their IDs: those of the sources that the
/// viewer may read and of the viewer's own credentials; for the operator also those of which posts
/// are kept without a source.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn known_to(tx: &mut Tx<'_>, viewer: Viewer) -> Result<Vec<Instance>, StoreError> {
    let own = viewer.owner();
    let sources = source::readable(tx, viewer)?.into_iter();
    let mut known: HashSet<InstanceId> = sources.map(|source| source.instance.id).collect();
    // A credential without a token is the operator's, whichever source it came with.
    let credentials = credential::list(tx)?.into_iter();
    let credentials =
        credentials.filter(|of| Some(of.owner) == own && (of.token.is_some() || of.is_added));
    known.extend(credentials.map(|of| of.instance));
    if viewer == Viewer::Operator {
        let keeping = tx.query(
            "select id, keeps_posts from instance order by id",
            &[],
            |row| Ok((from_sql(row.i64("id")?)?, row.bool("keeps_posts")?)),
        )?;
        let keeping = keeping.into_iter().filter(|(_, keeps_posts)| *keeps_posts);
        known.extend(keeping.map(|(id, _)| id));
    }
    let mut all = instance::all(tx)?;
    all.retain(|instance| known.contains(&instance.id));
    Ok(all)
}

/// The number of stored posts of each instance that has any. Posts are left out if only sources
/// have them that the viewer may not read. Reads the keys of all posts, and the entries of these
/// sources.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn post_counts(
    tx: &mut Tx<'_>,
    viewer: Viewer,
) -> Result<HashMap<InstanceId, u64>, StoreError> {
    let counts = tx.query(
        "select instance_id, count(*) as posts from upstream_post where post_id <> 0
         group by instance_id",
        &[],
        |row| {
            let instance: InstanceId = from_sql(row.i64("instance_id")?)?;
            Ok((instance, row.i64("posts")?.cast_unsigned()))
        },
    )?;
    let mut counts: HashMap<InstanceId, u64> = counts.into_iter().collect();
    let readable = ReadableSources::load(tx, viewer)?;
    for (instance, posts) in &mut counts {
        *posts = posts.saturating_sub(hidden_posts(tx, *instance, &readable)?);
    }
    counts.retain(|_, posts| *posts > 0);
    Ok(counts)
}

/// The number of an instance's posts that have entries, but no readable one.
fn hidden_posts(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    readable: &ReadableSources,
) -> Result<u64, StoreError> {
    let sources = tx.query(
        "select id from source where instance_id = $1",
        &[&sql(instance)],
        |row| row.i64("id"),
    )?;
    let is_own = |id: &i64| readable.of_raw(*id).is_some_and(|of| of.shows_all());
    let limited: Vec<i64> = sources.into_iter().filter(|id| !is_own(id)).collect();
    if limited.is_empty() {
        return Ok(0);
    }
    let condition = ShownCondition::of(readable, instance);
    let [id, world, members, own] = condition.entry_params();
    let shown = ShownCondition::entry("h.post_id");
    let hidden = tx.query_one(
        &format!(
            "select count(distinct h.post_id) as posts from entry h
             where h.instance_id = $1 and h.source_id {{in $5}}
                 and not exists (select 1 from entry e where e.instance_id = $1
                     and e.id = h.post_id and e.id = e.post_id and {shown})
                 and not exists (select 1 from entry e where e.instance_id = $1
                     and e.post_id = h.post_id and e.id <> e.post_id and {shown})
                 and not exists (select 1 from post p
                     where p.id = h.post_id and p.instance_id = $1 and p.in_public)",
        ),
        &[id, world, members, own, &Column::i64(limited)],
        |row| row.i64("posts"),
    )?;
    Ok(hidden.cast_unsigned())
}
