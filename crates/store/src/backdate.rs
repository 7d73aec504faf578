//! IDs of imported history, from creation time.

use std::collections::BTreeSet;

use driftline_db::{Column, DbError, Tx};
use driftline_id::Layout;

use crate::clock;

/// Gives each time an ID that no post or entry has, near the ID of that time; the clock must be
/// held. The clock then stands at or above all of them, so that later IDs are larger.
pub(crate) fn take(tx: &mut Tx<'_>, times_ms: &[i64], now_ms: i64) -> Result<Vec<i64>, DbError> {
    let wanted: Vec<i64> = times_ms.iter().map(|ms| wanted_id(*ms, now_ms)).collect();
    let mut taken: BTreeSet<i64> = BTreeSet::new();
    for sql in [
        "select id from post where id {in $1}",
        "select id from entry_alias where id {in $1}",
    ] {
        let ids = Column::i64(wanted.iter().copied());
        taken.extend(tx.query(sql, &[&ids], |row| row.i64(0))?);
    }
    let mut given = BTreeSet::new();
    let mut ids = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let id = if !taken.contains(&wanted) && !given.contains(&wanted) {
            wanted
        } else {
            first_free(tx, wanted, &given)?
        };
        given.insert(id);
        ids.push(id);
    }
    if let Some(largest) = given.last() {
        clock::raise(tx, *largest)?;
    }
    Ok(ids)
}

/// The ID that an imported post of that time has unless it is taken. Never falls as the time
/// grows, and differs for times of different ms.
///
/// Times in the layout's first hour and before are folded into that hour. A time in the future
/// counts as now.
fn wanted_id(created_at_ms: i64, now_ms: i64) -> i64 {
    let ms = created_at_ms.min(now_ms);
    if ms >= Layout::PULSATE.epoch_ms() + FOLD_MS {
        clock::floor(ms) | MIDDLE
    } else {
        (ms.max(0) * FOLD_STEP).max(1)
    }
}

fn first_free(tx: &mut Tx<'_>, from: i64, given: &BTreeSet<i64>) -> Result<i64, DbError> {
    let mut from = from;
    loop {
        let mut taken: BTreeSet<i64> = given.range(from..from + STRETCH).copied().collect();
        for sql in [
            "select id from post where id >= $1 and id < $2",
            "select id from entry_alias where id >= $1 and id < $2",
        ] {
            taken.extend(tx.query(sql, &[&from, &(from + STRETCH)], |row| row.i64(0))?);
        }
        if let Some(free) = (from..from + STRETCH).find(|id| !taken.contains(id)) {
            return Ok(free);
        }
        from += STRETCH;
    }
}

/// The middle of a ms: there is room on both sides, and what was made live at the beginning of a
/// ms comes first.
const MIDDLE: i64 = 1 << 21;
const FOLD_MS: i64 = 3_600_000;
/// The largest whole step with which every ms before the first hour's end fits into that hour.
const FOLD_STEP: i64 = 9;
const STRETCH: i64 = 512;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    proptest! {
        #[test]
        fn order_of_times_is_order_of_ids(a in -10_i64..NOW_MS + 10, b in -10_i64..NOW_MS + 10) {
            let (a, b) = (a.min(b), a.max(b));
            let (id_a, id_b) = (wanted_id(a, NOW_MS), wanted_id(b, NOW_MS));
            prop_assert!(id_a <= id_b);
            if a != b && a >= 0 && b <= NOW_MS {
                prop_assert!(id_a < id_b);
            }
        }

        #[test]
        fn every_id_is_one_of_the_layout(ms in i64::MIN..i64::MAX) {
            let id = wanted_id(ms, NOW_MS);
            prop_assert!(id > 0);
            prop_assert!(id <= clock::floor(NOW_MS) | MIDDLE);
            if ms < Layout::PULSATE.epoch_ms() + FOLD_MS {
                prop_assert!(id < FOLD_MS << 22);
            }
        }
    }

    #[test]
    fn the_fold_ends_where_the_first_hour_does() {
        let edge = Layout::PULSATE.epoch_ms() + FOLD_MS;
        assert!(wanted_id(edge - 1, NOW_MS) < wanted_id(edge, NOW_MS));
        assert_eq!(wanted_id(edge, NOW_MS), (FOLD_MS << 22) | MIDDLE);
        assert_eq!(wanted_id(-5, NOW_MS), 1);
        assert_eq!(wanted_id(0, NOW_MS), 1);
        assert_eq!(wanted_id(1, NOW_MS), 9);
    }
}
