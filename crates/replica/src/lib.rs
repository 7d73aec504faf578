//! A device's offline copy of its account's library, and of the sources to which it subscribes.
//!
//! [`Replica`] is a folder with a database. It is edited without a network, and [`Replica::sync`] brings it and the server
//! together, as `docs/sync-protocol.md` specifies. The pure machine in `driftline_core::sync` decides; this crate stores its
//! results and sends its requests.
//!
//! # Guarantees
//! - Each answer is stored in one transaction with its cursor, and each push before it is sent. So a process that is killed
//!   loses nothing, and repeats nothing that the server has.
//! - A replica belongs to one server and account, and pushes to no other.
//! - No edit is lost silently: what is not merged is listed as a conflict.
//! - The token is in no error and in no log.

mod author_row;
mod backoff;
mod chunk_size;
mod client;
mod conflict_row;
mod entry_row;
mod error;
mod folder;
mod index_row;
mod intake;
mod lookup;
mod news_stream;
mod object_row;
mod post_name;
mod push_job;
mod replica;
mod replica_row;
mod server_url;
mod source_intake;
mod subscription;
mod subscription_row;
mod sync;
mod sync_predicate;
mod timeline;
mod token;
mod verify;

pub use backoff::{Backoff, Random, jittered};
pub use client::{Client, Retries};
pub use conflict_row::ConflictRow;
pub use error::ReplicaError;
pub use news_stream::NewsStream;
pub use object_row::{PostCopy, ReplicaObject};
pub use replica::{Edited, InitOutcome, Replica, ReplicaStatus, Resolution};
pub use server_url::ServerUrl;
pub use subscription_row::Subscription;
pub use sync::{Direction, SyncContext, SyncProgress, SyncReport};
pub use timeline::{ReplicaPost, TimelineQuery};
pub use token::Token;
pub use verify::{Verified, VerifiedLibrary};
