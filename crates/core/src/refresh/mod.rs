//! The refresh machine. It determines the time and the batch in which a stored post is looked up
//! again, and interprets the result.
//!
//! Source: the seed on keeping stored tweets updated. Its ages are computed here from the creation
//! time. All delays are in ms.
//!
//! There are two policies ([`Policy`]): the seed's age table, and one by the value of a refresh
//! ([`ValuePolicy`]). The second uses a fixed growth curve, learned engagement ([`EngagementSums`])
//! and a price that follows the quota ([`QuotaPrice`]). `driftline-sim` compares them.

mod age_table;
mod batch_rule;
mod bisection;
mod cause;
mod freshness;
mod notification;
mod policy;
mod refresh_history;
mod retry;
mod value;

pub use age_table::{AgeBand, AgeTable, AgeTableError, Due};
pub use batch_rule::{BatchRule, Fill};
pub use bisection::{Bisection, Blame, may_blame_posts};
pub use cause::Cause;
pub use freshness::{
    CountSample, Decision, Freshness, LookupOutcome, LookupResult, RequestContext,
};
pub use policy::Policy;
pub use refresh_history::{EngagementSample, RefreshHistory};
pub use value::{
    EngagementSums, Growth, LearnedState, MAX_STEP, QuotaPrice, QuotaUse, RefreshObservation,
    RefreshPlan, Scale, ValuePolicy, ValueSettings, growth_curve,
};
