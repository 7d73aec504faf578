//! The times at which the posts of a committed page must be checked again.

use std::collections::HashMap;

use driftline_core::{answer::Page, timeline::Reading};
use driftline_db::{Column, Tx};

use crate::{
    error::StoreError,
    id_types::{LocalId, SourceKey, from_sql},
    refresh::recount::{Look, RECOUNT_PAUSE_MS},
};

/// A scheduled post that a committed page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecheckAfter {
    /// The post.
    pub post: LocalId,
    /// The time from which a commit will apply the page's counts of the post, or its existence, in
    /// Unix ms, if this commit ignored them. A running look-up may delay it.
    pub recheck_at_ms: Option<i64>,
}

/// For each post of a page, in the page's order, the time of its next check; `None` if it is no
/// longer refreshed.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn rechecks_after(
    tx: &mut Tx<'_>,
    source: SourceKey,
    reading: &Reading,
    page: &Page,
) -> Result<Vec<Option<RecheckAfter>>, StoreError> {
    let found = tx.query_each(
        &format!(
            "select e.position, e.post_id, {}
             from entry e
             join freshness f on f.post_id = e.post_id and f.instance_id = e.instance_id
             where e.source_id = $1 and e.instance_id = $2 and e.position = {{row 1}}
                 and f.due_at_ms is not null",
            Look::COLUMNS
        ),
        &[&source.id(), &source.instance_id()],
        &[Column::text(reading.keys.iter().map(|key| key.as_str()))],
        |row| {
            let post: LocalId = from_sql(row.i64("post_id")?)?;
            Ok((row.text("position")?, (post, Look::from_row(row)?)))
        },
    )?;
    let found: HashMap<String, _> = found.into_iter().collect();
    let posts = reading.keys.iter().zip(&page.listed).map(|(key, listed)| {
        let &(post, look) = found.get(key.as_str())?;
        let look = look?;
        let differs = look.state_hash != Some(listed.post.hashes.state);
        let recheck_at_ms = look.at_ms.saturating_add(RECOUNT_PAUSE_MS);
        Some(RecheckAfter {
            post,
            recheck_at_ms: (differs || look.in_doubt).then_some(recheck_at_ms),
        })
    });
    Ok(posts.collect())
}
