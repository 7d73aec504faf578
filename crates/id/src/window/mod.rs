//! Windows: the times that a node's IDs may have.
//!
//! One rule keeps IDs from ever repeating: **every ID's time lies inside a window `[from, until)`
//! that was recorded durably for its node before use, and the next window of that node begins at
//! `max(until, now)`.** Windows of one node do not overlap, so their IDs do not either, even if the
//! clocks of their holders are wrong. A holder that was suspended past its window can only refuse,
//! or use the rest of its own times.
//!
//! [`Record`] contains the recorded times and decides. It reads no clock and no file. The feature
//! `file` keeps records in files. [`Lease`] and [`LeaseStore`] are for other stores.
//!
//! Implementations keep three promises. A window is made from a record only after the record is
//! durable. A record has one holder at a time, from the first read to the last extension, by a lock
//! or by a compare-and-set on its [`fence`](Record::fence). An extension is durable before
//! [`WindowEnd::extend`].

mod error;
mod lease;
mod record;

use alloc::sync::Arc;

pub use error::{BeginError, RecordError};
pub use lease::{Lease, LeaseStore};
pub use record::{Record, WindowConfig};

use crate::atomic::{AtomicI64, Ordering};
use crate::node::Node;
use crate::origin::Origin;

/// The times that one generator may use. The generator consumes it, because a second generator with
/// the same window would repeat its IDs.
///
/// A window belongs to the process that made it. In a forked process a generator refuses.
#[must_use = "a dropped window leaves its times unused, and its node recorded as used"]
#[derive(Debug)]
pub struct Window {
    node: Node,
    from_us: i64,
    end: Arc<AtomicI64>,
    /// The process that made the window; `None` if forks cannot be noticed.
    pub(crate) origin: Option<Origin>,
}

/// The end of a [`Window`], for the code that records it.
#[must_use = "without it the window is never extended"]
#[derive(Debug)]
pub struct WindowEnd {
    end: Arc<AtomicI64>,
}

/// Proof that a generator makes no more IDs.
///
/// Retiring a generator returns it. The holder of the generator's record may end the record at
/// [`until_us`](Self::until_us), so that the next holder need not wait.
#[derive(Debug)]
pub struct Retired {
    pub(crate) until_us: i64,
    pub(crate) end: Arc<AtomicI64>,
}

impl Window {
    /// A window that is durably recorded for the node, from `from_us` up to but not including
    /// `until_us`, in Unix µs.
    ///
    /// The caller promises that no other holder of the node has had, or will get, any of these
    /// times. Use the module `file` unless you write a [`LeaseStore`].
    pub fn recorded(node: Node, from_us: i64, until_us: i64) -> (Self, WindowEnd) {
        let end = Arc::new(AtomicI64::new(until_us));
        let window_end = WindowEnd {
            end: Arc::clone(&end),
        };
        let window = Self {
            node,
            from_us,
            end,
            origin: Origin::here(),
        };
        (window, window_end)
    }

    /// A window of all times, without a record. **IDs may repeat** after a restart with the clock
    /// moved back, and with any other generator of the same node. For tests, simulations, and
    /// callers that ensure the node and the clock by other means.
    pub fn unrecorded_ids_may_repeat(node: Node) -> Self {
        Self::recorded(node, i64::MIN, i64::MAX).0
    }

    /// The node.
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// The first Unix µs of the window. After a crash it may lie ahead of the clock.
    pub const fn from_us(&self) -> i64 {
        self.from_us
    }

    /// The end of the window in Unix µs, as extended so far.
    pub fn until_us(&self) -> i64 {
        self.end.load(Ordering::Acquire)
    }

    pub(crate) fn retired(&self, until_us: i64) -> Retired {
        Retired {
            until_us,
            end: Arc::clone(&self.end),
        }
    }
}

impl WindowEnd {
    /// Moves the end to `until_us`, which must be recorded durably. The end never moves back: an
    /// earlier one is ignored.
    pub fn extend(&self, until_us: i64) {
        self.end.fetch_max(until_us, Ordering::AcqRel);
    }

    /// The end in Unix µs.
    pub fn until_us(&self) -> i64 {
        self.end.load(Ordering::Acquire)
    }

    /// True if the retired generator had this window.
    pub fn belongs_to(&self, retired: &Retired) -> bool {
        Arc::ptr_eq(&self.end, &retired.end)
    }
}

impl Retired {
    /// An upper bound of the times of the generator's IDs, in Unix µs, not included.
    ///
    /// In a process forked from the generator's it is [`i64::MAX`], which ends no record early: the
    /// parent continues, and its progress is unknown here.
    pub const fn until_us(&self) -> i64 {
        self.until_us
    }
}
