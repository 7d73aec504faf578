//! Leases the node of the service, and keeps it.

use std::path::PathBuf;

use driftline_id::{
    Layout, Node, Retired, Window,
    clock::Clock as _,
    file::{FileError, Keeper, NodeFolder, ReservationFile},
    window::{Lease, LeaseStore as _, WindowConfig},
};
use driftline_store::node_lease::{NodeLease, NodeLeaseError, NodeLeases};

use super::{
    HeldNodeError, SharedClock,
    store_mark::{check_folder, mark_store},
};

/// Where the node comes from.
#[derive(Clone)]
pub enum NodeChoice {
    /// Configured: the operator guarantees that no other machine has it. Its window is recorded in
    /// the folder.
    Configured {
        /// The node.
        node: Node,
        /// Where its window is recorded.
        folder: PathBuf,
    },
    /// The lowest free node among the processes that share the folder.
    Folder {
        /// The layout.
        layout: Layout,
        /// Where nodes are locked and windows recorded.
        folder: PathBuf,
    },
    /// The lowest free node among the processes that share the store.
    Store {
        /// The leases, of one layout.
        leases: Box<NodeLeases>,
        /// The layout.
        layout: Layout,
        /// The folder, in which no node of the layout may be locked meanwhile.
        folder: PathBuf,
    },
}

/// A node that this process holds until it releases it.
pub(super) enum HeldNode {
    File(Keeper<ReservationFile>),
    Store(Keeper<NodeLease>),
}

impl NodeChoice {
    /// The layout.
    pub(super) const fn layout(&self) -> &Layout {
        match self {
            Self::Configured { node, .. } => node.layout(),
            Self::Folder { layout, .. } | Self::Store { layout, .. } => layout,
        }
    }

    /// Leases the node. Blocks on the disk or the database.
    pub(super) fn take(&self, clock: &SharedClock) -> Result<(HeldNode, Window), HeldNodeError> {
        let window_config = WindowConfig::default();
        let now_us = clock.fresh_us();
        match self {
            Self::Configured { folder, .. } | Self::Folder { folder, .. } => {
                let layout = self.layout();
                check_folder(folder, layout)?;
                let (lease, window) = match self {
                    Self::Configured { node, .. } => {
                        ReservationFile::open(folder, *node, window_config, now_us)?
                    }
                    _ => NodeFolder::new(folder, *layout, window_config).acquire(now_us)?,
                };
                check_folder(folder, layout)?;
                Ok((HeldNode::File(keep(lease, clock)?), window))
            }
            Self::Store {
                leases,
                layout,
                folder,
            } => {
                mark_store(folder, layout)?;
                let (lease, window) = leases.acquire(now_us)?;
                Ok((HeldNode::Store(keep(lease, clock)?), window))
            }
        }
    }
}

impl HeldNode {
    /// The failure to extend the window since the last call.
    pub(super) fn take_failure(&self) -> Option<ExtensionFailure> {
        match self {
            Self::File(keeper) => keeper.take_failure().map(|error| ExtensionFailure {
                message: error.to_string(),
                is_lost: matches!(error, FileError::Lost { .. }),
            }),
            Self::Store(keeper) => keeper.take_failure().map(|error| ExtensionFailure {
                message: error.to_string(),
                is_lost: matches!(error, NodeLeaseError::Lost { .. }),
            }),
        }
    }

    /// Releases the node. Blocks on the disk or the database.
    pub(super) fn release(self, retired: Retired) -> Result<(), String> {
        match self {
            Self::File(keeper) => keeper.close(retired).map_err(|error| error.to_string()),
            Self::Store(keeper) => keeper.close(retired).map_err(|error| error.to_string()),
        }
    }
}

/// Why a window was not extended.
pub(super) struct ExtensionFailure {
    pub(super) message: String,
    /// Whether another process holds the node now, so that the window is never extended again.
    pub(super) is_lost: bool,
}

fn keep<L>(lease: L, clock: &SharedClock) -> Result<Keeper<L>, HeldNodeError>
where
    L: Lease + Send + 'static,
    L::Error: Send + 'static,
{
    Keeper::start(lease, SharedClock::clone(clock)).map_err(HeldNodeError::Thread)
}
