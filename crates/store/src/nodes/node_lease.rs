//! Node leases: the assignment of nodes, and so of IDs, to processes.
//!
//! The rule is that of [`driftline_id::window`]: every ID's time lies inside a window
//! `[from, until)` that was recorded for its node before use, and the node's next window begins at
//! `max(until, now)`. Here the records are rows of `node_lease`, and [`Record`] determines their
//! contents.
//!
//! Two clocks matter, for two things. Windows go by their holders' clocks, and it is windows that
//! keep IDs from repeating. When a node may be taken over goes by the database's clock: a lease
//! outlasts its window by [`LEASE_MARGIN_MS`], so that a holder that renews in time keeps its node.
//! Were the database's clock wrong, a holder would lose its node; no ID would repeat. Each holder
//! has a larger fencing number than all before it. What comes with another one is refused
//! ([`NodeLeaseError::Lost`]), so that a holder that was suspended and taken over can use what is
//! left of its own window and nothing else.
//!
//! The calls block: call them on plain threads.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("driftline.db");
//! use driftline_id::clock::{Clock, TickedClock};
//! use driftline_id::file::Keeper;
//! use driftline_id::window::{LeaseStore, WindowConfig};
//! use driftline_id::{ClockPolicy, Layout, SharedGenerator};
//! use driftline_store::node_lease::NodeLeases;
//! use driftline_store::{Store, Target};
//!
//! let store = Store::open(Target::Sqlite { path })?;
//! let nodes = NodeLeases::new(store.clone(), Layout::TWITTER, WindowConfig::default(), "host-a 4711");
//! let clock = TickedClock::start();
//! let (lease, window) = nodes.acquire(clock.fresh_us())?;
//! let keeper = Keeper::start(lease, clock.clone())?;
//! let policy = ClockPolicy::Wait { at_most_ms: 5_000 };
//! let ids = SharedGenerator::new(window, clock, policy)?;
//!
//! let id = ids.next_id()?;
//!
//! if let Some(retired) = ids.retire() {
//!     keeper.close(retired)?;
//! }
//! # store.close_blocking();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The limits of a store
//!
//! - A holder that dies keeps its node until its lease ends. The next one begins where the dead
//!   one's window ended.
//! - A commit must be durable when it is answered. A PostgreSQL server with `synchronous_commit`
//!   off, or one that fails over to a replica without the last commits, forgets windows that are in
//!   use; so does a store that is put back from a backup. Stop the holders before. As long as no
//!   clock has also been moved back, their successors then begin after all times used.
//! - A holder that goes on over such a change is refused if its row has another fencing number or
//!   another holder's name by then: give every process a name of its own.
//! - Two copies of one store know nothing of each other: processes on both must not make IDs of
//!   one layout. Deleting a row frees its node and forgets its windows.

mod claim;
mod error;
mod table;

use driftline_id::window::{Lease, LeaseStore, Record, Retired, WindowConfig, WindowEnd};
use driftline_id::{Layout, Node, Window};

pub use error::NodeLeaseError;
pub use table::{NodeHolding, list};

use crate::{Root, Store, text};
use claim::{Claim, life_ms};
use table::Key;

pub use claim::LEASE_MARGIN_MS;

/// The nodes of a layout, leased from a store. [`acquire`](LeaseStore::acquire) takes the lowest
/// free one.
///
/// Layouts are identified by their names. A node whose record is too far ahead of the clock is
/// skipped, and is an error only if no other node is free.
#[derive(Clone, Debug)]
pub struct NodeLeases {
    store: Store,
    claim: Claim,
}

/// A node leased by a row of the store.
///
/// Dropped without [`release`](Lease::release), the node stays leased until the lease ends. Once
/// the lease is known to be lost, every call fails with that error, without another query. Other
/// failed calls may be repeated.
#[derive(Debug)]
pub struct NodeLease {
    store: Store,
    key: Key,
    node: Node,
    /// The recorded window, or less: after a commit of unknown outcome the row may reach further.
    record: Record,
    end: WindowEnd,
    window_config: WindowConfig,
    /// The error with which the lease was lost.
    lost: Option<NodeLeaseError>,
}

impl NodeLeases {
    /// The nodes of a layout in a store. `holder` names this process to others. No two running
    /// processes should have the same name.
    pub fn new(
        store: Store,
        layout: Layout,
        window_config: WindowConfig,
        holder: impl Into<String>,
    ) -> Self {
        let holder = text::without_nul(&holder.into()).into_owned();
        let claim = Claim {
            layout,
            window_config,
            holder,
        };
        Self { store, claim }
    }

    /// Leases the given node of the layout, with a window that begins where its last one ended, or
    /// now if that is later.
    ///
    /// # Errors
    /// [`NodeLeaseError::OtherLayout`] if the node belongs to another layout;
    /// [`NodeLeaseError::Held`] if another process holds it; [`NodeLeaseError::Record`] if the
    /// stored record is invalid; [`NodeLeaseError::Begin`] if it does not let a window begin;
    /// [`NodeLeaseError::Db`] if the database fails.
    pub fn acquire_node(
        &self,
        node: Node,
        now_us: i64,
    ) -> Result<(NodeLease, Window), NodeLeaseError> {
        if *node.layout() != self.claim.layout {
            return Err(NodeLeaseError::OtherLayout {
                layout: self.claim.layout.name(),
                given: node.layout().name(),
            });
        }
        let claim = self.claim.clone();
        let record = self.store.write_blocking(Root::none(), move |tx| {
            table::take_node(tx, &claim, &node, now_us)
        })?;
        self.begin(node, record)
    }

    /// The lease and the window of a committed record.
    fn begin(&self, node: Node, record: Record) -> Result<(NodeLease, Window), NodeLeaseError> {
        let key = Key::new(&self.claim, &record)?;
        let (window, end) = record.window(node);
        let lease = NodeLease {
            store: self.store.clone(),
            key,
            node,
            record,
            end,
            window_config: self.claim.window_config,
            lost: None,
        };
        Ok((lease, window))
    }
}

impl LeaseStore for NodeLeases {
    type Lease = NodeLease;

    fn acquire(&self, now_us: i64) -> Result<(NodeLease, Window), NodeLeaseError> {
        let claim = self.claim.clone();
        let (node, record) = self.store.write_blocking(Root::none(), move |tx| {
            table::take_lowest(tx, &claim, now_us)
        })?;
        self.begin(node, record)
    }
}

impl NodeLease {
    /// The last written record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    fn check_held(&self) -> Result<(), NodeLeaseError> {
        self.lost.clone().map_or(Ok(()), Err)
    }
}

impl Lease for NodeLease {
    type Error = NodeLeaseError;

    fn node(&self) -> &Node {
        &self.node
    }

    fn fence(&self) -> u64 {
        self.record.fence()
    }

    fn due_us(&self) -> i64 {
        self.record.due_us(&self.window_config)
    }

    fn renew(&mut self, now_us: i64) -> Result<(), NodeLeaseError> {
        self.check_held()?;
        let Some(record) = self.record.extended(now_us, &self.window_config) else {
            return Ok(());
        };
        let (key, text) = (self.key.clone(), record.to_string());
        let life_ms = life_ms(&record, now_us);
        let renewed = self.store.write_blocking(Root::none(), move |tx| {
            table::renew(tx, &key, &text, life_ms)
        });
        if let Err(error @ NodeLeaseError::Lost { .. }) = &renewed {
            self.lost = Some(error.clone());
        }
        renewed?;
        self.end.extend(record.until_us());
        self.record = record;
        Ok(())
    }

    fn release(self, retired: Retired) -> Result<(), NodeLeaseError> {
        self.check_held()?;
        if !self.end.belongs_to(&retired) {
            return Err(NodeLeaseError::OtherWindow);
        }
        let key = self.key;
        let text = self.record.ended(retired.until_us()).to_string();
        self.store
            .write_blocking(Root::none(), move |tx| table::release(tx, &key, &text))
    }
}
