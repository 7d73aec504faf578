//! The copies of posts: each instance that shows a post has its own copy, and all have one name,
//! the post's `uri`.

use std::collections::{HashMap, HashSet};

use driftline_core::names::object_uri::{UriEvidence, UriKey};
use driftline_db::{DbError, Tx};

use super::{
    stored_post::{self, StoredPost},
    timeline_post::TimelinePost,
};
use crate::{
    error::StoreError,
    id_types::{AccountId, from_sql},
    posts::object_uri,
    viewer::ReadableSources,
};

/// The posts among some posts that are copies of each other.
#[derive(Default)]
pub(super) struct Copies {
    /// The lowest ID among a post's copies, by the ID of each. Only posts with other copies are in
    /// it.
    first: HashMap<i64, i64>,
    /// The evidence that a post has its name.
    evidence: HashMap<i64, UriEvidence>,
}

impl Copies {
    /// The copies of these posts. Adds those to `posts` whose instances have sources that the
    /// viewer may read. There are none if everything that may be read belongs to one instance.
    pub(super) fn load(
        tx: &mut Tx<'_>,
        posts: &mut HashMap<i64, StoredPost>,
        readable: &ReadableSources,
    ) -> Result<Copies, StoreError> {
        let mut names: Vec<UriKey> = posts.values().filter_map(StoredPost::uri_key).collect();
        names.sort_unstable();
        names.dedup();
        let instances: Vec<i64> = readable.instances().into_iter().collect();
        if instances.len() < 2 || names.is_empty() {
            return Ok(Copies::default());
        }
        let named = object_uri::posts_named_later(tx, &names, &instances)?;
        let named = tx.rows(named)?;
        let others = named.iter().map(|(_, named)| named);
        let others = others.filter(|named| !posts.contains_key(&named.post_id));
        let (ids, instance_ids): (Vec<i64>, HashSet<i64>) = others
            .map(|named| (named.post_id, named.instance_id))
            .unzip();
        if !ids.is_empty() {
            let instance_ids: Vec<i64> = instance_ids.into_iter().collect();
            posts.extend(stored_post::by_ids(
                tx,
                &ids,
                Some(&instance_ids),
                readable.viewer(),
            )?);
        }
        let mut copies = Copies::default();
        let mut groups: HashMap<(UriKey, Option<AccountId>), Vec<i64>> = HashMap::new();
        for (key, named) in named {
            if let Some(found) = posts.get(&named.post_id) {
                copies.evidence.insert(named.post_id, named.evidence);
                // A server that claims the name of another author's post does not get it.
                let of = (key, found.post.account);
                groups.entry(of).or_default().push(named.post_id);
            }
        }
        for group in groups.into_values().filter(|group| group.len() > 1) {
            let first = group.iter().copied().min().unwrap_or_default();
            copies.first.extend(group.into_iter().map(|id| (id, first)));
        }
        Ok(copies)
    }

    /// A value that a post and its copies have in common: their lowest ID.
    pub(super) fn first_of(&self, post_id: i64) -> i64 {
        self.first.get(&post_id).copied().unwrap_or(post_id)
    }

    /// True if a post has other copies.
    pub(super) fn has(&self, post_id: i64) -> bool {
        self.first.contains_key(&post_id)
    }

    /// The other copies of a post, in order of their IDs.
    pub(super) fn others_of(&self, post_id: i64) -> Vec<i64> {
        let Some(first) = self.first.get(&post_id) else {
            return Vec::new();
        };
        let same = self.first.iter().filter(|(_, of)| *of == first);
        let mut others: Vec<i64> = same.map(|(id, _)| *id).collect();
        others.retain(|id| *id != post_id);
        others.sort_unstable();
        others
    }

    /// The evidence that a post has its name.
    pub(super) fn evidence(&self, post_id: i64) -> UriEvidence {
        let known = self.evidence.get(&post_id).copied();
        known.unwrap_or(UriEvidence::Claimed)
    }
}

/// A post as it is shown at a place, with its copies, which are in `posts`.
pub(super) fn at_place(
    found: &StoredPost,
    place: i64,
    posts: &HashMap<i64, StoredPost>,
    copies: &Copies,
) -> Result<TimelinePost, DbError> {
    let others = copies.others_of(found.id()).into_iter();
    let others = others.filter_map(|id| Some(posts.get(&id)?.post.key()));
    Ok(TimelinePost {
        id: from_sql(place)?,
        copies: others.collect(),
        ..found.post.clone()
    })
}
