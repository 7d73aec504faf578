//! Hashes of stored posts that an earlier version computed in another form.
//!
//! They are computed again from the stored JSON before they are compared with those of an answer: an
//! edit is a change of what a post means, and a change of how Driftline hashes is none.

use driftline_core::post::PostHashes;
use driftline_db::{Column, DbError, Tx};

use super::post::Known;

/// Computes the hashes of a stored post by its JSON; `None` if no post can be read from it.
pub type HashStored = fn(&str) -> Option<PostHashes>;

/// Brings the hashes of stored posts up to date; returns those that were not, by their posts' IDs. The
/// instance must be held.
pub(crate) fn rehash<'k>(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: impl IntoIterator<Item = &'k mut Known>,
    hash_stored: HashStored,
) -> Result<Vec<(i64, PostHashes)>, DbError> {
    let mut updated = Vec::new();
    let mut former = Vec::new();
    for post in posts {
        let Some(hashes) = post.outdated.take().and_then(|raw| hash_stored(&raw)) else {
            continue;
        };
        former.push(post.content_hash);
        post.former_hash = Some(post.content_hash);
        post.content_hash = hashes.content;
        updated.push((post.id, hashes));
    }
    tx.execute_many_later(
        "update post set content_hash = r.content_hash, former_hash = r.former_hash, hash_form = $1
         from {rows as r(id, content_hash, former_hash)} where post.id = r.id and post.instance_id = $2",
        &[&PostHashes::FORM, &instance_id],
        &[
            Column::i64(updated.iter().map(|(id, _)| *id)),
            Column::i64(updated.iter().map(|(_, hashes)| hashes.content)),
            Column::i64(former),
        ],
    )?;
    Ok(updated)
}
