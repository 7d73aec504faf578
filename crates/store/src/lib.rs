//! Driftline's schema and operations, by noun.
//!
//! Every operation is a synchronous function over one [`Tx`], and changes only rows below the root
//! of its write: [`source::root`] for rows of a source, [`local_ids::root`] for others. A commit of
//! an answer ([`commit_page`], [`commit_look_up`]) contains posts, entries, ledger and machine
//! together, so that nothing is half done. The commit of a stream's events ([`commit_events`])
//! contains posts and entries, and leaves ledger and machine unchanged. [`node_lease`] names no
//! root: each of its writes is one statement that says what it replaces; so do members
//! ([`sharing::member`]).
//!
//! # Order of locks
//! The root first, of two local accounts the one with the lower ID before the other, then the
//! instance, then the local clock, then the number of changes. What sources of an instance share
//! (its posts, accounts, references and aliases, and their history) is read to be changed, and
//! changed, only while the instance is held, but for counts; the clock comes last, so that it is
//! held shortly.

mod error;
mod ids;
mod library;
pub mod mirror;
pub mod nodes;
mod open;
pub mod posts;
pub mod quota;
pub mod refresh;
pub mod search;
pub mod server_keys;
pub mod sharing;
pub mod social;
pub mod sync;
#[cfg(feature = "testing")]
pub mod testing;
mod text;
pub mod viewer;

use ids::{id_types, new_ids};
use open::directory;

pub use driftline_db::{Options, PendingRows, Root, SecretUrl, Stats, Target, Tx, block_on, space};
pub use error::StoreError;
pub use ids::id_types::{
    AccountId, CredentialId, CredentialKey, InstanceId, Local, LocalAccountId, LocalId, SourceId,
    SourceKey, account_id, local_account_id,
};
pub use ids::{local_ids, reservation};
pub use mirror::{
    CommitEvents, CommitLookUp, CommitMachine, CommitPage, CommitRetried, CommitSummary, GoneProof,
    ReceivedEvent, StorePosts, absence, change_feed, commit_events, commit_look_up, commit_machine,
    commit_page, commit_retried, completeness, control_posts, entry, listing_sources, machine,
    notify, post_delay, quarantine, source, source_lease, store_posts, thread_source, tracked,
};
pub use nodes::node_lease;
pub use open::{
    backup, database_clock, distribution,
    schema::MIGRATIONS,
    store::{Store, lineage, nonce, touch},
};
pub use posts::{
    account, author_hosts, edited_post, export, fetched_history, find, history, index_pending,
    instance,
    instance::Instance,
    instance_info, instance_removal, known_instances, reference, text_rebuild, timeline,
    timeline::visible::{is_visible, seen_since, seen_since_each, visible},
};
pub use quota::{credential, look_up_ability};
pub use viewer::{Owner, Viewer};
