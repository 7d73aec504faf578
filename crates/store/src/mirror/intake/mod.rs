//! Commits of answers: the contents of a page, a stream or a look-up become posts and entries.

pub mod absence;
mod commit_summary;
pub(crate) mod deletion;
pub(crate) mod locked_instance;
mod look_up;
pub(crate) mod observation;
mod page;
pub(crate) mod past_ids;
pub(crate) mod post_intake;
pub(crate) mod profile_change;
pub mod quarantine;
mod stream;

pub use commit_summary::CommitSummary;
pub use look_up::{CommitLookUp, commit_look_up};
pub use page::{CommitPage, commit_page};
pub use quarantine::{CommitRetried, commit_retried};
pub use stream::{CommitEvents, ReceivedEvent, StorePosts, commit_events, store_posts};
