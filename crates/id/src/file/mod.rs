//! Windows recorded in files, and nodes leased from a folder.
//!
//! [`LocalIds`] combines all parts:
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! use driftline_id::Layout;
//! use driftline_id::file::LocalIds;
//!
//! let ids = LocalIds::open(folder, Layout::TWITTER)?;
//! let first = ids.next_id()?;
//! assert!(ids.next_id()? > first);
//! ids.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! [`ReservationFile`] keeps the record of one node. [`NodeFolder`] hands out the nodes of a folder
//! that the processes of one machine share. A [`Keeper`] extends the window on a thread of its own;
//! a server may call [`renew`](crate::window::Lease::renew) itself instead.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! use driftline_id::clock::{Clock, SystemClock, TickedClock};
//! use driftline_id::file::{Keeper, NodeFolder};
//! use driftline_id::window::{LeaseStore, WindowConfig};
//! use driftline_id::{ClockPolicy, Layout, SharedGenerator};
//!
//! let nodes = NodeFolder::new(folder, Layout::TWITTER, WindowConfig::default());
//! let (lease, window) = nodes.acquire(SystemClock.now_us())?;
//! let keeper = Keeper::start(lease, SystemClock)?;
//! let policy = ClockPolicy::Wait { at_most_ms: 10_000 };
//! let ids = SharedGenerator::new(window, TickedClock::start(), policy)?;
//!
//! let id = ids.next_id()?;
//!
//! if let Some(retired) = ids.retire() {
//!     keeper.close(retired)?;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The limits of files
//!
//! - A process holds an exclusive lock on its node's lock file for as long as it lives; the
//!   operating system releases it at its death, however it dies. Lock files are never deleted here.
//!   The folder must be on a file system whose locks all processes see: not every network file system
//!   is one.
//! - Before each write, a holder makes sure that the lock file in the folder is the one it
//!   locked, and the record the one it wrote; off Unix, that there is a lock file, and the record. If
//!   they were removed, replaced or moved, the lease is [lost](FileError::Lost): it writes nothing
//!   more, and its window ends. The other holder begins where the record that it found ends, so the
//!   two share no time, unless it found none.
//! - A record is written to a new file next to the old one, synced, and renamed over it, and the
//!   folder is
//!   synced: after a crash either the old or the new one is there, whole. Nothing is used before
//!   that. A damaged record is an error, and is never replaced by a new one.
//! - A record names its folder by device, inode, creation time and path. A folder with another
//!   inode
//!   or creation time is a copy or was restored: it is refused until it is
//!   [adopted](ReservationFile::adopt). A moved folder is accepted. Not noticed is a folder whose
//!   files were put back without recreating the folder, the root of a recreated file system where
//!   creation times are not kept, and a copy of a whole disk or machine: two such copies in use at
//!   once must have different nodes by the operator's care, or nodes from a store that both reach.
//!   Off Unix only creation time and path are compared.
//! - A record put back from a backup is older than the last window. As long as the clock has not
//!   also been moved back, the next window begins after all times used, and nothing repeats.
//! - A deleted record counts as no record: the next window begins now, which is safe only if the
//!   node's
//!   last holder is dead and the clock is past all its times. Deleting records, or moving the folder
//!   away, while a holder lives lets a second one begin inside the times of the first.
//! - A forked process holds its parent's lock with it, and can renew nothing.

mod error;
mod files;
mod folder;
mod folder_identity;
mod keeper;
mod local;
mod reservation;

pub use error::{FileError, KeeperError};
pub use folder::NodeFolder;
pub use keeper::Keeper;
pub use local::LocalIds;
pub use reservation::ReservationFile;
