use core::error::Error;

use crate::node::Node;
use crate::window::{Retired, Window};

/// A node held, with the duty to extend its window.
///
/// Production implementations: `ReservationFile` of the module `file`, and leases in a
/// database.
pub trait Lease {
    /// What can go wrong.
    type Error: Error;

    /// The node held.
    fn node(&self) -> &Node;

    /// Counts the holders of the node; a store refuses writes with an old one.
    fn fence(&self) -> u64;

    /// The Unix µs from which on the window is due to be extended.
    fn due_us(&self) -> i64;

    /// Extends the window if that is due: records, then moves the end.
    ///
    /// After an error the window simply ends earlier. A lease that another holder has taken
    /// over must fail from then on, and its window must not be extended again.
    fn renew(&mut self, now_us: i64) -> Result<(), Self::Error>;

    /// Gives the node back, recorded as used up to where the generator got, so that the next
    /// holder need not wait.
    fn release(self, retired: Retired) -> Result<(), Self::Error>;
}

/// Where nodes are leased.
pub trait LeaseStore {
    /// The lease.
    type Lease: Lease;

    /// A free node, with a window that begins where the last one ended or now,
    /// whichever is later.
    fn acquire(&self, now_us: i64) -> Result<(Self::Lease, Window), <Self::Lease as Lease>::Error>;
}
