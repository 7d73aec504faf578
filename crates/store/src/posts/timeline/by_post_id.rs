//! Posts by the IDs by which the store knows them, for things that people keep.

use std::collections::{HashMap, HashSet};

use driftline_db::{Column, PendingRows, Tx};

use super::{
    copies::{self, Copies},
    entries,
    first_places::FirstPlaces,
    rule::Rule,
    stored_post::{self, StoredPost},
    timeline_post::{PostKey, TimelinePost},
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    viewer::{LazyReadableSources, ReadableSources, Viewer},
};

/// Those of some posts that a viewer may see now, by the requested [`PostKey::post`]: each at its
/// first place in everything that the viewer may read, with the content of its best copy.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_post_ids(
    tx: &mut Tx<'_>,
    keys: &[PostKey],
    viewer: Viewer,
) -> Result<HashMap<LocalId, TimelinePost>, StoreError> {
    shown_to(tx, keys, &LazyReadableSources::new(viewer), ShownCopy::Best)
}

/// [`by_post_ids`] for a viewer whose sources other queries of the transaction use, too.
pub(crate) fn by_post_ids_in(
    tx: &mut Tx<'_>,
    keys: &[PostKey],
    sources: &LazyReadableSources,
) -> Result<HashMap<LocalId, TimelinePost>, StoreError> {
    shown_to(tx, keys, sources, ShownCopy::Best)
}

/// The version of each of these posts that [`by_post_ids`] shows, by the requested
/// [`PostKey::post`]: its place, its copy and the hash of its content. Counts change no version.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn shown_versions(
    tx: &mut Tx<'_>,
    keys: &[PostKey],
    viewer: Viewer,
) -> Result<HashMap<LocalId, String>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let sources = LazyReadableSources::new(viewer);
    let Group { posts, places, .. } = Group::load(tx, keys, &sources)?;
    let mut versions = HashMap::new();
    for key in keys {
        let first = places.of_post(sql(key.post));
        if let Some(first) = first
            && let Some(found) = posts.get(&first.content)
        {
            let (place, copy, hash) = (first.place, first.content, found.content_hash);
            versions.insert(key.post, format!("{place} {copy} {hash:016x}"));
        }
    }
    Ok(versions)
}

/// Posts with their copies, at the places where a viewer may see them.
struct Group {
    posts: HashMap<i64, StoredPost>,
    copies: Copies,
    places: FirstPlaces,
}

impl Group {
    fn load(
        tx: &mut Tx<'_>,
        keys: &[PostKey],
        sources: &LazyReadableSources,
    ) -> Result<Group, StoreError> {
        let ids: Vec<i64> = keys.iter().map(|key| sql(key.post)).collect();
        let instances: HashSet<i64> = keys.iter().map(|key| sql(key.instance)).collect();
        let instances: Vec<i64> = instances.into_iter().collect();
        let mut posts = stored_post::by_ids(tx, &ids, Some(&instances), sources.viewer())?;
        let readable = sources.get(tx)?;
        let copies = Copies::load(tx, &mut posts, readable)?;
        let places = FirstPlaces::load(tx, &posts, &copies, &Rule::Readable(readable))?;
        Ok(Group {
            posts,
            copies,
            places,
        })
    }
}

/// The copy of a post that is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownCopy {
    /// The best copy that the viewer may read.
    Best,
    /// The requested copy.
    Itself,
}

/// [`by_post_ids`] for a viewer with these sources, with the content of this copy.
pub(super) fn shown_to(
    tx: &mut Tx<'_>,
    keys: &[PostKey],
    sources: &LazyReadableSources,
    shown_copy: ShownCopy,
) -> Result<HashMap<LocalId, TimelinePost>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let Group {
        posts,
        copies,
        places,
    } = Group::load(tx, keys, sources)?;
    let mut shown = HashMap::new();
    for id in keys.iter().map(|key| sql(key.post)) {
        let Some(first) = places.of_post(id) else {
            continue;
        };
        let content = match shown_copy {
            ShownCopy::Best => posts.get(&first.content),
            ShownCopy::Itself => posts.get(&id).filter(|_| places.shows(id)),
        };
        if let Some(found) = content {
            let post = copies::at_place(found, first.place, &posts, &copies)?;
            shown.insert(from_sql(id)?, post);
        }
    }
    Ok(shown)
}

/// The other copies of posts that a viewer may read, from instances of which it may read a source,
/// by [`PostKey::post`]. Posts without copies are missing.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn copies_of(
    tx: &mut Tx<'_>,
    keys: &[PostKey],
    readable: &ReadableSources,
) -> Result<HashMap<LocalId, Vec<PostKey>>, StoreError> {
    if keys.is_empty() || readable.instances().len() < 2 {
        return Ok(HashMap::new());
    }
    let ids: Vec<i64> = keys.iter().map(|key| sql(key.post)).collect();
    let instances: HashSet<i64> = keys.iter().map(|key| sql(key.instance)).collect();
    let instances: Vec<i64> = instances.into_iter().collect();
    let mut posts = stored_post::by_ids(tx, &ids, Some(&instances), readable.viewer())?;
    let copies = Copies::load(tx, &mut posts, readable)?;
    posts.retain(|id, _| copies.has(*id));
    let known = FirstPlaces::load(tx, &posts, &copies, &Rule::Readable(readable))?;
    let mut found = HashMap::new();
    // Posts that the viewer may not read have no copies, like posts that are not stored.
    for id in ids.into_iter().filter(|id| known.of_post(*id).is_some()) {
        let others = copies.others_of(id).into_iter();
        let others = others.filter_map(|other| Some(posts.get(&other)?.post.key()));
        found.insert(from_sql(id)?, others.collect());
    }
    Ok(found)
}

/// The places at which timelines of several sources may have shown other copies of a post to a
/// viewer, the lowest first, both if they still do and if not.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn places_of_copies(
    tx: &mut Tx<'_>,
    key: PostKey,
    viewer: Viewer,
) -> Result<Vec<LocalId>, StoreError> {
    let readable = ReadableSources::load(tx, viewer)?;
    if readable.instances().len() < 2 {
        return Ok(Vec::new());
    }
    let mut posts = stored_post::by_ids(tx, &[sql(key.post)], Some(&[sql(key.instance)]), viewer)?;
    Copies::load(tx, &mut posts, &readable)?;
    posts.remove(&sql(key.post));
    let entries = entries::entries(tx, &posts.values())?;
    let known = entries.iter().filter(|entry| {
        let found = posts.get(&entry.post_id);
        found.is_some_and(|found| entry.is_readable(&readable, found))
    });
    let public = posts.values().filter(|found| found.listed);
    let public = public.map(|found| sql(found.post.public_id));
    let mut places: Vec<i64> = known.map(|entry| entry.id).chain(public).collect();
    places.sort_unstable();
    places.dedup();
    Ok(places.into_iter().map(from_sql).collect::<Result<_, _>>()?)
}

/// The stored posts of an instance with these IDs there, for any viewer.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn keys(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    upstream_ids: &[&str],
) -> Result<HashMap<String, PostKey>, StoreError> {
    if upstream_ids.is_empty() {
        return Ok(HashMap::new());
    }
    let pending = keys_later(tx, instance, upstream_ids)?;
    Ok(tx.rows(pending)?.into_iter().collect())
}

/// [`keys`], requested together with the next statement.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn keys_later(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    upstream_ids: &[&str],
) -> Result<PendingRows<'static, (String, PostKey)>, StoreError> {
    Ok(tx.query_each_later(
        "select upstream_id, post_id from upstream_post
         where upstream_id = {row 1} and instance_id = $1 and post_id <> 0",
        &[&sql(instance)],
        &[Column::text(upstream_ids.iter().copied())],
        move |row| {
            let post = from_sql(row.i64("post_id")?)?;
            Ok((row.text("upstream_id")?, PostKey { post, instance }))
        },
    )?)
}
