//! The refresh machine: when a stored post is looked up again, in which batch, and what the result
//! means.
//!
//! Source: the seed on keeping stored tweets updated. Its ages are computed here from the creation
//! time; all delays are ms.
//!
//! There are two policies ([`Policy`]): the seed's age table, and one by the value of a
//! refresh ([`ValuePolicy`]), from a growth curve, learned engagement ([`EngagementSums`]) and a price that follows
//! the quota ([`QuotaPrice`]). `driftline-sim` compares them.

mod age_table;
mod batch_rule;
mod bisection;
mod freshness;
mod notification;
mod policy;
mod refresh_history;
mod retry;
mod value;

pub use age_table::{AgeBand, AgeTable, AgeTableError, Due};
pub use batch_rule::{BatchRule, Fill};
pub use bisection::{Bisection, Blame, may_blame_posts};
pub use freshness::{
    CountSample, Decision, Freshness, LookupOutcome, LookupResult, RequestContext,
};
pub use policy::{Cause, Policy};
pub use refresh_history::{EngagementSample, RefreshHistory};
pub use value::{
    EngagementSums, Growth, LearnedState, MAX_STEP, QuotaPrice, QuotaUse, RefreshObservation,
    RefreshPlan, Scale, ValuePolicy, ValueSettings, growth_curve,
};
