use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::string::String;

use crate::node::NodeError;
use crate::refusal::StartError;
use crate::window::{BeginError, RecordError};

/// A node that cannot be leased, or a window that cannot be recorded.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// Another process, or another part of this one, holds the node.
    Held {
        /// The lock file.
        path: PathBuf,
    },
    /// All nodes of the layout are held.
    AllHeld {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder is a copy of the one that the record names, or was restored: the other one's
    /// nodes may be in use.
    Copied {
        /// The record.
        path: PathBuf,
        /// The location in the record.
        recorded: String,
        /// The location where it was found.
        found: String,
    },
    /// The record does not let a window begin.
    Begin {
        /// The record.
        path: PathBuf,
        /// Why.
        error: BeginError,
    },
    /// The file is not a valid record.
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        error: RecordError,
    },
    /// The file system refuses.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The layout has no nodes that could be leased.
    Node(NodeError),
    /// The generator had another window.
    OtherWindow,
    /// This process was forked from the one that holds the node.
    Forked,
    /// The node's files are not those that were locked and written: they were removed, replaced
    /// or moved, or another holder has written. Nothing more is recorded for this lease.
    Lost {
        /// The lock file.
        path: PathBuf,
    },
    /// No thread can be started.
    Thread(io::Error),
    /// The generator cannot start.
    Start(StartError),
}

/// A keeper that could not end well.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeeperError<E> {
    /// The lease was not released: the next holder may have to wait for its window's end.
    Lease(E),
    /// The keeper's thread panicked.
    Panicked,
    /// This process was forked from the keeper's.
    Forked,
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |error| FileError::Io {
        path: path.to_path_buf(),
        error,
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { path } => write!(
                f,
                "{} is locked: the node is held by another process; stop it, or use another node",
                path.display()
            ),
            Self::AllHeld { folder } => write!(
                f,
                "all nodes in {} are held; stop a process, or use a layout with more nodes",
                folder.display()
            ),
            Self::Copied {
                path,
                recorded,
                found,
            } => write!(
                f,
                "{} belongs to the folder '{recorded}' and was found in '{found}': it is a copy, or was \
                 restored; use another node here, or adopt it if the original is not used any more",
                path.display()
            ),
            Self::Begin { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Record { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Node(error) => error.fmt(f),
            Self::OtherWindow => write!(
                f,
                "the retired generator had another window; release each lease with its own"
            ),
            Self::Forked => write!(
                f,
                "the node belongs to the process that this one was forked from; lease another"
            ),
            Self::Lost { path } => write!(
                f,
                "{} or the record next to it was removed, replaced or moved while the node was \
                 held: another process may hold it; leave the folder alone, and start again",
                path.display()
            ),
            Self::Thread(error) => write!(f, "no thread can be started: {error}"),
            Self::Start(error) => error.fmt(f),
        }
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Begin { error, .. } => Some(error),
            Self::Record { error, .. } => Some(error),
            Self::Io { error, .. } | Self::Thread(error) => Some(error),
            Self::Start(error) => Some(error),
            Self::Node(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for KeeperError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lease(error) => error.fmt(f),
            Self::Panicked => write!(f, "the thread that extends the window panicked"),
            Self::Forked => write!(f, "the keeper belongs to the parent of this process"),
        }
    }
}

impl<E: Error + 'static> Error for KeeperError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Lease(error) => Some(error),
            Self::Panicked | Self::Forked => None,
        }
    }
}
