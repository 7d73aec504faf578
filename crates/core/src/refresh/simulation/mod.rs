//! What a policy would have made of given histories under a given quota, in virtual time.
//!
//! A [`World`] holds posts with the moments at which their counts changed: one's own history, or
//! one made up by a [`Recipe`]. [`run`] refreshes its posts as the server does, in batches under
//! a quota of requests, and tells how much change went unseen for how long.

mod contest;
mod queue;
mod recipe;
mod scenario;
mod world;

pub use contest::{Contestant, Outcome, Quota, run};
pub use recipe::{Recipe, Totals};
pub use scenario::{Rival, Scenario};
pub use world::{History, World};
