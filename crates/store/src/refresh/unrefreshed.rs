//! Posts that are not refreshed, because each source with the post has refreshing turned off.
//!
//! Claims decide it: a post that only such sources have is removed from the schedule when it is
//! due. Code that schedules posts need not know it, and no change of a source races with a claim.

use std::collections::HashSet;

use driftline_db::{Column, DbError, PendingRows, Tx};

/// The sources of an instance whose posts are not refreshed, requested together with the next
/// query.
pub(crate) struct PendingUnrefreshed {
    instance_id: i64,
    sources: PendingRows<'static, i64>,
}

impl PendingUnrefreshed {
    pub(crate) fn ask(tx: &mut Tx<'_>, instance_id: i64) -> Result<Self, DbError> {
        let sources = tx.query_later(
            "select id from source where instance_id = $1 and not refreshing",
            &[&instance_id],
            |row| row.i64("id"),
        )?;
        Ok(Self {
            instance_id,
            sources,
        })
    }

    /// The posts that only such sources have. Posts without a source are refreshed.
    pub(crate) fn among(self, tx: &mut Tx<'_>, post_ids: &[i64]) -> Result<HashSet<i64>, DbError> {
        let instance_id = self.instance_id;
        let mut found = HashSet::new();
        for source in tx.rows(self.sources)? {
            found.extend(held_by(tx, (source, instance_id), post_ids)?);
        }
        if found.is_empty() {
            return Ok(found);
        }
        let refreshing = tx.query(
            "select id from source where instance_id = $1 and refreshing",
            &[&instance_id],
            |row| row.i64("id"),
        )?;
        for source in refreshing {
            let left: Vec<i64> = found.iter().copied().collect();
            for post_id in held_by(tx, (source, instance_id), &left)? {
                found.remove(&post_id);
            }
        }
        Ok(found)
    }
}

/// The posts that a source has, which comes with its instance.
pub(crate) fn held_by(
    tx: &mut Tx<'_>,
    (source_id, instance_id): (i64, i64),
    post_ids: &[i64],
) -> Result<Vec<i64>, DbError> {
    if post_ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Column::i64(post_ids.iter().copied());
    tx.query(
        "select post_id from entry
         where source_id = $1 and instance_id = $3 and id {in $2} and id = post_id
         union
         select post_id from entry
         where source_id = $1 and instance_id = $3 and post_id {in $2} and id <> post_id",
        &[&source_id, &ids, &instance_id],
        |row| row.i64("post_id"),
    )
}
