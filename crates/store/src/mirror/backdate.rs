//! IDs of imported history, from the time of creation and below all that readers have seen.

use std::{collections::BTreeSet, ops::RangeInclusive};

use driftline_db::{Column, DbError, Tx};
use driftline_id::Layout;

use crate::{
    local_ids::{self, MIN_LOCAL_ID, Taken},
    reservation,
};

/// The ideal IDs of posts of history, from the times of their creation, Unix ms, the newest post
/// first. They fall from post to post: a post that claims to be older than those below it gets an
/// ID just above them.
pub(crate) fn ideal_ids(times_ms: impl Iterator<Item = i64>, now_ms: i64) -> Vec<i64> {
    let mut ids: Vec<i64> = times_ms.map(|ms| ideal_id(ms, now_ms)).collect();
    let mut below = MIN_LOCAL_ID - 1;
    for id in ids.iter_mut().rev() {
        *id = (*id).max(below + 1);
        below = *id;
    }
    ids
}

/// Gives each of the ideal IDs, of which each is below the one before, the largest ID at or below
/// it that no post or entry has, so that they fall too and all lie below `lowest`, where that is
/// known. `given` are IDs that this transaction has given and not written yet. The clock must be
/// held, and stands at or above all of them afterwards, so that later IDs are larger.
///
/// Where there is no room any more, below posts that say they are of 1970, IDs are those of now, which are
/// returned too.
pub(crate) fn take_below(
    tx: &mut Tx<'_>,
    lowest: Option<i64>,
    ideal: &[i64],
    given: &[i64],
    now_ms: i64,
) -> Result<(Vec<i64>, Option<Taken>), DbError> {
    if ideal.is_empty() {
        return Ok((Vec::new(), None));
    }
    let mut free = Free::load(tx, &falling(lowest, ideal), given)?;
    let mut bound = lowest.unwrap_or(i64::MAX);
    let mut ids = Vec::with_capacity(ideal.len());
    for ideal_id in ideal {
        bound = free.at_or_below(tx, (*ideal_id).min(bound - 1))?;
        if bound < MIN_LOCAL_ID {
            break;
        }
        ids.push(bound);
    }
    if let Some(largest) = ids.first() {
        local_ids::raise(tx, *largest)?;
    }
    let rest = ideal.len() - ids.len();
    if rest == 0 {
        return Ok((ids, None));
    }
    let first = local_ids::take(tx, now_ms, rest)?;
    let last = first + rest as i64 - 1;
    ids.extend((first..=last).rev());
    Ok((ids, Some(Taken { first, last })))
}

/// What [`take_below`] gives where nothing is taken.
fn falling(lowest: Option<i64>, ideal: &[i64]) -> Vec<i64> {
    let mut bound = lowest.unwrap_or(i64::MAX);
    let below = |ideal_id: &i64| {
        bound = (*ideal_id).min(bound - 1);
        bound
    };
    ideal.iter().map(below).collect()
}

/// Which IDs are free, as far as that was asked.
struct Free {
    /// IDs that are free if they are not taken.
    asked: BTreeSet<i64>,
    taken: BTreeSet<i64>,
    /// What other writes on a distributed database have reserved, and may not be visible yet.
    reserved: Vec<RangeInclusive<i64>>,
    /// From here up to `high` the same is known of every ID.
    low: i64,
    high: i64,
}

impl Free {
    fn load(tx: &mut Tx<'_>, asked: &[i64], given: &[i64]) -> Result<Free, DbError> {
        let mut free = Free {
            asked: asked.iter().copied().collect(),
            taken: given.iter().copied().collect(),
            // Read first: what is no longer reserved is visible after that.
            reserved: reservation::of_others(tx)?,
            low: 1,
            high: 0,
        };
        let taken = tx.query(
            "select id from post where id {in $1}
             union all select id from entry_alias where id {in $1}",
            &[&Column::i64(asked.iter().copied())],
            |row| row.i64("id"),
        )?;
        let is_crowded = !taken.is_empty();
        free.taken.extend(taken);
        // Another source has imported the same time: all that is taken there is read at once, as far as
        // it is not too much, since others wait for the clock meanwhile.
        if is_crowded && let (Some(high), Some(low)) = (asked.first(), asked.last()) {
            let low = low.saturating_sub(STRETCH).max(0);
            let taken = tx.query(
                "select id from (select id from post where id >= $1 and id <= $2
                     order by id limit $3) as posts
                 union all select id from (select id from entry_alias where id >= $1 and id <= $2
                     order by id limit $3) as aliases",
                &[&low, high, &MAX_READ],
                |row| row.i64("id"),
            )?;
            if (taken.len() as i64) < MAX_READ {
                (free.low, free.high) = (low, *high);
            }
            free.taken.extend(taken);
        }
        Ok(free)
    }

    /// The largest free ID at or below `id`; below [`MIN_LOCAL_ID`] if there is none.
    fn at_or_below(&mut self, tx: &mut Tx<'_>, mut id: i64) -> Result<i64, DbError> {
        while id >= MIN_LOCAL_ID {
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
        Ok(id)
    }
}

/// The ID that an imported post of that time has unless it is taken. Never falls as the time
/// grows, and differs for times of different ms.
///
/// Times in the layout's first hour and before are folded into that hour, above room for all that
/// may have to stand below them. A time in the future counts as now.
fn ideal_id(created_at_ms: i64, now_ms: i64) -> i64 {
    let ms = created_at_ms.min(now_ms);
    if ms >= Layout::PULSATE.epoch_ms() + FOLD_MS {
        local_ids::floor(ms) | MIDDLE
    } else {
        ROOM + ms.max(0) * FOLD_STEP
    }
}

/// The middle of a ms: there is room on both sides, and what was made live at the beginning of a
/// ms comes first.
const MIDDLE: i64 = 1 << 21;
const FOLD_MS: i64 = 3_600_000;
/// A whole step with which every ms before the first hour's end fits into that hour.
const FOLD_STEP: i64 = 8;
/// A post that says it is of 1970 leaves so many IDs below it.
const ROOM: i64 = 1 << 40;
const STRETCH: i64 = 512;
/// How many IDs are read at once.
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

        #[test]
        fn a_page_falls_below_the_lowest_from_post_to_post(
            times_ms in prop::collection::vec(-10_i64..NOW_MS + 10, 1..40),
            lowest_ms in prop::option::of(0_i64..NOW_MS),
        ) {
            let lowest = lowest_ms.map(|ms| ideal_id(ms, NOW_MS));
            let ids = falling(lowest, &ideal_ids(times_ms.iter().copied(), NOW_MS));
            prop_assert!(ids.is_sorted_by(|a, b| a > b));
            prop_assert!(ids.iter().all(|id| lowest.is_none_or(|lowest| *id < lowest)));
            prop_assert!(ids.iter().all(|id| *id >= MIN_LOCAL_ID));
            if lowest.is_none() && times_ms.is_sorted_by(|a, b| a > b) {
                let own = times_ms.iter().map(|ms| ideal_id(*ms, NOW_MS));
                prop_assert!(ids.iter().copied().zip(own).all(|(id, own)| id.abs_diff(own) <= 40));
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

    #[test]
    fn one_that_says_it_is_far_older_stands_just_above_those_below_it() {
        let day_ms = 86_400_000;
        let times_ms = [3, 2, -700, 1].map(|days| NOW_MS - (5 - days) * day_ms);
        let ids = ideal_ids(times_ms.into_iter(), NOW_MS);
        let own = |index: usize| ideal_id(times_ms[index], NOW_MS);
        assert_eq!(ids, [own(0), own(1), own(3) + 1, own(3)]);
    }
}
