//! Sources: their rows, changes, leases and removal; sources of requested posts and of threads.

mod forget_tracked;
pub mod source;
pub(crate) mod source_audience;
pub(crate) mod source_change;
pub mod source_lease;
pub(crate) mod source_removal;
pub mod thread_source;
pub mod tracked;
