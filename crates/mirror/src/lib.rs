//! Reads timelines and keeps stored posts fresh.
//!
//! [`Pollers`] runs a [`Session`] for each source that it holds a lease on, and follows its stream;
//! [`refresh`] looks posts up again; [`UpstreamAccess`] is what both share.

mod cache_invalidations;
mod client;
mod completeness;
mod follower;
mod instance_api;
mod month;
mod policies;
mod pollers;
mod quarantine;
pub mod quotas;
mod recent_posts;
pub mod refresh;
mod secrets;
mod session;
mod source_health;
mod track;
mod upstream_access;

pub use cache_invalidations::CacheInvalidations;
pub use client::ClientError;
pub use completeness::{
    CompletenessReport, GapReport, GapState, LatenessReport, RungReport, completeness_report,
};
pub use follower::Following;
pub use instance_api::same_api;
pub use policies::Policies;
pub use pollers::{Pollers, PollersOptions, Progress};
pub use secrets::{Secrets, SecretsError};
pub use session::{Done, Session, SessionError, request_fill};
pub use source_health::{SourceFault, SourceHealth};
pub use track::{is_usable, track, tracked_posts};
pub use upstream_access::{POLLING_SHARE, UpstreamAccess};
