//! Windows: which times a node's IDs may have.
//!
//! One rule keeps IDs from ever repeating: **every ID's time lies inside a window
//! `[from, until)` that was recorded durably for its node before use, and the next window of
//! that node begins at `max(until, now)`.** Windows of one node do not overlap, so neither do
//! the IDs made in them, whatever the clocks of their holders do: a holder that was suspended
//! past its window wakes up and can only refuse, or use what is left of its own times.
//!
//! [`Record`] is what has to be recorded, and decides; it reads no clock and no file. The
//! feature `file` keeps records in files. [`Lease`] and [`LeaseStore`] are for other stores.
//!
//! Implementations keep three promises. A window is made of a record only after the
//! record is durable. One record is held by one holder at a time, from reading it to the last
//! extension: by a lock, or by a compare-and-set on its [`fence`](Record::fence). An extension
//! is durable before [`WindowEnd::extend`].

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

/// The times that one generator may use. It is used up by the generator: a second one with the
/// same window would repeat its IDs.
///
/// A window belongs to the process that it was made in: in one forked since, a generator refuses.
#[must_use = "a dropped window leaves its times unused, and its node recorded as used"]
#[derive(Debug)]
pub struct Window {
    node: Node,
    from_us: i64,
    end: Arc<AtomicI64>,
    /// The process that the window was made in; `None` where forks cannot be noticed.
    pub(crate) origin: Option<Origin>,
}

/// The end of a [`Window`], held by the code that records it.
#[must_use = "without it the window is never extended"]
#[derive(Debug)]
pub struct WindowEnd {
    end: Arc<AtomicI64>,
}

/// Proof that a generator makes no more IDs.
///
/// Made by retiring a generator. The holder of its record may end it at
/// [`until_us`](Self::until_us), so that the next holder need not wait.
#[derive(Debug)]
pub struct Retired {
    pub(crate) until_us: i64,
    pub(crate) end: Arc<AtomicI64>,
}

impl Window {
    /// A window that is durably recorded for the node: Unix µs from `from_us` on, up to
    /// `until_us` and not including it.
    ///
    /// The caller promises that no other holder of the node has had, or will be given, any of
    /// these times. Use the module `file` unless you write a [`LeaseStore`].
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

    /// All times, and nothing recorded. **IDs may repeat** after a restart with the clock moved
    /// back, and with any other generator of the same node. For tests, simulations, and those
    /// who make sure of the node and the clock by other means.
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
    /// Moves the end to that Unix µs, once that is durable. An end never moves back: an earlier
    /// one is ignored.
    pub fn extend(&self, until_us: i64) {
        self.end.fetch_max(until_us, Ordering::AcqRel);
    }

    /// The end in Unix µs.
    pub fn until_us(&self) -> i64 {
        self.end.load(Ordering::Acquire)
    }

    /// Whether that generator had this window.
    pub fn belongs_to(&self, retired: &Retired) -> bool {
        Arc::ptr_eq(&self.end, &retired.end)
    }
}

impl Retired {
    /// The generator's IDs have times before this, in Unix µs.
    ///
    /// In a process forked from the generator's this is [`i64::MAX`], which ends no record early:
    /// the parent goes on, and how far is not known here.
    pub const fn until_us(&self) -> i64 {
        self.until_us
    }
}
