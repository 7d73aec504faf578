//! The rebuild of searchable texts, for posts that were stored without them, or whose texts another
//! version of the extraction made.
//!
//! It walks all posts in order of their IDs, in portions. Posts with present texts and documents in the
//! search index are skipped, so an interrupted rebuild begins again at the first post and writes what is left.

use std::collections::{BTreeMap, HashMap};

use driftline_core::post_text::PostText;
use driftline_db::{Column, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    new_ids::TakenIds,
    posts::{
        index_pending,
        post_text::{self, VersionText},
    },
};

/// The next posts of a rebuild.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// The number of its posts.
    pub posts: u64,
    /// The last of them, after which the next portion begins.
    pub last: LocalId,
    /// The posts that have no text of the extraction, or no document in the search index, by their
    /// instances.
    pub outdated: BTreeMap<InstanceId, Vec<LocalId>>,
}

/// The number of stored posts. Reads the keys of all of them.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn count_posts(tx: &mut Tx<'_>) -> Result<u64, StoreError> {
    let counts = tx.query(
        "select count(*) as posts from upstream_post where post_id <> 0 group by instance_id",
        &[],
        |row| row.i64("posts"),
    )?;
    Ok(counts.into_iter().map(i64::cast_unsigned).sum())
}

/// The next posts after an ID, at most [`PORTION_POSTS`]; `None` after the last ones. `extraction`
/// is the present version.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn next_portion(
    tx: &mut Tx<'_>,
    after: Option<LocalId>,
    extraction: i64,
) -> Result<Option<Portion>, StoreError> {
    let lacks_text = |version: &str| {
        format!(
            "not exists (select 1 from post_text t where t.post_id = p.id
                 and t.instance_id = p.instance_id
                 and t.content_hash = {version}.content_hash and t.extraction = $2)"
        )
    };
    let rows = tx.query(
        &format!(
            "select p.id, p.instance_id, p.raw is not null and {}
                 or exists (select 1 from scoped_content c where c.post_id = p.id
                     and c.instance_id = p.instance_id and {})
                 or p.deleted_at_ms is null
                 and not exists (select 1 from indexed_place i
                     where i.post_id = p.id and i.instance_id = p.instance_id)
                 and not exists (select 1 from index_pending q
                     where q.post_id = p.id and q.instance_id = p.instance_id) as is_outdated
             from post p where p.id > $1 order by p.id limit $3",
            lacks_text("p"),
            lacks_text("c")
        ),
        &[&after.map_or(0, sql), &extraction, &PORTION_POSTS],
        |row| {
            let post = from_sql(row.i64("id")?)?;
            let instance = from_sql(row.i64("instance_id")?)?;
            Ok((post, instance, row.bool("is_outdated")?))
        },
    )?;
    let Some((last, ..)) = rows.last().copied() else {
        return Ok(None);
    };
    let posts = rows.len() as u64;
    let mut outdated: BTreeMap<InstanceId, Vec<LocalId>> = BTreeMap::new();
    for (post, instance, _) in rows.into_iter().filter(|(.., is_outdated)| *is_outdated) {
        outdated.entry(instance).or_default().push(post);
    }
    Ok(Some(Portion {
        posts,
        last,
        outdated,
    }))
}

/// Makes the texts of an instance's posts again, from their stored JSON, and adds the posts to
/// those that the search index has still to read. Must be written below [`super::instance::root`].
/// Returns the number of texts.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn rebuild(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    posts: &[LocalId],
    extract: impl Fn(&str) -> PostText,
) -> Result<u64, StoreError> {
    let instance_id = sql(instance);
    let ids: Vec<i64> = posts.iter().map(|post| sql(*post)).collect();
    // Versions with one hash have one text.
    let texts = tx.query(
        "select id, content_hash, raw from post
         where id {in $1} and instance_id = $2 and raw is not null
         union all select post_id, content_hash, raw from scoped_content
         where post_id {in $1} and instance_id = $2",
        &[&Column::i64(ids.iter().copied()), &instance_id],
        |row| {
            let version = (row.i64("id")?, row.i64("content_hash")?);
            Ok((version, extract(row.str("raw")?)))
        },
    )?;
    let mut by_version: HashMap<(i64, i64), PostText> = HashMap::new();
    for (version, text) in texts {
        let merged = match by_version.remove(&version) {
            Some(other) => other.with_labels_of(&text),
            None => text,
        };
        by_version.insert(version, merged);
    }
    let texts = by_version;
    let texts: Vec<VersionText<'_>> = texts
        .iter()
        .map(|((post_id, content_hash), text)| VersionText {
            post_id: *post_id,
            content_hash: *content_hash,
            text,
        })
        .collect();
    post_text::store(tx, instance_id, &texts, &TakenIds::NONE)?;
    post_text::remove_unused(tx, instance_id, &ids)?;
    index_pending::add(tx, instance_id, ids, &TakenIds::NONE)?;
    Ok(texts.len() as u64)
}

/// The largest number of posts of a portion.
pub const PORTION_POSTS: u32 = 500;
