//! The times of a source's newest posts, for reports on its delay.

use driftline_db::Tx;

use crate::{error::StoreError, id_types::SourceKey};

/// The times at which a post was written and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostTimes {
    /// The time at which it was written, according to its author, in Unix ms.
    pub created_at_ms: i64,
    /// The time at which it was stored, in Unix ms by the clock of the storing process.
    pub arrived_at_ms: i64,
}

/// Returns the times of each source's newest posts, in the order of the sources, at most `limit` of
/// each. Omits history, which was old when it arrived, and posts without a time. Costs one round
/// trip.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn recent(
    tx: &mut Tx<'_>,
    sources: &[SourceKey],
    limit: u32,
) -> Result<Vec<Vec<PostTimes>>, StoreError> {
    let mut asked = Vec::with_capacity(sources.len());
    for source in sources {
        asked.push(tx.query_later(
            "select e.arrival_id, e.arrived_at_ms, p.created_at_ms from (
                 select arrival_id, post_id, arrived_at_ms from entry
                 where source_id = $1 and instance_id = $2 order by first_usn desc limit $3
             ) as e join post p on p.id = e.post_id and p.instance_id = $2",
            &[&source.id(), &source.instance_id(), &limit],
            |row| {
                let arrived_at_ms = row.i64("arrived_at_ms")?;
                let is_history = row.opt_i64("arrival_id")?.is_some();
                let created_at_ms = row.opt_i64("created_at_ms")?;
                let times = created_at_ms.map(|created_at_ms| PostTimes {
                    created_at_ms,
                    arrived_at_ms,
                });
                Ok(times.filter(|_| !is_history))
            },
        )?);
    }
    let mut found = Vec::with_capacity(asked.len());
    for rows in asked {
        found.push(tx.rows(rows)?.into_iter().flatten().collect());
    }
    Ok(found)
}
