//! The refresh machine: when a stored post is looked up again, in which batch, and what the result
//! means.
//!
//! Source: the seed on keeping stored tweets updated. Its ages are computed here from the creation
//! time; all delays are ms.
//!
//! There are two policies ([`Policy`]): the seed's age table, and one by the value of a
//! refresh ([`ValuePolicy`]), from a learned growth curve ([`GrowthSums`]) and a price that follows
//! the quota ([`QuotaPrice`]). [`simulation`] compares them.

mod age_table;
mod batch_rule;
mod bisection;
mod engagement;
mod freshness;
mod growth_curve;
mod growth_sums;
mod learned_state;
mod notification;
mod policy;
mod quota_price;
mod refresh_history;
mod retry;
pub mod simulation;
mod value_policy;

pub use age_table::{AgeBand, AgeTable, AgeTableError, Due};
pub use batch_rule::{BatchRule, Fill};
pub use bisection::{Bisection, Blame, may_blame_posts};
pub use engagement::EngagementWeights;
pub use freshness::{
    CountSample, Decision, Freshness, LookupOutcome, LookupResult, RequestContext,
};
pub use growth_curve::{AGE_ENDS_MS, BINS, GrowthCurve};
pub use growth_sums::{Growth, GrowthSums, Scale};
pub use learned_state::{LearnedState, RefreshObservation, RefreshPlan};
pub use policy::{Cause, Policy};
pub use quota_price::{MAX_STEP, QuotaPrice, QuotaUse};
pub use refresh_history::{EngagementSample, RefreshHistory};
pub use value_policy::{ValuePolicy, ValueSettings};
