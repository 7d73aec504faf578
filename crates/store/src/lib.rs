//! Driftline's schema and operations, by noun.
//!
//! Every operation is a synchronous function over one [`Tx`], and what it changes hangs below the
//! root that its write names: [`source::root`] for what belongs to a source, [`clock::root`] for
//! what does not. A commit of an answer ([`commit_page`], [`commit_look_up`]) holds posts, entries,
//! ledger and machine together, so that nothing is half done; one of a stream's events
//! ([`commit_events`]) holds posts and entries, and leaves ledger and machine as they are.
//! [`node_lease`] names no root: each of its writes is one statement that says what it replaces.
//!
//! # Order of locks
//! The root first, then the local clock, then everything else. Rows that sources share (posts,
//! accounts, aliases) are changed only while the clock is held, so that no two transactions can
//! wait for each other.

pub mod account;
mod backdate;
pub mod clock;
pub mod completeness;
pub mod credential;
mod deletion;
pub mod entry;
mod error;
pub mod export;
pub mod find;
mod gap;
pub mod history;
mod ids;
pub mod instance;
mod intake;
mod look_up;
pub mod machine;
pub mod node_lease;
mod page;
mod post;
pub mod quota;
pub mod refresh;
mod schema;
pub mod source;
pub mod source_lease;
mod source_removal;
mod store;
mod stream;
mod text;
pub mod timeline;

pub use driftline_db::{Root, SecretUrl, Stats, Target, Tx};
pub use error::StoreError;
pub use ids::{AccountId, CredentialId, InstanceId, Local, LocalId, SourceId};
pub use instance::Instance;
pub use look_up::{CommitLookUp, commit_look_up};
pub use machine::{CommitMachine, commit_machine};
pub use page::{CommitPage, CommitSummary, commit_page};
pub use schema::MIGRATIONS;
pub use store::{Store, nonce, touch};
pub use stream::{CommitEvents, ReceivedEvent, commit_events};
