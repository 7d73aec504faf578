//! A source's timeline machine as it is kept.

use driftline_core::timeline::{Gap, Lateness, Machine};
use driftline_db::Tx;

use crate::{
    clock,
    error::StoreError,
    gap,
    ids::{InstanceId, SourceId, sql},
};

/// A source's machine, its ranges put back.
pub fn load(tx: &mut Tx<'_>, source: SourceId) -> Result<Machine, StoreError> {
    let json = tx
        .query_opt(
            "select machine from source where id = $1",
            &[&sql(source)],
            |row| row.text(0),
        )?
        .ok_or(StoreError::NoSource)?;
    let mut machine: Machine = serde_json::from_str(&json)
        .map_err(|error| StoreError::unreadable("a source's machine", &error))?;
    machine.restore_gaps(gap::load(tx, sql(source))?);
    Ok(machine)
}

/// What the other sources of an instance have measured of lateness, the one with the most posts
/// first.
pub fn lateness_of_others(
    tx: &mut Tx<'_>,
    source: SourceId,
    instance: InstanceId,
) -> Result<Vec<Lateness>, StoreError> {
    let machines = tx.query(
        "select machine from source where instance_id = $1 and id <> $2
         order by update_count desc limit 3",
        &[&sql(instance), &sql(source)],
        |row| row.text(0),
    )?;
    let lateness = |json: &String| {
        let machine: Result<Machine, _> = serde_json::from_str(json);
        machine
            .map(|machine| machine.lateness().clone())
            .map_err(|error| StoreError::unreadable("a source's machine", &error))
    };
    machines.iter().map(lateness).collect()
}

/// A machine to keep that changed without a page: a request failed, a gap was asked for.
#[derive(Clone, Copy, Debug)]
pub struct CommitMachine<'a> {
    /// The source; the write's root is [`crate::source::root`] of it.
    pub source: SourceId,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The machine.
    pub machine: &'a Machine,
    /// The time, Unix ms.
    pub now_ms: i64,
}

/// Keeps a machine.
pub fn commit_machine(tx: &mut Tx<'_>, commit: &CommitMachine<'_>) -> Result<(), StoreError> {
    let held = Held::load(tx, commit.source, commit.fence)?;
    held.save(tx, commit.machine, commit.now_ms)?;
    Ok(())
}

/// A source whose row this transaction holds.
pub(crate) struct Held {
    pub(crate) id: i64,
    pub(crate) instance_id: i64,
    pub(crate) readable: bool,
    /// The last USN, those that this transaction took included.
    pub(crate) update_count: i64,
}

impl Held {
    /// Reads the row that the write's root has locked, and checks the fencing number.
    pub(crate) fn load(
        tx: &mut Tx<'_>,
        source: SourceId,
        fence: Option<i64>,
    ) -> Result<Held, StoreError> {
        let row = tx.query_opt(
            "select instance_id, readable, update_count, lease_holder is not null, lease_fence
             from source where id = $1",
            &[&sql(source)],
            |row| {
                let held = Held {
                    id: sql(source),
                    instance_id: row.i64(0)?,
                    readable: row.bool(1)?,
                    update_count: row.i64(2)?,
                };
                Ok((held, row.bool(3)?, row.i64(4)?))
            },
        )?;
        let (held, is_leased, last_fence) = row.ok_or(StoreError::NoSource)?;
        match fence {
            Some(fence) if !is_leased || fence != last_fence => Err(StoreError::LeaseLost),
            _ => Ok(held),
        }
    }

    /// The next USN.
    pub(crate) fn next_usn(&mut self) -> i64 {
        self.update_count += 1;
        self.update_count
    }

    /// Keeps the USN alone.
    pub(crate) fn save_usn(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.execute_later(
            "update source set update_count = $2 where id = $1",
            &[&self.id, &self.update_count],
        )?;
        Ok(())
    }

    /// Keeps the machine and the USN; `true` if the source became readable by it.
    pub(crate) fn save(
        &self,
        tx: &mut Tx<'_>,
        machine: &Machine,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let gaps = gap::load(tx, self.id)?;
        self.save_over(tx, gaps, machine, now_ms)
    }

    /// [`Held::save`] where the ranges that are stored were loaded before.
    pub(crate) fn save_over(
        &self,
        tx: &mut Tx<'_>,
        stored: Vec<Gap>,
        machine: &Machine,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let json = serde_json::to_string(machine)
            .map_err(|error| StoreError::unreadable("a source's machine", &error))?;
        let opens = !self.readable && machine.is_readable();
        tx.execute_later(
            "update source set machine = $2, update_count = $3, readable = $4 where id = $1",
            &[
                &self.id,
                &json,
                &self.update_count,
                &(self.readable || opens),
            ],
        )?;
        gap::save(tx, self.id, stored, machine.ledger().gaps())?;
        if opens {
            clock::take(tx, now_ms, 0)?;
            self.list_posts(tx)?;
        }
        Ok(opens)
    }

    /// Shows the posts that this source had first in the public timeline. The clock must be held.
    fn list_posts(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.execute_later(
            "update post set listed = true
             where id in (select post_id from entry where source_id = $1)
                 and first_source_id = $1 and visibility = 'public' and deleted_at_ms is null",
            &[&self.id],
        )?;
        Ok(())
    }
}
