//! How the service comes to its node, and keeps it.

use std::{fmt, io, path::PathBuf};

use driftline_id::{
    Layout, Node, Retired, Window,
    clock::Clock as _,
    file::{FileError, Keeper, NodeFolder, ReservationFile},
    window::{Lease, LeaseStore as _, Terms},
};
use driftline_store::node_lease::{NodeLeaseError, NodeLeases};

use super::SharedClock;

/// Whose node it is.
#[derive(Clone)]
pub enum NodeChoice {
    /// A configured one: the operator promises that no other machine has it. Its window is
    /// recorded in the folder.
    Configured {
        /// The node.
        node: Node,
        /// Where its window is recorded.
        folder: PathBuf,
    },
    /// The lowest that nobody holds, among the processes that share the folder.
    Folder {
        /// The layout.
        layout: Layout,
        /// Where nodes are held and windows recorded.
        folder: PathBuf,
    },
    /// The lowest that nobody holds, among the processes that share the store.
    Store {
        /// The leases, of one layout.
        leases: Box<NodeLeases>,
    },
}

/// A node held, and kept until it is given back.
pub(super) struct Holding {
    keeper: Box<dyn Keep>,
}

/// No node.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The folder gives none.
    #[error("{0}")]
    Folder(#[from] FileError),
    /// The store gives none.
    #[error("{0}")]
    Store(#[from] NodeLeaseError),
    /// No thread can be started to keep it.
    #[error("the thread that keeps the node cannot be started: {0}")]
    Thread(io::Error),
}

impl NodeChoice {
    /// Takes the node. Blocks on the disk or the database.
    pub(super) fn take(&self, clock: &SharedClock) -> Result<(Holding, Window), HoldError> {
        let terms = Terms::default();
        let now_us = clock.fresh_us();
        match self {
            Self::Configured { node, folder } => {
                let (lease, window) = ReservationFile::open(folder, *node, terms, now_us)?;
                Ok((Holding::keep(lease, clock)?, window))
            }
            Self::Folder { layout, folder } => {
                let nodes = NodeFolder::new(folder, *layout, terms);
                let (lease, window) = nodes.acquire(now_us)?;
                Ok((Holding::keep(lease, clock)?, window))
            }
            Self::Store { leases } => {
                let (lease, window) = leases.acquire(now_us)?;
                Ok((Holding::keep(lease, clock)?, window))
            }
        }
    }
}

impl Holding {
    /// Why the window was not extended, since this was asked last.
    pub(super) fn take_failure(&self) -> Option<String> {
        self.keeper.take_failure()
    }

    /// Gives the node back. Blocks as [`NodeChoice::take`] does.
    pub(super) fn give_back(self, retired: Retired) -> Result<(), String> {
        self.keeper.close(retired)
    }

    fn keep<L>(lease: L, clock: &SharedClock) -> Result<Self, HoldError>
    where
        L: Lease + Send + 'static,
        L::Error: fmt::Display + Send + 'static,
    {
        let keeper = Keeper::start(lease, clock.clone()).map_err(HoldError::Thread)?;
        let keeper = Box::new(keeper);
        Ok(Self { keeper })
    }
}

/// A keeper of whatever lease.
trait Keep: Send + Sync {
    fn take_failure(&self) -> Option<String>;
    fn close(self: Box<Self>, retired: Retired) -> Result<(), String>;
}

impl<L> Keep for Keeper<L>
where
    L: Lease + Send + 'static,
    L::Error: fmt::Display + Send + 'static,
{
    fn take_failure(&self) -> Option<String> {
        Self::take_failure(self).map(|error| error.to_string())
    }

    fn close(self: Box<Self>, retired: Retired) -> Result<(), String> {
        Self::close(*self, retired).map_err(|error| error.to_string())
    }
}
