//! What a policy would have made of given histories under a given quota, in virtual time.
//!
//! A [`World`] holds posts with the moments at which their counts changed: one's own history, or
//! one made up by a [`WorldConfig`]. [`run`] refreshes its posts as the server does, in batches under
//! a quota of requests, and tells how much change went unseen for how long.

mod policy_run;
mod queue;
mod scenario;
mod world;
mod world_config;

pub use policy_run::{Outcome, PolicyKind, Quota, run};
pub use scenario::{Baseline, Scenario};
pub use world::{History, World};
pub use world_config::{Totals, WorldConfig};
