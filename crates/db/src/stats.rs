use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Counters since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of writes that wait for a thread.
    pub write_queue: usize,
    /// The number of transactions committed by writers.
    pub commits: u64,
    /// The number of writes in those transactions. More than `commits` if SQLite committed groups.
    pub writes: u64,
    /// The size of the largest committed group.
    pub largest_group: u64,
    /// The number of transactions that were run again.
    pub retries: u64,
    /// The number of PostgreSQL's answers that writes have awaited, including those of commits; 0
    /// on SQLite.
    pub round_trips: u64,
    /// The number of reconnections after a lost connection.
    pub reconnects: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    stats: Mutex<Stats>,
    commits: watch::Sender<u64>,
}

impl Counters {
    pub(crate) fn committed(&self, writes: usize) {
        let (mut stats, writes) = (self.lock(), writes as u64);
        stats.commits += 1;
        stats.writes += writes;
        stats.largest_group = stats.largest_group.max(writes);
        self.commits.send_replace(stats.commits);
    }

    /// The number of commits as it grows.
    pub(crate) fn commits(&self) -> watch::Receiver<u64> {
        self.commits.subscribe()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
