use core::error::Error;

use crate::node::Node;
use crate::window::{Retired, Window};

/// A leased node, with the duty to extend its window.
///
/// Production implementations are `ReservationFile` of the module `file`, and leases in a database.
pub trait Lease {
    /// The error of renewal and release.
    type Error: Error;

    /// The leased node.
    fn node(&self) -> &Node;

    /// The number of holders of the node so far. A store rejects writes with an old number.
    fn fence(&self) -> u64;

    /// The Unix µs at which the window must be extended.
    fn due_us(&self) -> i64;

    /// Extends the window if that is due: records the new end, then moves it.
    ///
    /// After an error the window simply ends earlier. Once another holder has taken the lease,
    /// every call must fail, and the window must not be extended again.
    ///
    /// # Errors
    /// An error of the store, or one that says that the lease is lost.
    fn renew(&mut self, now_us: i64) -> Result<(), Self::Error>;

    /// Gives the node back, as used up to the end of the retired generator. The next holder then
    /// need not wait.
    ///
    /// # Errors
    /// An error of the store, or one that says that the lease is lost.
    fn release(self, retired: Retired) -> Result<(), Self::Error>;
}

/// A store that leases nodes.
pub trait LeaseStore {
    /// The lease.
    type Lease: Lease;

    /// Leases a free node, with a window that begins where the last one ended, or now if that is
    /// later.
    ///
    /// # Errors
    /// An error if no node is free, or the store fails.
    fn acquire(&self, now_us: i64) -> Result<(Self::Lease, Window), <Self::Lease as Lease>::Error>;
}
