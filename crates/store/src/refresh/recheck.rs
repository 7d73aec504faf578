//! When the posts of a committed page have to be checked again.

use std::collections::HashMap;

use driftline_core::{answer::Page, timeline::Reading};
use driftline_db::{Column, Tx};

use crate::{
    error::StoreError,
    id_types::{LocalId, SourceId, from_sql, sql},
    refresh::recount::RECOUNT_PAUSE_MS,
};

/// A scheduled post that a committed page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecheckAfter {
    /// The post.
    pub post: LocalId,
    /// If the commit ignored the page's counts of the post, or that the post exists at all: the time
    /// from which a commit will take them in, Unix ms. A look-up that is under way may delay that.
    pub recheck_at_ms: Option<i64>,
}

/// For each post of a page, in the page's order, when it has to be checked again; `None` if it is no
/// longer refreshed.
pub fn rechecks_after(
    tx: &mut Tx<'_>,
    source: SourceId,
    reading: &Reading,
    page: &Page,
) -> Result<Vec<Option<RecheckAfter>>, StoreError> {
    let found = tx.query_each(
        "select e.position, e.post_id, f.state_hash, f.refreshed_at_ms, f.missing or f.failures > 0 as in_doubt
         from entry e join freshness f on f.post_id = e.post_id
         where e.source_id = $1 and e.position = {row 1} and f.due_at_ms is not null",
        &[&sql(source)],
        &[Column::text(reading.keys.iter().map(|key| key.as_str()))],
        |row| {
            let in_doubt = row.bool("in_doubt")?;
            Ok((
                row.text("position")?,
                (
                    row.i64("post_id")?,
                    row.opt_i64("state_hash")?,
                    row.i64("refreshed_at_ms")?,
                    in_doubt,
                ),
            ))
        },
    )?;
    let found: HashMap<String, (i64, Option<i64>, i64, bool)> = found.into_iter().collect();
    let posts = reading.keys.iter().zip(&page.listed).map(|(key, listed)| {
        let Some(&(post_id, state_hash, looked_ms, in_doubt)) = found.get(key.as_str()) else {
            return Ok(None);
        };
        let differs = state_hash != Some(listed.post.hashes.state);
        Ok(Some(RecheckAfter {
            post: from_sql(post_id)?,
            recheck_at_ms: (differs || in_doubt)
                .then_some(looked_ms.saturating_add(RECOUNT_PAUSE_MS)),
        }))
    });
    posts.collect()
}
