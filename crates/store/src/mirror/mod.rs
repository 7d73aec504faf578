//! Mirrored timelines: their sources, the entries of their posts, and the commits of answers.

pub mod change_feed;
pub mod completeness;
pub mod control_posts;
pub mod entry;
mod gap;
mod intake;
pub(crate) mod left_usns;
mod library_notification;
pub mod machine;
pub mod post_delay;
mod sources;

use intake::{deletion, locked_instance, observation, past_ids, post_intake, profile_change};
pub(crate) use sources::source_kind;
use sources::{source_audience, source_change, source_removal};

pub use driftline_core::timeline::session::GoneProof;
pub use intake::{
    CommitEvents, CommitLookUp, CommitPage, CommitRetried, CommitSummary, ReceivedEvent,
    StorePosts, absence, commit_events, commit_look_up, commit_page, commit_retried, quarantine,
    store_posts,
};
pub use library_notification::{listing_sources, notify};
pub use machine::{CommitMachine, commit_machine};
pub use sources::{source, source_lease, thread_source, tracked};
