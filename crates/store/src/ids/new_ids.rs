//! Local IDs that a transaction uses before it takes them from the clock.
//!
//! All other writers wait for the clock while a transaction locks it. So a transaction first
//! decides what it writes, with placeholder numbers for the IDs. Then it takes the required number
//! of IDs and writes at once. On PostgreSQL it does not even read them: the statements count from
//! the clock's row themselves ([`Column::counted`]), so the lock lasts for no round trip.

use driftline_db::{Column, DbError, Dialect, Tx};

use crate::{local_ids, reservation};

/// IDs that are given and not yet taken. They are consecutive and above every ID taken before.
/// Until then placeholders represent them, which are negative and in the order of the IDs.
#[derive(Debug, Default)]
pub(crate) struct NewIds(i64);

/// The IDs for the placeholders of [`NewIds`], now that the clock is locked. The arguments of its
/// methods may be placeholders or IDs that were known before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakenIds {
    /// The difference between a placeholder and its ID, or its position counted from the last.
    offset: i64,
    is_counted: bool,
}

impl NewIds {
    /// The placeholder of the first ID.
    const FIRST: i64 = -(1 << 62);

    /// Gives an ID.
    pub(crate) fn give(&mut self) -> i64 {
        self.give_run(1)
    }

    /// Gives consecutive IDs; returns the first.
    pub(crate) fn give_run(&mut self, count: usize) -> i64 {
        let first = Self::FIRST + self.0;
        self.0 += count as i64;
        first
    }

    /// Takes the given IDs from the clock, and locks it. On a distributed database it reserves
    /// them. Without given IDs the clock is not touched. The instance must be locked.
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
    /// For a transaction that gives no IDs.
    pub(crate) const NONE: TakenIds = TakenIds {
        offset: 0,
        is_counted: false,
    };

    /// A column of IDs, some of which may be missing. It must be written in the transaction that
    /// took them.
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

/// Above all placeholders.
const ABOVE: i64 = NewIds::FIRST + (1 << 32);
const LAST_ID: &str = "select last_id from local_clock where one = 1";
