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
mod batcher;
mod bisection;
mod engagement;
mod experience;
mod facts;
mod freshness;
mod growth_curve;
mod growth_sums;
mod policy;
mod quota_price;
mod retry;
mod search;
pub mod simulation;
mod telling;
mod value_policy;

pub use age_table::{AgeBand, AgeTable, AgeTableError, Due};
pub use batcher::{Batcher, Fill};
pub use bisection::{Bisection, Verdict};
pub use engagement::EngagementWeights;
pub use experience::{Experience, Lesson, Plan};
pub use facts::{Look, Refreshed};
pub use freshness::{Asked, Freshness, Judged, Outcome, Sample, Word};
pub use growth_curve::{AGE_ENDS_MS, BINS, GrowthCurve};
pub use growth_sums::{Growth, GrowthSums, Scale};
pub use policy::{Cause, Policy};
pub use quota_price::{MOST_STEP, QuotaPrice, QuotaUse};
pub use search::{Blame, Next, Search, Witnessed, is_silence, may_blame_posts};
pub use value_policy::{ValuePolicy, ValueSettings};
