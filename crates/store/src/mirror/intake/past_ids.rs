//! IDs of history, each made from its post's own time.

use std::{collections::BTreeSet, ops::RangeInclusive};

use driftline_db::{Column, DbError, Tx};
use driftline_id::Layout;

use crate::{
    local_ids::{self, MIN_LOCAL_ID},
    reservation,
};

/// IDs of history that arrives together.
pub(crate) struct PastIds {
    /// An ID for each time, in their order.
    pub(crate) ids: Vec<i64>,
    /// The time of arrival, in the order of entries' arrival: above all IDs given before.
    pub(crate) arrival_id: i64,
}

/// Gives each of these times, in Unix ms, the largest free ID at or below its own. Of equal times
/// the first gets the highest. The clock must be locked, and is above all of them afterwards, so
/// that later IDs are larger.
pub(crate) fn take(tx: &mut Tx<'_>, times_ms: &[i64], now_ms: i64) -> Result<PastIds, DbError> {
    let own: Vec<i64> = times_ms.iter().map(|ms| ideal_id(*ms, now_ms)).collect();
    let mut free = Free::load(tx, &own)?;
    let mut ids = Vec::with_capacity(own.len());
    for id in own {
        ids.push(free.take_at_or_below(tx, id)?);
    }
    if let Some(largest) = ids.iter().max() {
        local_ids::raise(tx, *largest)?;
    }
    let arrival_id = local_ids::take(tx, now_ms, 1)?;
    Ok(PastIds { ids, arrival_id })
}

/// The free IDs, as far as they were requested.
struct Free {
    /// IDs that are free unless they are taken.
    asked: BTreeSet<i64>,
    taken: BTreeSet<i64>,
    /// The IDs that other writes on a distributed database have reserved, and that may not be
    /// visible yet.
    reserved: Vec<RangeInclusive<i64>>,
    /// All IDs from here up to `high` are known.
    low: i64,
    high: i64,
}

impl Free {
    fn load(tx: &mut Tx<'_>, asked: &[i64]) -> Result<Free, DbError> {
        let mut free = Free {
            asked: asked.iter().copied().collect(),
            taken: BTreeSet::new(),
            // Read first: IDs that are no longer reserved are visible afterwards.
            reserved: reservation::of_others(tx)?,
            low: 1,
            high: 0,
        };
        let (Some(low), Some(high)) = (free.asked.first(), free.asked.last()) else {
            return Ok(free);
        };
        let (low, high) = (low.saturating_sub(STRETCH).max(0), *high);
        let taken = tx.query(
            "select id from post where id {in $1}
             union all select id from entry_alias where id {in $1}",
            &[&Column::i64(free.asked.iter().copied())],
            |row| row.i64("id"),
        )?;
        let is_crowded = !taken.is_empty();
        free.taken.extend(taken);
        // Another source has imported the same time. All IDs taken there are read at once, up to a
        // limit, because others wait for the clock meanwhile.
        if is_crowded {
            let taken = tx.query(
                "select id from (select id from post where id >= $1 and id <= $2
                     order by id limit $3) as posts
                 union all select id from (select id from entry_alias where id >= $1 and id <= $2
                     order by id limit $3) as aliases",
                &[&low, &high, &MAX_READ],
                |row| row.i64("id"),
            )?;
            if (taken.len() as i64) < MAX_READ {
                (free.low, free.high) = (low, high);
            }
            free.taken.extend(taken);
        }
        Ok(free)
    }

    /// Takes the largest free ID at or below `id`. There is always one: more IDs are below the
    /// earliest time than posts can be stored.
    fn take_at_or_below(&mut self, tx: &mut Tx<'_>, mut id: i64) -> Result<i64, DbError> {
        while id > MIN_LOCAL_ID {
            let is_known = (self.low..=self.high).contains(&id) || self.asked.contains(&id);
            if !is_known {
                (self.low, self.high) = (id - STRETCH, id);
                self.taken.extend(tx.query(
                    "select id from post where id >= $1 and id <= $2
                     union all select id from entry_alias where id >= $1 and id <= $2",
                    &[&self.low, &self.high],
                    |row| row.i64("id"),
                )?);
            }
            let is_reserved = self.reserved.iter().any(|range| range.contains(&id));
            if !is_reserved && !self.taken.contains(&id) {
                break;
            }
            id -= 1;
        }
        self.taken.insert(id);
        Ok(id)
    }
}

/// The ID of an imported post of that time unless it is taken. It never falls as the time grows,
/// and differs for times of different ms.
///
/// Times in the layout's first hour and before are folded into that hour, above room for all IDs
/// that may have to be below them. A time in the future counts as now.
fn ideal_id(created_at_ms: i64, now_ms: i64) -> i64 {
    let ms = created_at_ms.min(now_ms);
    if ms >= Layout::PULSATE.epoch_ms() + FOLD_MS {
        local_ids::floor(ms) | MIDDLE
    } else {
        ROOM + ms.max(0) * FOLD_STEP
    }
}

/// The middle of a ms, with room on both sides. IDs made live at the beginning of a ms come first.
const MIDDLE: i64 = 1 << 21;
const FOLD_MS: i64 = 3_600_000;
/// A whole step with which every ms before the first hour's end fits into that hour.
const FOLD_STEP: i64 = 8;
/// A post dated 1970 leaves this number of IDs below it.
const ROOM: i64 = 1 << 40;
const STRETCH: i64 = 512;
/// The number of IDs that are read at once.
const MAX_READ: i64 = 5_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    proptest! {
        #[test]
        fn order_of_times_is_order_of_ids(a in -10_i64..NOW_MS + 10, b in -10_i64..NOW_MS + 10) {
            let (a, b) = (a.min(b), a.max(b));
            let (id_a, id_b) = (ideal_id(a, NOW_MS), ideal_id(b, NOW_MS));
            prop_assert!(id_a <= id_b);
            if a != b && a >= 0 && b <= NOW_MS {
                prop_assert!(id_a < id_b);
            }
        }

        #[test]
        fn every_id_is_one_of_the_layout(ms in i64::MIN..i64::MAX) {
            let id = ideal_id(ms, NOW_MS);
            prop_assert!(id >= ROOM);
            prop_assert!(id <= local_ids::floor(NOW_MS) | MIDDLE);
            if ms < Layout::PULSATE.epoch_ms() + FOLD_MS {
                prop_assert!(id < FOLD_MS << 22);
            }
        }
    }

    #[test]
    fn the_fold_ends_where_the_first_hour_does() {
        let edge = Layout::PULSATE.epoch_ms() + FOLD_MS;
        assert!(ideal_id(edge - 1, NOW_MS) < ideal_id(edge, NOW_MS));
        assert_eq!(ideal_id(edge, NOW_MS), (FOLD_MS << 22) | MIDDLE);
        assert_eq!(ideal_id(-5, NOW_MS), ROOM);
        assert_eq!(ideal_id(0, NOW_MS), ROOM);
        assert_eq!(ideal_id(1, NOW_MS), ROOM + FOLD_STEP);
    }
}
