use std::io;
use std::path::{Path, PathBuf};
use std::string::String;

use crate::node::NodeError;
use crate::refusal::StartError;
use crate::window::{BeginError, RecordError};

/// A node that cannot be leased, or a window that cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// Another process, or another part of this one, holds the node.
    #[error(
        "{} is locked: the node is held by another process; stop it, or use another node",
        path.display()
    )]
    Held {
        /// The lock file.
        path: PathBuf,
    },
    /// All nodes of the layout are held.
    #[error(
        "all nodes in {} are held; stop a process, or use a layout with more nodes",
        folder.display()
    )]
    AllHeld {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder is a copy of the recorded one, or was restored. The nodes may be in use in the
    /// original.
    #[error(
        "{} belongs to the folder '{recorded}' and was found in '{found}': it is a copy, or was \
         restored; use another node here, or adopt it if the original is not used any more",
        path.display()
    )]
    Copied {
        /// The record.
        path: PathBuf,
        /// The location in the record.
        recorded: String,
        /// The location of the folder.
        found: String,
    },
    /// The record does not let a window begin.
    #[error("{}: {error}", path.display())]
    Begin {
        /// The record.
        path: PathBuf,
        /// The reason.
        #[source]
        error: BeginError,
    },
    /// The file is not a valid record.
    #[error("{}: {error}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        error: RecordError,
    },
    /// The file system reported an error.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        #[source]
        error: io::Error,
    },
    /// The layout has no nodes that can be leased.
    #[error("{0}")]
    Node(#[source] NodeError),
    /// The generator used another window.
    #[error("the retired generator had another window; release each lease with its own")]
    OtherWindow,
    /// This process was forked from the process that holds the node.
    #[error("the node belongs to the process that this one was forked from; lease another")]
    Forked,
    /// The node's files are no longer those that were locked and written. They were removed,
    /// replaced or moved, or another holder has written. Nothing more is recorded for this lease.
    #[error(
        "{} or the record next to it was removed, replaced or moved while the node was \
         held: another process may hold it; leave the folder alone, and start again",
        path.display()
    )]
    Lost {
        /// The lock file.
        path: PathBuf,
    },
    /// No thread can be started.
    #[error("no thread can be started: {0}")]
    Thread(#[source] io::Error),
    /// The generator cannot start.
    #[error("{0}")]
    Start(#[source] StartError),
}

/// A keeper that did not end properly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperError<E> {
    /// The lease was not released: the next holder may have to wait for its window's end.
    #[error("{0}")]
    Lease(#[source] E),
    /// The keeper's thread panicked.
    #[error("the thread that extends the window panicked")]
    Panicked,
    /// This process was forked from the keeper's.
    #[error("the keeper belongs to the parent of this process")]
    Forked,
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |error| FileError::Io {
        path: path.to_path_buf(),
        error,
    }
}
