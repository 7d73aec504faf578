use std::path::Path;

use crate::batch::Batch;
use crate::clock::{Clock, SystemClock, TickedClock};
use crate::file::{FileError, Keeper, KeeperError, NodeFolder, ReservationFile};
use crate::layout::Layout;
use crate::node::Node;
use crate::policy::ClockPolicy;
use crate::refusal::Refusal;
use crate::shared::SharedGenerator;
use crate::window::{LeaseStore, Window, WindowConfig};

/// IDs for this process, from a node of a folder: clock, lease, keeper and generator together.
///
/// It uses the [default windows](WindowConfig::default) and waits up to [`MAX_WAIT_MS`] for a clock
/// or a window. That is longer than crashes delay the next process on the node. To use other
/// windows, another policy or another clock, combine the parts as the
/// [module](crate::file#the-parts) shows.
///
/// Threads share it by reference. Dropped without [`close`](Self::close), it frees the node soon,
/// but the next holder waits for the end of the window.
///
/// [`MAX_WAIT_MS`]: Self::MAX_WAIT_MS
#[derive(Debug)]
pub struct LocalIds {
    generator: SharedGenerator<TickedClock>,
    keeper: Keeper<ReservationFile>,
}

impl LocalIds {
    /// The longest wait of a call for the clock or the window, in ms.
    pub const MAX_WAIT_MS: u32 = 20_000;

    /// Leases the lowest free node of the folder. Makes the folder if it does not exist.
    ///
    /// # Errors
    /// [`FileError`] if all nodes are held, a record or the folder is unusable, or the keeper or
    /// the generator cannot start.
    pub fn open(folder: impl AsRef<Path>, layout: Layout) -> Result<Self, FileError> {
        let nodes = NodeFolder::new(folder, layout, WindowConfig::default());
        Self::begin(nodes.acquire(SystemClock.now_us())?)
    }

    /// Leases the given node, which no other machine may use.
    ///
    /// # Errors
    /// [`FileError`] if the node is held, its record or the folder is unusable, or the keeper or
    /// the generator cannot start.
    pub fn open_node(folder: impl AsRef<Path>, node: Node) -> Result<Self, FileError> {
        let now_us = SystemClock.now_us();
        let held = ReservationFile::open(folder.as_ref(), node, WindowConfig::default(), now_us)?;
        Self::begin(held)
    }

    fn begin((lease, window): (ReservationFile, Window)) -> Result<Self, FileError> {
        let policy = ClockPolicy::Wait {
            at_most_ms: Self::MAX_WAIT_MS,
        };
        let generator = SharedGenerator::new(window, TickedClock::start(), policy);
        Ok(Self {
            generator: generator.map_err(FileError::Start)?,
            keeper: Keeper::start(lease, SystemClock).map_err(FileError::Thread)?,
        })
    }

    /// Returns an ID. Waits if necessary.
    ///
    /// # Errors
    /// [`Refusal`] if the wait takes too long or cannot help.
    #[inline]
    pub fn next_id(&self) -> Result<u64, Refusal> {
        self.generator.next_id()
    }

    /// Returns up to `length` IDs of one tick. Waits if necessary.
    ///
    /// # Errors
    /// [`Refusal`] if the wait takes too long or cannot help.
    pub fn reserve_waiting(&self, length: usize) -> Result<Batch, Refusal> {
        self.generator.reserve_waiting(length)
    }

    /// The generator, for lanes and waits with a deadline.
    pub fn generator(&self) -> &SharedGenerator<TickedClock> {
        &self.generator
    }

    /// Takes the error of the last extension of the window, as [`Keeper::take_failure`] does.
    pub fn take_failure(&self) -> Option<FileError> {
        self.keeper.take_failure()
    }

    /// Stops the generator and gives the node back, so that its next holder need not wait.
    ///
    /// # Errors
    /// The same as those of [`Keeper::close`].
    pub fn close(self) -> Result<(), KeeperError<FileError>> {
        match self.generator.retire() {
            Some(retired) => self.keeper.close(retired),
            None => Ok(()),
        }
    }
}
