//! Why a service has no node.

use std::{io, path::PathBuf};

use driftline_id::file::FileError;
use driftline_store::node_lease::NodeLeaseError;

/// Why there is no node.
#[derive(Debug, thiserror::Error)]
pub enum HeldNodeError {
    /// The folder failed.
    #[error("{0}")]
    Folder(#[from] FileError),
    /// The store failed.
    #[error("{0}")]
    Store(#[from] NodeLeaseError),
    /// Nodes of the layout are leased from a store here, so the folder hands out none.
    #[error(
        "the nodes of {layout} are leased from a store here; use --lease store, or remove {} once no process does",
        path.display()
    )]
    LeasedFromStore {
        /// The mark that says so.
        path: PathBuf,
        /// The layout's name.
        layout: &'static str,
    },
    /// A process holds a node of the layout in the folder, which the store does not know of.
    #[error(
        "{} is locked: a process holds a node of this folder; end it before nodes are leased from a store",
        path.display()
    )]
    HeldInFolder {
        /// The lock.
        path: PathBuf,
    },
    /// The mark of a store cannot be written.
    #[error("{}: {error}", path.display())]
    Mark {
        /// The mark.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The thread that keeps the node cannot be started.
    #[error("the thread that keeps the node cannot be started: {0}")]
    Thread(io::Error),
}
