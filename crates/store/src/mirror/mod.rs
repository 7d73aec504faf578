//! Mirrored timelines: their sources, the entries of their posts, and the commits of answers.

pub mod arrival;
mod backdate;
pub mod change_feed;
mod commit_summary;
pub mod completeness;
pub mod control_posts;
mod deletion;
pub mod departure;
pub mod entry;
mod forget_tracked;
mod gap;
mod held_instance;
mod intake;
mod library_news;
mod look_up;
pub mod machine;
mod page;
pub mod quarantine;
pub mod source;
mod source_audience;
mod source_change;
pub mod source_lease;
mod source_removal;
mod stream;
pub mod thread_source;
pub mod tracked;

pub use commit_summary::CommitSummary;
pub use driftline_core::timeline::session::GoneProof;
pub use library_news::{listed_in, notify};
pub use look_up::{CommitLookUp, commit_look_up};
pub use machine::{CommitMachine, commit_machine};
pub use page::{CommitPage, commit_page};
pub use quarantine::{CommitRetried, commit_retried};
pub use stream::{CommitEvents, ReceivedEvent, StorePosts, commit_events, store_posts};
