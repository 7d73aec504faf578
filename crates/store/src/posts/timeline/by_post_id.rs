//! Posts by the IDs that the store knows them by, for what people keep.

use std::collections::{HashMap, HashSet};

use driftline_db::{Column, Tx};

use super::{Rule, TimelinePost, entries::FirstPlaces, stored};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    viewer::{ReadableSources, Viewer},
};

/// A post by the ID that the store knows it by, with its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PostKey {
    /// [`TimelinePost::post_id`].
    pub post: LocalId,
    /// The instance that it was seen through.
    pub instance: InstanceId,
}

impl TimelinePost {
    /// Names it for what people keep.
    pub fn key(&self) -> PostKey {
        PostKey {
            post: self.post_id,
            instance: self.instance,
        }
    }
}

/// Those of some posts that a viewer may see now, by [`PostKey::post`]: each at the place that it took first
/// among all that the viewer may read.
pub fn by_post_ids(
    tx: &mut Tx<'_>,
    keys: &[PostKey],
    viewer: Viewer,
) -> Result<HashMap<LocalId, TimelinePost>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<i64> = keys.iter().map(|key| sql(key.post)).collect();
    let instances: HashSet<i64> = keys.iter().map(|key| sql(key.instance)).collect();
    let instances: Vec<i64> = instances.into_iter().collect();
    let posts = stored::by_ids(tx, &ids, Some(&instances))?;
    let readable = ReadableSources::load(tx, viewer)?;
    let places = FirstPlaces::load(tx, &posts, &Rule::Readable(&readable))?;
    let mut shown = HashMap::new();
    for (id, found) in posts {
        let place = places.of(id).map(from_sql).transpose()?;
        // A post that its source no longer lists is still where it was listed in public.
        let place = place.or(found.listed.then_some(found.post.public_id));
        if let Some(place) = place {
            let post = TimelinePost {
                id: place,
                ..found.post
            };
            shown.insert(post.post_id, post);
        }
    }
    Ok(shown)
}

/// The stored posts of an instance that have those IDs there, whoever may see them.
pub fn keys(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    upstream_ids: &[&str],
) -> Result<HashMap<String, PostKey>, StoreError> {
    if upstream_ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found = tx.query_each(
        "select upstream_id, post_id from upstream_post
         where upstream_id = {row 1} and instance_id = $1 and post_id <> 0",
        &[&sql(instance)],
        &[Column::text(upstream_ids.iter().copied())],
        |row| {
            let post = from_sql(row.i64("post_id")?)?;
            Ok((row.text("upstream_id")?, PostKey { post, instance }))
        },
    )?;
    Ok(found.into_iter().collect())
}
