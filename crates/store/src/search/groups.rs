//! Posts with their copies, and the places at which these may stand.
//!
//! A post may be shown at the place of a copy that was deleted, with the content of another copy. So
//! the index knows all places of a group of copies by the terms of all of them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use driftline_core::{
    names::{acct::AcctKey, object_uri::UriKey},
    post::Visibility,
};
use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::sql,
    posts::{index_pending::UnindexedPost, instance, object_uri, timeline::PostKey},
};

/// A post and its copies.
#[derive(Default)]
pub(super) struct Group {
    pub(super) posts: Vec<GroupPost>,
    pub(super) places: Vec<GroupPlace>,
}

/// A post of a group.
pub(super) struct GroupPost {
    pub(super) id: i64,
    pub(super) instance_id: i64,
    /// The row of the author.
    pub(super) account_id: Option<i64>,
    /// The author's name across servers, and ID.
    pub(super) author: Option<AcctKey>,
    pub(super) author_id: Option<i64>,
    pub(super) is_alive: bool,
    pub(super) visibility: Visibility,
    pub(super) created_at_ms: Option<i64>,
    /// The origin of the instance.
    pub(super) origin: Arc<str>,
    is_claimed: bool,
    returns: i64,
    /// The place in the world's public timeline, if the post is or was listed there.
    public_place: Option<i64>,
    uri_key: Option<UriKey>,
}

/// A place at which a post of a group may stand.
pub(super) struct GroupPlace {
    pub(super) place: i64,
    pub(super) post_id: i64,
    pub(super) instance_id: i64,
    /// The source, the narrowest visibility and whether the post is only claimed; `None` for a
    /// place in the world's public timeline.
    pub(super) entry: Option<GroupEntry>,
}

/// An entry of a source.
pub(super) struct GroupEntry {
    pub(super) source_id: i64,
    /// The owner of the source; `None` if the source is not there any more.
    pub(super) owner_id: Option<i64>,
    pub(super) narrowness: i64,
    pub(super) is_claimed: bool,
}

/// A post by its ID, with its instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) post_id: i64,
    pub(super) instance_id: i64,
}

impl GroupPost {
    /// The host of the author's instance, in lower case.
    pub(super) fn author_host(&self) -> Option<&str> {
        let (_, host) = self.author.as_ref()?.as_str().rsplit_once('@')?;
        Some(host)
    }
}

impl From<&PostKey> for Key {
    fn from(key: &PostKey) -> Key {
        Key {
            post_id: sql(key.post),
            instance_id: sql(key.instance),
        }
    }
}

impl From<&UnindexedPost> for Key {
    fn from(post: &UnindexedPost) -> Key {
        Key {
            post_id: sql(post.post),
            instance_id: sql(post.instance),
        }
    }
}

/// The groups of these posts, each post in one group. Posts that are not stored any more are in
/// none.
pub(super) fn groups(tx: &mut Tx<'_>, posts: &[Key]) -> Result<Vec<Group>, StoreError> {
    if posts.is_empty() {
        return Ok(Vec::new());
    }
    let instances = instance::all(tx)?;
    let origins: HashMap<i64, Arc<str>> = instances
        .into_iter()
        .map(|instance| (sql(instance.id), instance.origin.into()))
        .collect();
    let mut found = read(tx, posts, &origins)?;
    if origins.len() > 1 {
        let known: HashSet<i64> = found.iter().map(|post| post.id).collect();
        let mut names: Vec<UriKey> = found
            .iter()
            .filter_map(|post| post.uri_key.clone())
            .collect();
        names.sort_unstable();
        names.dedup();
        let instance_ids: Vec<i64> = origins.keys().copied().collect();
        let named = object_uri::posts_named_later(tx, &names, &instance_ids)?;
        let named = tx.rows(named)?.into_iter().map(|(_, named)| Key {
            post_id: named.post_id,
            instance_id: named.instance_id,
        });
        let others: Vec<Key> = named.filter(|key| !known.contains(&key.post_id)).collect();
        found.extend(read(tx, &others, &origins)?);
    }
    let entries = entries(tx, &found)?;
    let owners = owners(tx, &entries, &found)?;
    let mut groups: Vec<Group> = Vec::new();
    let mut by_name: HashMap<UriKey, usize> = HashMap::new();
    let mut by_post: HashMap<i64, usize> = HashMap::new();
    for post in found {
        let named = post.uri_key.clone();
        let index = named.map_or(groups.len(), |key| {
            *by_name.entry(key).or_insert(groups.len())
        });
        if index == groups.len() {
            groups.push(Group::default());
        }
        by_post.insert(post.id, index);
        let group = &mut groups[index];
        group
            .places
            .extend(post.public_place.map(|place| GroupPlace {
                place,
                post_id: post.id,
                instance_id: post.instance_id,
                entry: None,
            }));
        group.posts.push(post);
    }
    for entry in entries {
        let Some(index) = by_post.get(&entry.post_id) else {
            continue;
        };
        let group = &mut groups[*index];
        let post = group.posts.iter().find(|post| post.id == entry.post_id);
        let Some(post) = post.filter(|post| post.returns == entry.returns) else {
            continue;
        };
        let place = GroupPlace {
            place: entry.id,
            post_id: entry.post_id,
            instance_id: post.instance_id,
            entry: Some(GroupEntry {
                source_id: entry.source_id,
                owner_id: owners.get(&entry.source_id).copied(),
                narrowness: entry.visibility.max(post.visibility.narrowness()),
                is_claimed: post.is_claimed,
            }),
        };
        group.places.push(place);
    }
    Ok(groups)
}

fn read(
    tx: &mut Tx<'_>,
    posts: &[Key],
    origins: &HashMap<i64, Arc<str>>,
) -> Result<Vec<GroupPost>, DbError> {
    if posts.is_empty() {
        return Ok(Vec::new());
    }
    tx.query(
        "select p.id, p.instance_id, p.uri, p.deleted_at_ms, p.visibility, p.listed, p.in_public, p.claimed,
             p.returns, p.created_at_ms, coalesce(p.public_id, p.id) as listed_id, a.acct, a.acct_id, p.account_id
         from post p left join account a on a.id = p.account_id and a.instance_id = p.instance_id
         where p.id {in $1} and p.instance_id {in $2}",
        &[
            &Column::i64(posts.iter().map(|key| key.post_id)),
            &Column::i64(posts.iter().map(|key| key.instance_id).collect::<HashSet<_>>()),
        ],
        |row| from_row(row, origins),
    )
}

fn from_row(row: &Row<'_>, origins: &HashMap<i64, Arc<str>>) -> Result<GroupPost, DbError> {
    let instance_id = row.i64("instance_id")?;
    let visibility = Visibility::named_or_narrowest(row.str("visibility")?);
    let is_alive = row.opt_i64("deleted_at_ms")?.is_none();
    let is_public = row.bool("in_public")? && visibility == Visibility::Public;
    let has_public_place = row.bool("listed")? || !is_alive && is_public;
    let uri = row.opt_text("uri")?;
    let origin = origins.get(&instance_id).cloned().unwrap_or_default();
    let acct = row.opt_text("acct")?;
    let acct = acct.and_then(|acct| AcctKey::new(&acct, &origin));
    Ok(GroupPost {
        id: row.i64("id")?,
        instance_id,
        account_id: row.opt_i64("account_id")?,
        author: acct,
        author_id: row.opt_i64("acct_id")?,
        is_alive,
        visibility,
        created_at_ms: row.opt_i64("created_at_ms")?,
        origin,
        is_claimed: row.bool("claimed")?,
        returns: row.i64("returns")?,
        public_place: match has_public_place {
            true => Some(row.i64("listed_id")?),
            false => None,
        },
        uri_key: uri.as_deref().and_then(UriKey::new),
    })
}

/// An entry of a post, ended or not.
struct Entry {
    id: i64,
    source_id: i64,
    post_id: i64,
    visibility: i64,
    returns: i64,
}

/// The owners of the sources of entries of posts, by the sources' IDs.
fn owners(
    tx: &mut Tx<'_>,
    entries: &[Entry],
    posts: &[GroupPost],
) -> Result<HashMap<i64, i64>, DbError> {
    let source_ids: HashSet<i64> = entries.iter().map(|entry| entry.source_id).collect();
    let instance_ids: HashSet<i64> = posts.iter().map(|post| post.instance_id).collect();
    if source_ids.is_empty() {
        return Ok(HashMap::new());
    }
    let owners = tx.query(
        "select id, owner_id from source where id {in $1} and instance_id {in $2}",
        &[&Column::i64(source_ids), &Column::i64(instance_ids)],
        |row| Ok((row.i64("id")?, row.i64("owner_id")?)),
    )?;
    Ok(owners.into_iter().collect())
}

fn entries(tx: &mut Tx<'_>, posts: &[GroupPost]) -> Result<Vec<Entry>, DbError> {
    let ids = Column::i64(posts.iter().map(|post| post.id));
    let instance_ids: HashSet<i64> = posts.iter().map(|post| post.instance_id).collect();
    let instance_ids = Column::i64(instance_ids);
    let columns = "id, source_id, post_id, visibility, returns";
    let row = |row: &Row<'_>| {
        Ok(Entry {
            id: row.i64("id")?,
            source_id: row.i64("source_id")?,
            post_id: row.i64("post_id")?,
            visibility: row.i64("visibility")?,
            returns: row.i64("returns")?,
        })
    };
    // An entry with the post's own ID is found by that ID, the others by the post.
    let own = tx.query_later(
        &format!(
            "select {columns} from entry
             where id {{in $1}} and post_id = id and instance_id {{in $2}}"
        ),
        &[&ids, &instance_ids],
        row,
    )?;
    let others = tx.query_later(
        &format!(
            "select {columns} from entry
             where post_id {{in $1}} and instance_id {{in $2}} and id <> post_id"
        ),
        &[&ids, &instance_ids],
        row,
    )?;
    let mut found = tx.rows(own)?;
    found.extend(tx.rows(others)?);
    Ok(found)
}
