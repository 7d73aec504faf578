//! The policy by the value of a refresh: how posts grow, as observed, and what a request costs.

mod growth_curve;
mod growth_sums;
mod learned_state;
mod policy;
mod quota_price;

pub use growth_curve::{AGE_ENDS_MS, BINS, GrowthCurve};
pub use growth_sums::{Growth, GrowthSums, Scale};
pub use learned_state::{LearnedState, RefreshObservation, RefreshPlan};
pub use policy::{ValuePolicy, ValueSettings};
pub use quota_price::{MAX_STEP, QuotaPrice, QuotaUse};
