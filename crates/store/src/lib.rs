//! Driftline's schema and operations, by noun.
//!
//! Every operation is a synchronous function over one [`Tx`], and what it changes hangs below the
//! root that its write names: [`source::root`] for what belongs to a source, [`local_ids::root`] for
//! what does not. A commit of an answer ([`commit_page`], [`commit_look_up`]) holds posts, entries,
//! ledger and machine together, so that nothing is half done; one of a stream's events
//! ([`commit_events`]) holds posts and entries, and leaves ledger and machine as they are.
//! [`node_lease`] names no root: each of its writes is one statement that says what it replaces; so do
//! members ([`sharing::member`]).
//!
//! # Order of locks
//! The root first, of two local accounts the one with the lower ID before the other, then the instance,
//! then the local clock, then the number of changes. What sources of an instance share (its posts,
//! accounts, references and aliases, and their history) is read to be changed, and changed, only while
//! the instance is held, but for counts; the clock comes last, so that it is held shortly.

pub mod backup;
pub mod database_clock;
mod directory;
pub mod distribution;
mod error;
mod id_types;
mod library;
pub mod local_ids;
pub mod mirror;
mod new_ids;
pub mod nodes;
pub mod posts;
pub mod quota;
pub mod refresh;
pub mod reservation;
mod schema;
pub mod server_keys;
pub mod sharing;
pub mod social;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
pub mod viewer;

pub use driftline_db::{Options, PendingRows, Root, SecretUrl, Stats, Target, Tx, block_on, space};
pub use error::StoreError;
pub use id_types::{
    AccountId, CredentialId, CredentialKey, InstanceId, Local, LocalAccountId, LocalId, SourceId,
    SourceKey, account_id, local_account_id,
};
pub use mirror::{
    CommitEvents, CommitLookUp, CommitMachine, CommitPage, CommitRetried, CommitSummary, GoneProof,
    ReceivedEvent, StorePosts, arrival, change_feed, commit_events, commit_look_up, commit_machine,
    commit_page, commit_retried, completeness, control_posts, departure, entry, listed_in, machine,
    notify, quarantine, source, source_lease, store_posts, thread_source, tracked,
};
pub use nodes::node_lease;
pub use posts::{
    account, author_hosts, export, fetched_history, find, history, instance,
    instance::Instance,
    instance_info, instance_removal, known_instances, reference, timeline,
    timeline::visible::{is_visible, seen_since, seen_since_each, visible},
};
pub use quota::{credential, look_up_ability};
pub use schema::MIGRATIONS;
pub use store::{Store, nonce, touch};
pub use viewer::{Owner, Viewer};
