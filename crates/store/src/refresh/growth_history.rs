//! The growth of posts' counts, as a test case for other policies.

use std::collections::HashMap;

use driftline_db::Tx;
use serde::{Deserialize, Serialize};

use super::count_history;
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
};

/// The growth of a post's counts, as far as answers showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthHistory {
    /// The post.
    pub post: LocalId,
    /// The time at which it was written, in Unix ms.
    pub created_at_ms: i64,
    /// The time at which it was first seen, in Unix ms.
    pub first_ms: i64,
    /// Its total at each answer, the earliest first: Unix ms, and
    /// [`driftline_core::post::Counts::total`]. Empty if it never changed.
    pub totals: Vec<(i64, i64)>,
}

impl GrowthHistory {
    /// Removes the part before a time. The first total is then that at this time.
    pub fn cut(&mut self, since_ms: i64) {
        self.first_ms = self.first_ms.max(since_ms);
        let before = self.totals.partition_point(|(at_ms, _)| *at_ms <= since_ms);
        match before.checked_sub(1) {
            // It has not changed since.
            Some(_) if before == self.totals.len() => self.totals.clear(),
            Some(last) => {
                self.totals.drain(..last);
                self.totals[0].0 = since_ms;
            }
            None => {}
        }
    }
}

/// The growth of an instance's posts that were created since `since_ms`, in order of their IDs,
/// from the first one above `after` on.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn growth_histories(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    since_ms: i64,
    after: LocalId,
    limit: u32,
) -> Result<Vec<GrowthHistory>, StoreError> {
    let base = sql(instance) * super::SHARDS;
    let mut posts = tx.query(
        "select post_id, post_created_at_ms, first_at_ms from freshness
         where post_id > $1 and instance_id = $6 and bucket >= $2 and bucket < $3
             and post_created_at_ms >= $4
         order by post_id limit $5",
        &[
            &sql(after),
            &base,
            &(base + super::SHARDS),
            &since_ms,
            &i64::from(limit),
            &sql(instance),
        ],
        |row| {
            Ok(GrowthHistory {
                post: from_sql(row.i64("post_id")?)?,
                created_at_ms: row.i64("post_created_at_ms")?,
                first_ms: row.i64("first_at_ms")?,
                totals: Vec::new(),
            })
        },
    )?;
    let mut totals: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
    let ids = posts.iter().map(|grown| sql(grown.post));
    for (post_id, at) in count_history::of_posts(tx, sql(instance), ids)? {
        let total = at.counts.total();
        totals.entry(post_id).or_default().push((at.at_ms, total));
    }
    for grown in &mut posts {
        grown.totals = totals.remove(&sql(grown.post)).unwrap_or_default();
    }
    Ok(posts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_before_is_cut_off() {
        let cut = |since_ms| {
            let mut grown = GrowthHistory {
                post: LocalId::new(1),
                created_at_ms: 0,
                first_ms: 10,
                totals: vec![(20, 1), (30, 2), (40, 3)],
            };
            grown.cut(since_ms);
            (grown.first_ms, grown.totals)
        };
        assert_eq!(cut(5), (10, vec![(20, 1), (30, 2), (40, 3)]));
        assert_eq!(cut(20), (20, vec![(20, 1), (30, 2), (40, 3)]));
        assert_eq!(cut(35), (35, vec![(35, 2), (40, 3)]));
        assert_eq!(cut(40), (40, vec![]));
    }
}
