//! Local IDs that a transaction gives before it takes them from the clock.
//!
//! All other writers wait for the clock while a transaction holds it. So a transaction decides first
//! what it writes, under numbers that stand for the IDs to come, then takes as many IDs as it gave,
//! and writes at once. On PostgreSQL it is not even told them: the statements count from the clock's
//! row themselves ([`Column::counted`]), so that the clock is held for no round trip.

use driftline_db::{Column, DbError, Dialect, Tx};

use crate::{local_ids, reservation};

/// IDs that are given and not yet taken. They follow each other and are above every ID that was taken
/// before. Until then numbers stand for them, which are negative and in the order of the IDs.
#[derive(Debug, Default)]
pub(crate) struct NewIds(i64);

/// What the numbers of [`NewIds`] stand for, now that the clock is held. The IDs that it is asked for
/// may be such numbers and IDs that were known before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenIds {
    /// From a number to its ID, or to its place counted from the last.
    offset: i64,
    is_counted: bool,
}

impl NewIds {
    /// Stands for the first ID that is given.
    const FIRST: i64 = -(1 << 62);

    /// Gives an ID.
    pub(crate) fn give(&mut self) -> i64 {
        self.give_run(1)
    }

    /// Gives IDs that follow each other; returns the first.
    pub(crate) fn give_run(&mut self, count: usize) -> i64 {
        let first = Self::FIRST + self.0;
        self.0 += count as i64;
        first
    }

    /// Takes what was given from the clock, and holds it; on a distributed database reserves it. Without
    /// any, the clock is not touched. The instance must be held.
    pub(crate) fn take(
        self,
        tx: &mut Tx<'_>,
        instance_id: i64,
        now_ms: i64,
    ) -> Result<TakenIds, DbError> {
        let Self(given) = self;
        let is_distributed = tx.is_distributed();
        let is_counted = tx.dialect() == Dialect::Postgres && !is_distributed;
        let offset = match given as usize {
            0 => 0,
            count if is_distributed => {
                reservation::take(tx, instance_id, now_ms, count)? - Self::FIRST
            }
            count if is_counted => {
                local_ids::take_later(tx, now_ms, count)?;
                1 - given - Self::FIRST
            }
            count => local_ids::take(tx, now_ms, count)? - Self::FIRST,
        };
        Ok(TakenIds { offset, is_counted })
    }
}

impl TakenIds {
    /// Of a transaction that gives none.
    pub(crate) const NONE: TakenIds = TakenIds {
        offset: 0,
        is_counted: false,
    };

    /// A column of IDs, some of which may be missing, to write in the transaction that took them.
    pub(crate) fn column<T: Into<Option<i64>>>(
        &self,
        ids: impl IntoIterator<Item = T>,
    ) -> Column<'static> {
        let ids = ids.into_iter().map(|id| id.into().map(|id| self.place(id)));
        match self.is_counted {
            true => Column::counted(ids, LAST_ID),
            false => Column::i64(ids),
        }
    }

    fn place(&self, id: i64) -> i64 {
        let is_look_up = (ABOVE..=0).contains(&id);
        debug_assert!(!is_look_up || !self.is_counted, "no ID: {id}");
        match id < ABOVE {
            true => id + self.offset,
            false => id,
        }
    }
}

/// Above every number that stands for an ID.
const ABOVE: i64 = NewIds::FIRST + (1 << 32);
const LAST_ID: &str = "select last_id from local_clock where one = 1";
