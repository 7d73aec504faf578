//! The due times of posts, and the claims of workers on them.
//!
//! A post with a due time (`freshness.due_at_ms`) has one row in `schedule`, or is in one lease. On
//! PostgreSQL a claim moves posts from the schedule to a lease row, which ends by the database's
//! clock. Claims return the posts of ended leases, at most one second later, and whenever they find
//! less than a batch. On SQLite one process does all the work. Its claims are in memory, and the
//! schedule stays unchanged until the save, so a crash leaves every post due.
//!
//! This module does not know how timelines are mirrored: `mirror` uses it, never the reverse.
//!
//! A save is one transaction: posts, their history, their freshness, their next due times, and the
//! outbox, from which their sources' libraries are notified. It changes nothing if the claim has
//! ended.

mod changes;
mod choice;
mod claim;
mod claim_book;
mod claim_lease;
mod count_history;
mod due;
mod due_post;
mod freshness;
mod growth_history;
mod learned_state;
mod lookup_access;
mod outbox;
pub(crate) mod pending_lookup;
mod recheck;
mod recount;
mod refresh_state;
mod save;
mod schedule;
mod shards;
mod stored;
mod times_ahead;
mod unrefreshed;

pub use claim::{Claim, ClaimRequest, Claimed, Claims};
#[doc(hidden)] // Tests count them.
pub use claim_lease::claimed_slots;
pub use count_history::{CountsAt, count_history};
pub use due::{BandState, Overdue, Waiting, bands, due_by, next_due_ms, overdue, waiting};
pub use due_post::{DuePost, LookupTarget};
pub use growth_history::{GrowthHistory, growth_histories};
pub use learned_state::{ObservationReport, learn, learned_state, root as learned_state_root};
pub use lookup_access::LookupAccess;
pub use outbox::{OutboxItem, forget_relayed, outbox, outbox_of, with_outbox};
pub use pending_lookup::{PendingPost, pending_post};
pub use recheck::{RecheckAfter, rechecks_after};
pub use refresh_state::RefreshState;
pub use save::{AnsweredLookup, LookupAnswer, Save, Saved};
pub use shards::Shards;
pub use stored::refresh_state;
pub use times_ahead::{correct_times_ahead, has_times_ahead};

pub(crate) use freshness::{insert, retire, revive, unschedule};
pub(crate) use lookup_access::{PendingHolders, is_open};
pub(crate) use outbox::add_to_outbox;
pub(crate) use recount::{Look, RecountContext};
pub(crate) use stored::by_ids as states;
pub(crate) use unrefreshed::{PendingUnrefreshed, held_by};

/// The number of an instance's buckets. Claims in different buckets need not wait for each other.
pub const SHARDS: i64 = 8;

/// The bucket of a post's due time, which never changes: a share of its instance's posts, by any
/// number that differs between posts.
pub(crate) fn bucket(instance_id: i64, number: i64) -> i64 {
    instance_id * SHARDS + number.rem_euclid(SHARDS)
}

/// The instance of a bucket.
pub(crate) fn instance_of(bucket: i64) -> i64 {
    bucket.div_euclid(SHARDS)
}
