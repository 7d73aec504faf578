//! Times from a wrong clock. A post that was refreshed "in the future" is due too late, and one
//! that was stored before its own creation is never due.

use driftline_core::clock::MAX_SKEW_MS;
use driftline_db::{Column, DbError, Tx};

use super::schedule::{self, Slot};
use crate::{
    error::StoreError,
    id_types::{InstanceId, sql},
    local_ids,
    new_ids::TakenIds,
    posts::instance,
};

/// True if the newest local ID has a future time. Some process then had a clock that was ahead, and
/// other times may come from it, too.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn has_times_ahead(tx: &mut Tx<'_>, now_ms: i64) -> Result<bool, StoreError> {
    let last = local_ids::last_given(tx)?;
    Ok(last > local_ids::floor(now_ms.saturating_add(MAX_SKEW_MS)))
}

/// Corrects refresh states of an instance with future times: they count as of now, and are due now.
/// `above` is the last checked post. Returns the next one, or `None` at the end. Several calls read
/// all states of the instance. Must be written below [`instance::root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn correct_times_ahead(
    tx: &mut Tx<'_>,
    instance_id: InstanceId,
    above: i64,
    now_ms: i64,
) -> Result<Option<i64>, StoreError> {
    let id = sql(instance_id);
    instance::hold(tx, id)?;
    let wrong = tx.query(
        "select post_id, bucket, due_at_ms from freshness
         where post_id > $1 and instance_id = $2
             and (refreshed_at_ms > $3
                 or due_at_ms is null and post_created_at_ms > refreshed_at_ms + $4
                     and post_created_at_ms <= $3)
         order by post_id limit $5",
        &[
            &above,
            &id,
            &now_ms.saturating_add(MAX_SKEW_MS),
            &MAX_SKEW_MS,
            &PART,
        ],
        |row| {
            Ok(Wrong {
                post_id: row.i64("post_id")?,
                bucket: row.i64("bucket")?,
                due_at_ms: row.opt_i64("due_at_ms")?,
            })
        },
    )?;
    let next = wrong.last().map(|last| last.post_id);
    let free = schedule::lock_free_later(tx, id, wrong.iter().map(|of| of.post_id))?;
    let free = tx.rows(free)?;
    // Claimed posts are scheduled again by the save of their claims.
    let corrected = wrong.iter().filter(|of| match of.slot() {
        Some(slot) => free.contains(&slot),
        None => true,
    });
    let corrected: Vec<(&Wrong, Slot)> = corrected.map(|of| (of, of.corrected(now_ms))).collect();
    let old: Vec<Slot> = corrected.iter().filter_map(|(of, _)| of.slot()).collect();
    let new: Vec<Slot> = corrected.iter().map(|(_, slot)| *slot).collect();
    schedule::remove_later(tx, &old)?;
    update(tx, id, &new, now_ms)?;
    schedule::insert_new(tx, &new, &TakenIds::NONE)?;
    Ok(next)
}

/// A refresh state with a future time.
struct Wrong {
    post_id: i64,
    bucket: i64,
    due_at_ms: Option<i64>,
}

impl Wrong {
    fn slot(&self) -> Option<Slot> {
        let due_at_ms = self.due_at_ms?;
        Some(Slot {
            bucket: self.bucket,
            due_at_ms,
            post_id: self.post_id,
        })
    }

    /// Its slot, due now. The wait was chosen for a post that seemed older than it is.
    fn corrected(&self, now_ms: i64) -> Slot {
        let due_at_ms = self
            .due_at_ms
            .map_or(now_ms, |due_at_ms| due_at_ms.min(now_ms));
        Slot {
            bucket: self.bucket,
            due_at_ms,
            post_id: self.post_id,
        }
    }
}

fn update(tx: &mut Tx<'_>, instance_id: i64, slots: &[Slot], now_ms: i64) -> Result<(), DbError> {
    tx.execute_many_later(
        "update freshness set refreshed_at_ms = $2, due_at_ms = r.due_at_ms
         from {rows as r(post_id, due_at_ms)}
         where freshness.post_id = r.post_id and freshness.instance_id = $1",
        &[&instance_id, &now_ms],
        &[
            Column::i64(slots.iter().map(|slot| slot.post_id)),
            Column::i64(slots.iter().map(|slot| slot.due_at_ms)),
        ],
    )
}

const PART: i64 = 500;
