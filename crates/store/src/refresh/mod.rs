//! Due times beside the posts, and the claims that workers have on them.
//!
//! A post with a due time (`freshness.due_at_ms`) has one row in `schedule`, or is in one lease. On
//! PostgreSQL a claim takes posts off the schedule and puts them into a lease row, whose end is
//! told by the database's clock; what an ended lease holds is put back by a claim, at the latest
//! one second later, and by any that finds less than a batch. On SQLite one
//! process does all the work: its claims are in memory, the schedule stays as it is until the save,
//! and so a crash leaves every post due.
//!
//! A save is one transaction: posts, their history, their freshness, their next due times, and what
//! their sources' libraries are to be told. It changes nothing if the claim has ended.

mod book;
mod choice;
mod claim;
mod count_history;
mod due;
mod fresh;
mod histories;
mod learned_state;
mod lease;
mod outbox;
mod pending_lookup;
mod polled;
mod recheck;
mod save;
mod schedule;
mod stored;

pub use claim::{Ask, Claim, Claimed, Claims, DuePost, What};
pub use count_history::{CountsAt, count_history};
pub use due::{BandState, Overdue, bands, due_last, next_due_ms, overdue};
pub use fresh::{RefreshState, refresh_state};
pub use histories::{Grown, histories};
pub use learned_state::{ObservationReport, learn, learned_state, root as learned_state_root};
pub use outbox::{OutboxNote, forget_relayed, listed_in, notify, outbox, outbox_of};
pub use pending_lookup::{AddedLookups, Found, TrackedCounts, add_lookups, hydrate, tracked};
pub use recheck::{RecheckAfter, shown};
pub use save::{Answer, Answered, Save, Saved};

pub(crate) use fresh::{NewFresh, insert_new, refresh_state_of, revive, unschedule};
pub(crate) use outbox::note;
pub(crate) use polled::{Polled, RecountCandidate};

/// The buckets of an instance: claims of one upstream that need not wait for each other.
pub const SHARDS: i64 = 8;

/// The bucket of a post's due time: its instance, and within it a part of the posts.
pub(crate) fn bucket(instance_id: i64, post_id: i64) -> i64 {
    instance_id * SHARDS + post_id.rem_euclid(SHARDS)
}
