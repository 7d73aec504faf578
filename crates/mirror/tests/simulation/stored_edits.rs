//! The edits that the store took in.

use std::collections::HashMap;

use driftline_sim::{TruePost, Upstream};
use driftline_store::{LocalId, Store, StoreError};

/// How many edits of each stored post were taken in.
pub(crate) fn stored_edits(store: &Store) -> HashMap<LocalId, i64> {
    let rows = store.read_blocking(|tx| {
        let query =
            "select post_id, count(*) from post_history where kind = 'edit' group by post_id";
        let rows = tx.query(query, &[], |row| Ok((row.i64(0)?, row.i64(1)?)))?;
        Ok::<_, StoreError>(rows)
    });
    let rows = rows.unwrap().into_iter();
    rows.map(|(post, edits)| (LocalId::try_from(post).unwrap(), edits))
        .collect()
}

/// The most edits of a post that are none too many at a time: one if it was edited, and of a boost,
/// if what it boosts was.
pub(crate) fn max_edits(upstream: &mut Upstream, post: &TruePost, now_ms: i64) -> i64 {
    let mut is_edited = post.edited_at_ms.is_some();
    if let (Some(boosted), false) = (&post.boost_of, is_edited) {
        let boosted = upstream.world().find(now_ms, boosted).shown();
        is_edited = boosted.is_none_or(|status| status.edited_at_ms.is_some());
    }
    i64::from(is_edited)
}
