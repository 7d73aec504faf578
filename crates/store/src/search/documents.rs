//! Keeps the index up to date: writes the documents of posts that have changed.

use std::collections::{HashMap, HashSet};

use driftline_core::{
    post_text::PostText,
    predicate::{Condition, CreationDays, Host},
};
use driftline_db::{Column, DbError, Root, Tx};
use driftline_index::{Document, Term, text_terms};

use super::{
    groups::{Group, GroupPost, Key, groups},
    readers,
};
use crate::{
    error::StoreError,
    id_types::InstanceId,
    posts::{
        index_pending::{forget_indexed, unindexed},
        post_text,
    },
};

/// The root for writes to the index. One process at a time writes to it.
pub const fn root() -> Root {
    Root::row("index_state", "one", 1)
}

/// Writes the documents of at most `limit` of the posts that the index has still to read. Returns
/// the number of these posts. Must be written below [`root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn index_pending(tx: &mut Tx<'_>, limit: u32) -> Result<u32, StoreError> {
    let changed = unindexed(tx, limit)?;
    if changed.is_empty() {
        return Ok(0);
    }
    let keys: Vec<Key> = changed.iter().map(Key::from).collect();
    let groups = groups(tx, &keys)?;
    let documents = documents(tx, &groups)?;
    let posts = groups
        .iter()
        .flat_map(|group| &group.posts)
        .map(|post| Key {
            post_id: post.id,
            instance_id: post.instance_id,
        });
    for (instance_id, posts) in by_instance(keys.iter().copied().chain(posts)) {
        let posts: Vec<i64> = posts.into_iter().collect();
        driftline_index::remove(tx, instance_id, &posts)?;
    }
    driftline_index::write(tx, &documents)?;
    let instances: HashSet<InstanceId> = changed.iter().map(|post| post.instance).collect();
    for instance in instances {
        // A post that has changed meanwhile stays.
        forget_indexed(tx, instance, &changed)?;
    }
    Ok(u32::try_from(changed.len()).unwrap_or(u32::MAX))
}

/// The oldest version of the extraction of which there may be documents. Terms that came with a later version are not
/// looked up.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn extraction(tx: &mut Tx<'_>) -> Result<i64, StoreError> {
    Ok(
        tx.query_one("select extraction from index_state", &[], |row| {
            row.i64("extraction")
        })?,
    )
}

/// Records that the texts of all posts are of a version of the extraction, and that each post has been indexed since or
/// waits for the index. Must be written below [`root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn set_extraction(tx: &mut Tx<'_>, extraction: i64) -> Result<(), StoreError> {
    tx.execute("update index_state set extraction = $1", &[&extraction])?;
    Ok(())
}

fn by_instance(posts: impl Iterator<Item = Key>) -> HashMap<i64, HashSet<i64>> {
    let mut all: HashMap<i64, HashSet<i64>> = HashMap::new();
    for key in posts {
        all.entry(key.instance_id).or_default().insert(key.post_id);
    }
    all
}

/// The documents of these groups, by their places. A group without a living post has none.
fn documents(tx: &mut Tx<'_>, groups: &[Group]) -> Result<Vec<Document>, DbError> {
    let texts = texts(tx, groups)?;
    let mut documents: HashMap<i64, Document> = HashMap::new();
    for group in groups {
        if group.posts.iter().all(|post| !post.is_alive) {
            continue;
        }
        let mut shared: HashSet<Term> = HashSet::new();
        for post in &group.posts {
            shared.extend(post.account_id.map(Term::author));
            shared.extend(post.author_host().map(Term::instance));
            shared.extend(labels(post).iter().map(|label| Term::label(label)));
            for text in texts.get(&post.id).into_iter().flatten() {
                shared.extend(text_terms(&text.joined));
                let labels = text.labels_at(&post.origin);
                shared.extend(labels.map(|label| Term::label(&label)));
            }
        }
        let entries = group.places.iter().filter_map(|place| place.entry.as_ref());
        shared.extend(entries.map(|entry| Term::in_source(entry.source_id)));
        let author = |post_id| {
            let post = group.posts.iter().find(|post| post.id == post_id);
            post.and_then(|post| post.account_id)
        };
        for place in &group.places {
            let own = readers::terms(place);
            let document = documents.entry(place.place).or_insert_with(|| Document {
                place: place.place,
                post_id: place.post_id,
                instance_id: place.instance_id,
                author: author(place.post_id),
                terms: shared.iter().copied().collect(),
            });
            document.terms.extend(own);
        }
    }
    let mut documents: Vec<Document> = documents.into_values().collect();
    documents.sort_unstable_by_key(|document| document.place);
    for document in &mut documents {
        document.terms.sort_unstable();
        document.terms.dedup();
    }
    Ok(documents)
}

/// The labels of a post that do not depend on its version.
fn labels(post: &GroupPost) -> Vec<String> {
    let via = Host::new(&post.origin).map(Condition::Via);
    let conditions = [Condition::Visibility(post.visibility)].into_iter();
    let labels = conditions.chain(via).filter_map(|of| of.label());
    let created = post.created_at_ms.map(CreationDays::containing);
    let created = created.into_iter().flat_map(CreationDays::post_labels);
    labels.chain(created).collect()
}

/// The texts of all versions of the groups' posts that somebody may be shown, by the posts' IDs.
pub(super) fn texts(
    tx: &mut Tx<'_>,
    groups: &[Group],
) -> Result<HashMap<i64, Vec<PostText>>, DbError> {
    let posts = || groups.iter().flat_map(|group| &group.posts);
    let instances: HashSet<i64> = posts().map(|post| post.instance_id).collect();
    let rows = tx.query(
        "select post_id, extraction, text, labels from post_text
         where post_id {in $1} and instance_id {in $2}",
        &[
            &Column::i64(posts().map(|post| post.id)),
            &Column::i64(instances),
        ],
        |row| Ok((row.i64("post_id")?, post_text::from_row(row)?)),
    )?;
    let mut texts: HashMap<i64, Vec<PostText>> = HashMap::new();
    for (post_id, text) in rows {
        texts.entry(post_id).or_default().push(text);
    }
    Ok(texts)
}
