//! The timeline machine, which reads one source so that no post is missed.
//!
//! [`Machine`] accepts events (a page arrived, a request failed, the time) and returns steps (fetch
//! this page, look up this post, wait until). Its state is committed together with the posts of
//! each page.

mod abilities;
mod absence_proof;
mod age_bins;
mod backoff;
pub use backoff::backoff_ms;
mod cadence;
mod clamp;
mod evidence;
mod gap_ledger;
mod ladder;
mod lateness;
mod machine;
mod overlap;
mod page_order;
mod places;
mod plan;
mod probes;
mod reading;
mod request;
mod scheme;
mod server_time;
pub mod session;
mod settings;
mod trials;

pub use abilities::{Honoured, HonouredAbilities, Observed, Unprovable};
pub use absence_proof::{AbsenceProof, ControlPosts, ProofStep};
pub use cadence::Cadence;
pub use clamp::since_id;
pub use evidence::{Evidence, PAGE_FULL, PROVEN_PAGE_FULLS, bound_of};
pub use gap_ledger::{Gap, GapKind, GapLedger, Provisional, Stretch};
pub use ladder::{Ladder, Rung, RungStats};
pub use lateness::{Distribution, Lateness};
pub use machine::{
    AbsenceRange, Counters, FailedRequest, LastError, LookUpOutcome, Machine, Polls, Step, Stored,
    Waiting,
};
pub use overlap::Choice;
pub use places::Places;
pub use plan::{Plan, Probe, Proof};
pub use reading::{Disorder, Reading};
pub use request::{Anchor, AnchorQuery, Fetch, Request, RequestPurpose};
pub use scheme::{IdScheme, detect_layout, detect_order};
pub use server_time::{answered_by_ms, retrieved_at_ms};
pub use session::Session;
pub use settings::{Backfill, Overlap, Settings, Streaming};
