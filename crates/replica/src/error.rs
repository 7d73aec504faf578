use std::{fmt::Display, io, path::Path, time::Duration};

use driftline_core::sync::{KeyError, ObjectKey, SyncStop, ValueError};
use driftline_db::DbError;

use crate::push_job::TOO_LARGE;

/// An error of a replica. No variant contains the token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicaError {
    /// The database of the replica failed.
    #[error("the replica's database: {0}")]
    Db(#[from] DbError),
    /// A file or folder of the replica cannot be used.
    #[error("{0}")]
    File(String),
    /// The folder has no replica.
    #[error(
        "there is no replica in {0}; `driftline replica init URL` makes one, or name another folder with --replica"
    )]
    NoReplica(String),
    /// Another process syncs the replica.
    #[error("another process syncs the replica in {0}; wait until it has ended")]
    Locked(String),
    /// The address of the server is not valid.
    #[error("invalid address of a server: expected https://HOST, without user, query and fragment")]
    Url,
    /// The token would be readable on its way to the server.
    #[error(
        "the token would be readable on its way to {0}: use an address with https, or add --allow-http if the network between is yours"
    )]
    Readable(String),
    /// The token cannot be used.
    #[error("the token {0}; give one in the file of --token-file, or on standard input")]
    Token(String),
    /// The server does not accept the token, or it lacks a scope.
    #[error(
        "{server} does not accept the token ({status}). Nothing was lost: get a token with the scopes read and write, and run `driftline replica init {server}` again"
    )]
    Unauthorized {
        /// The server's address.
        server: String,
        /// The status of the answer.
        status: u16,
    },
    /// The token is good, but of no account.
    #[error(
        "the token belongs to no account of {0}. Get one of your account with the scopes read and write, and run `driftline replica init {0}` with it"
    )]
    NoAccount(String),
    /// Another server than the replica's has answered.
    #[error(
        "{0} is another server than that of this replica. Nothing was pushed. Make a replica in another folder with --replica"
    )]
    OtherServer(String),
    /// The token is one of another account than the replica's.
    #[error(
        "the token belongs to the account {found}, and this replica to the account {own}. Nothing was pushed: run `driftline replica init {url}` with a token of the replica's account, or make a replica in another folder with --replica"
    )]
    OtherAccount {
        /// The server's address.
        url: String,
        /// The replica's account.
        own: String,
        /// The account of the answer.
        found: String,
    },
    /// No complete answer arrived.
    #[error("{server} cannot be reached ({cause}); nothing was lost")]
    Unreachable {
        /// The server's address.
        server: String,
        /// The cause.
        cause: String,
        /// True if there was a connection, so that the request or its answer was lost.
        is_lost: bool,
    },
    /// The server is busy or has failed.
    #[error("{server} cannot answer now ({status}{text}); nothing was lost")]
    Busy {
        /// The server's address.
        server: String,
        /// The status of the answer.
        status: u16,
        /// The server's words after a colon, or nothing.
        text: String,
        /// The wait that the server asks for, in s.
        retry_after_s: Option<u64>,
    },
    /// The server rejected a request, which is a fault of this program.
    #[error(
        "{server} rejected the request ({status}{text}); is this program as new as the server?"
    )]
    Rejected {
        /// The server's address.
        server: String,
        /// The status of the answer.
        status: u16,
        /// The server's words after a colon, or nothing.
        text: String,
    },
    /// The server has another record of this device's pushes: the replica was restored or copied.
    #[error("{0} has another record of this device: its replica was restored or copied")]
    Device(String),
    /// The server has no such routes.
    #[error(
        "{server} has no libraries to sync ({status}); is it the address of a Driftline server of this version?"
    )]
    NoSync {
        /// The server's address.
        server: String,
        /// The status of the answer.
        status: u16,
    },
    /// The answer is not one of the protocol.
    #[error("the answer of {server} is not one of the sync protocol: {cause}")]
    Malformed {
        /// The server's address.
        server: String,
        /// The cause.
        cause: String,
    },
    /// A pull would remove most of a library.
    #[error(
        "the server lacks {removed} of the {all} objects of {library}, which would be removed here. Nothing was removed: `driftline replica sync` asks whether that is right"
    )]
    ManyRemoved {
        /// The name of the library in a sentence.
        library: String,
        /// The number of objects to be removed.
        removed: usize,
        /// The number of objects in the library's copy.
        all: usize,
    },
    /// The account may read no source with this name.
    #[error("{server} has no source {name:?} that this account may read; it has {known}")]
    NoSource {
        /// The server's address.
        server: String,
        /// The name.
        name: String,
        /// The names of the sources that the account may read, as a text.
        known: String,
    },
    /// The replica has no subscription of this name.
    #[error(
        "this replica does not subscribe to {name:?}, but to {known}; `driftline replica subscribe NAME` adds a source"
    )]
    NotSubscribed {
        /// The name.
        name: String,
        /// The names of the subscriptions, as a text.
        known: String,
    },
    /// A predicate is not valid.
    #[error("{0}")]
    Query(String),
    /// A text names no post.
    #[error(
        "{0:?} is no post of this replica and no address of one: give the post's `uri` or `url`, such as https://social.example/users/ann/statuses/1"
    )]
    NoPost(String),
    /// A text is not a key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A value is not of its key's kind.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// Devices do not delete the object, or its kind is unknown.
    #[error("{0} is never deleted, or its kind is unknown to this program")]
    ReadOnly(ObjectKey),
    /// The replica has no conflict with this number.
    #[error("there is no open conflict {0}; `driftline replica conflicts` lists them")]
    NoConflict(i64),
    /// A stored value of the replica cannot be read.
    #[error("the replica's database has an unexpected value: {0}; make a new replica")]
    Damaged(String),
}

impl ReplicaError {
    /// True if the same request may succeed later.
    pub const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Busy { .. }
                | Self::Locked(_)
                | Self::Db(DbError::Busy(_))
        )
    }

    /// True if the answer may be one of a proxy while the server is away: a missing page, a redirect, or no JSON.
    pub const fn may_be_of_proxy(&self) -> bool {
        matches!(self, Self::NoSync { .. } | Self::Malformed { .. })
    }

    /// The wait that the server asks for, at most 10 minutes.
    pub fn asked_wait(&self) -> Duration {
        let asked = match self {
            Self::Busy { retry_after_s, .. } => *retry_after_s,
            _ => None,
        };
        Duration::from_secs(asked.unwrap_or_default().min(MAX_ASKED_WAIT_S))
    }

    /// The reason if the server has refused a push whose changes it may take one by one: it is too long, or a change is not
    /// valid for it. An answer without words may be one of a proxy.
    pub(crate) fn push_refusal(&self) -> Option<&str> {
        match self {
            Self::Rejected { status: 413, .. } => Some(TOO_LARGE),
            Self::Rejected {
                status: 400 | 422,
                text,
                ..
            } => text.strip_prefix(": "),
            _ => None,
        }
    }

    /// An error of a file, which cannot `be opened`, for example.
    pub(crate) fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::File(format!("{} cannot {what}: {error}", path.display()))
    }

    /// The error of a synchronization with the server at an address that was stopped.
    pub(crate) fn stopped(url: &impl Display, stop: SyncStop) -> Self {
        let url = url.to_string();
        match stop {
            SyncStop::OtherServer { .. } => Self::OtherServer(url),
            SyncStop::OtherAccount { expected, found } => Self::OtherAccount {
                url,
                own: expected,
                found,
            },
            other => Self::Malformed {
                server: url,
                cause: other.to_string(),
            },
        }
    }

    pub(crate) fn damaged(error: impl Display) -> Self {
        Self::Damaged(error.to_string())
    }
}

const MAX_ASKED_WAIT_S: u64 = 600;
