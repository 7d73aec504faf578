//! Tombstones: deleted posts are kept, but no longer shown.

use driftline_core::{clock::is_older, upstream_id::UpstreamId};
use driftline_db::{DbError, Tx};

use crate::{
    error::StoreError,
    mirror::{absence, entry, machine::LockedSource},
    new_ids::TakenIds,
    posts::{
        content_scope::ContentScope,
        history::{self, EndedBy},
        index_pending, instance, post, post_text, scoped_content,
    },
    text::without_nul,
};

/// An upstream's answer that a post is gone.
#[derive(Clone, Copy)]
pub(crate) struct Gone<'a> {
    pub(crate) id: &'a UpstreamId,
    /// The time of the request, in Unix ms by the local clock.
    pub(crate) asked_at_ms: i64,
    /// The time of the answer, in Unix ms by the local clock.
    pub(crate) received_at_ms: i64,
    /// True if the post's content is kept in its history.
    pub(crate) keep: bool,
    pub(crate) now_ms: i64,
}

/// Deletes a post that the upstream reports as gone. Returns the number of the source's entries
/// that became tombstones.
pub(crate) fn take_in(
    tx: &mut Tx<'_>,
    source: &mut LockedSource,
    gone: Gone<'_>,
) -> Result<u64, StoreError> {
    instance::hold(tx, source.instance_id)?;
    let upstream_id = without_nul(gone.id.as_str());
    let mut known = post::known(tx, source.instance_id, &[&*upstream_id])?;
    let Some(mut known) = known.remove(&*upstream_id) else {
        return Ok(0);
    };
    // A post that is hidden from a narrower scope ends only for that scope.
    if source.scope != ContentScope::WORLD && known.scope != source.scope {
        if is_older(gone.asked_at_ms, known.read_at_ms, gone.now_ms) {
            return Ok(0);
        }
        let entries = entry::of_posts(tx, source.key, &[known.id])?;
        let ids = entries.iter().filter(|entry| !entry.gone);
        let ids: Vec<i64> = ids.map(|entry| entry.id).collect();
        absence::end(tx, source, &ids, gone.received_at_ms)?;
        let of = (source.instance_id, source.scope);
        // Another source of the scope may list the post still.
        scoped_content::note(tx, source.instance_id, &[known.id])?;
        scoped_content::end(tx, of, &[known.id], gone.keep, gone.now_ms)?;
        record(tx, source.instance_id, known.id)?;
        return Ok(ids.len() as u64);
    }
    if !known.is_gone() {
        // A newer answer showed that it exists.
        if is_older(gone.asked_at_ms, known.read_at_ms, gone.now_ms) {
            return Ok(0);
        }
        if gone.keep {
            history::keep(
                tx,
                source.instance_id,
                &[known.id],
                EndedBy::Deletion,
                gone.now_ms,
            )?;
        }
        tx.execute(
            "update post set deleted_at_ms = $2, listed = false, raw = null
             where id = $1 and instance_id = $3",
            &[&known.id, &gone.received_at_ms, &source.instance_id],
        )?;
        // Saves lock posts before their dependent rows.
        if gone.keep {
            scoped_content::end_all(tx, source.instance_id, &[known.id], gone.now_ms)?;
        } else {
            history::erase(tx, source.instance_id, &[known.id])?;
        }
        record(tx, source.instance_id, known.id)?;
        known.deleted_at_ms = Some(gone.received_at_ms);
    }
    let changes: Vec<entry::Change> = entry::of_posts(tx, source.key, &[known.id])?
        .into_iter()
        .filter(|entry| !entry.gone || entry.is_left())
        .map(|entry| entry.change(&known, None, source.library.next_usn()))
        .collect();
    entry::change(tx, source.key, &changes, &TakenIds::NONE)?;
    Ok(changes.len() as u64)
}

/// Removes the texts of the content that a post has lost, and lets the search index know of it.
fn record(tx: &mut Tx<'_>, instance_id: i64, post_id: i64) -> Result<(), DbError> {
    post_text::remove_unused(tx, instance_id, &[post_id])?;
    index_pending::add(tx, instance_id, [post_id], &TakenIds::NONE)
}
