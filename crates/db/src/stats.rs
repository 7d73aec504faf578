use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Writes waiting for a thread.
    pub write_queue: usize,
    /// Reads waiting for a thread.
    pub read_queue: usize,
    /// Transactions committed by writers.
    pub commits: u64,
    /// Writes in those transactions; more than `commits` where SQLite committed groups.
    pub writes: u64,
    /// The largest group committed.
    pub largest_group: u64,
    /// Transactions that were run again.
    pub retries: u64,
    /// Reconnections after a lost connection.
    pub reconnects: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    writes: AtomicU64,
    largest_group: AtomicU64,
    retries: AtomicU64,
    reconnects: AtomicU64,
}

impl Counters {
    pub(crate) fn committed(&self, writes: usize) {
        let writes = writes as u64;
        self.commits.fetch_add(1, Relaxed);
        self.writes.fetch_add(writes, Relaxed);
        self.largest_group.fetch_max(writes, Relaxed);
    }

    pub(crate) fn retried(&self) {
        self.retries.fetch_add(1, Relaxed);
    }

    pub(crate) fn reconnected(&self) {
        self.reconnects.fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        Stats {
            write_queue: 0,
            read_queue: 0,
            commits: self.commits.load(Relaxed),
            writes: self.writes.load(Relaxed),
            largest_group: self.largest_group.load(Relaxed),
            retries: self.retries.load(Relaxed),
            reconnects: self.reconnects.load(Relaxed),
        }
    }
}
