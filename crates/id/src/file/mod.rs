//! Windows recorded in files, and nodes leased from a folder.
//!
//! [`ReservationFile`] keeps the record of one node. [`NodeFolder`] hands out the nodes of a
//! folder that the processes of one machine share. A [`Keeper`] extends the window on a thread
//! of its own; a server may call [`renew`](crate::window::Lease::renew) itself instead.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! use driftline_id::clock::{Clock, TickedClock};
//! use driftline_id::file::{Keeper, NodeFolder};
//! use driftline_id::window::{LeaseStore, Terms};
//! use driftline_id::{ClockPolicy, Layout, SharedGenerator};
//!
//! let clock = TickedClock::start();
//! let nodes = NodeFolder::new(folder, Layout::TWITTER, Terms::default());
//! let (lease, window) = nodes.acquire(clock.fresh_us())?;
//! let keeper = Keeper::start(lease, clock.clone())?;
//! let policy = ClockPolicy::Wait { at_most_ms: 5_000 };
//! let ids = SharedGenerator::new(window, clock, policy)?;
//!
//! let id = ids.next_id()?;
//!
//! if let Some(retired) = ids.retire() {
//!     keeper.close(retired)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What a file can and cannot tell
//!
//! - A process holds an exclusive lock on its node's lock file for as long as it lives; the
//!   operating system releases it at its death, however it dies. Lock files are never deleted.
//!   The folder must be on a file system whose locks all processes see: not every network file
//!   system is one.
//! - A record is written anew beside the old one, synced, and renamed over it, and the folder is
//!   synced: after a crash either the old or the new one is there, whole. Nothing is used before
//!   that. A damaged record is an error, and never begun anew by itself.
//! - A record names its folder by device, inode and path. A folder with another inode is a copy
//!   or was restored: it is refused until it is [adopted](ReservationFile::adopt). A moved folder
//!   is accepted. Not noticed is a folder whose files were put back without making the folder
//!   anew, and a copy of a whole disk or machine: two such copies in use at once must have
//!   different nodes by the operator's care, or nodes from a store that both reach. Off Unix only
//!   the path is compared.
//! - A record put back from a backup is older than the last window. As long as the clock has not
//!   also been moved back, the next window begins after all times used, and nothing repeats. A
//!   deleted record is as none.
//! - A forked process holds its parent's lock with it, and can renew nothing.

mod error;
mod folder;
mod keeper;
mod place;
mod reservation;

pub use error::{FileError, KeeperError};
pub use folder::NodeFolder;
pub use keeper::Keeper;
pub use reservation::ReservationFile;
