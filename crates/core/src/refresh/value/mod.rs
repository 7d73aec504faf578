//! The policy by the value of a refresh: how posts grow, how much they get, and what a request costs.

mod engagement_sums;
pub mod growth_curve;
mod learned_state;
mod policy;
mod quota_price;

pub use engagement_sums::{EngagementSums, Growth, Scale};
pub use learned_state::{LearnedState, RefreshObservation, RefreshPlan};
pub use policy::{ValuePolicy, ValueSettings};
pub use quota_price::{MAX_STEP, QuotaPrice, QuotaUse};
