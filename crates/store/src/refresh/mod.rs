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
mod experience;
mod fresh;
mod histories;
mod lease;
mod polled;
mod save;
mod schedule;
mod shown;
mod stored;
mod untold;
mod wanted;

pub use claim::{Ask, Claim, Claimed, Claims, DuePost, What};
pub use count_history::{CountsAt, count_history};
pub use due::{BandStanding, Overdue, bands, due_last, next_due_ms, overdue};
pub use experience::{Told, experience, learn, root as experience_root};
pub use fresh::{Standing, standing};
pub use histories::{Grown, histories};
pub use save::{Answer, Answered, Save, Saved};
pub use shown::{Shown, shown};
pub use untold::{Untold, forget_told, listed_in, tell, untold, untold_of};
pub use wanted::{Found, Noted, Tracked, hydrate, tracked, want};

pub(crate) use fresh::{NewFresh, insert_new, revive, standing_of, unschedule};
pub(crate) use polled::{Again, Polled};
pub(crate) use untold::note;

/// The buckets of an instance: claims of one upstream that need not wait for each other.
pub const SHARDS: i64 = 8;

/// The bucket of a post's due time: its instance, and within it a part of the posts.
pub(crate) fn bucket(instance_id: i64, post_id: i64) -> i64 {
    instance_id * SHARDS + post_id.rem_euclid(SHARDS)
}
