//! The refresh machine: when a stored post is looked up again, with which others, and what becomes
//! of it.
//!
//! Source: the seed on keeping stored tweets updated. What it calls an age is computed here from
//! the time of birth; all delays are ms.
//!
//! There are two policies ([`Policy`]): the seed's age table, and one that asks what a refresh is
//! worth ([`ValuePolicy`]) by a curve of growth that is learned ([`GrowthSums`]) and a price that
//! follows the quota ([`QuotaPrice`]). [`simulation`] compares them.

mod age_table;
mod batch_rule;
mod bisection;
mod engagement;
mod facts;
mod freshness;
mod growth_curve;
mod growth_sums;
mod learned_state;
mod notifying;
mod policy;
mod quota_price;
mod retry;
mod search;
pub mod simulation;
mod value_policy;

pub use age_table::{AgeBand, AgeTable, AgeTableError, Due};
pub use batch_rule::{BatchRule, Fill};
pub use bisection::{Bisection, Verdict};
pub use engagement::EngagementWeights;
pub use facts::{Look, Refreshed};
pub use freshness::{Decision, Freshness, LookupResult, Outcome, RequestContext, Sample};
pub use growth_curve::{AGE_ENDS_MS, BINS, GrowthCurve};
pub use growth_sums::{Growth, GrowthSums, Scale};
pub use learned_state::{LearnedState, Plan, RefreshObservation};
pub use policy::{Cause, Policy};
pub use quota_price::{MAX_STEP, QuotaPrice, QuotaUse};
pub use search::{Blame, CanaryResult, Next, Search, is_silence, may_blame_posts};
pub use value_policy::{ValuePolicy, ValueSettings};
