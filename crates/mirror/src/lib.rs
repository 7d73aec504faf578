//! Reads timelines and keeps stored posts fresh.
//!
//! [`Pollers`] runs a [`Session`] for each source that it holds a lease on, and follows its stream;
//! [`refresh`] looks posts up again; [`UpstreamAccess`] is what both share.

mod absence_proof;
mod anonymous_access;
mod cache_invalidations;
mod client;
mod commit_metrics;
mod completeness;
mod follower;
mod held_pages;
mod instance_api;
mod instance_watch;
mod look_up_abilities;
mod month;
mod policies;
mod pollers;
mod quarantine;
pub mod quotas;
mod recent_changes;
pub mod refresh;
mod sealing_key;
mod secrets;
mod session;
mod sharing;
mod source_credential;
mod source_health;
mod source_state;
mod threads;
mod track;
mod upstream_access;
mod waiting_posts;

pub use cache_invalidations::CacheInvalidations;
pub use client::{ClientError, Server};
pub use completeness::{
    CompletenessReport, GapReport, GapState, LatenessReport, Reader, RungReport,
    completeness_report, source_facts,
};
pub use follower::Following;
pub use held_pages::HeldPages;
pub use instance_api::same_api;
pub use instance_watch::InstanceWatch;
pub use look_up_abilities::LookUpAbilities;
pub use policies::Policies;
pub use pollers::{Pollers, PollersOptions, Progress};
pub use sealing_key::{SealingError, SealingKey};
pub use secrets::{Secrets, SecretsError};
pub use session::{Done, Session, SessionError};
pub use sharing::{Membership, Sharing};
pub use source_health::{SourceFault, SourceHealth};
pub use source_state::{RangeCounts, SourceFacts, SourceState, SourceWait, Verdict};
pub use threads::{ShownThread, Threads};
pub use track::{forget_tracked, is_usable, track, track_outcomes, tracked_posts, tracked_source};
pub use upstream_access::{POLLING_SHARE, UpstreamAccess};
