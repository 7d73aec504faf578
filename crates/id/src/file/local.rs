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

/// IDs for this process, from a node of a folder: clock, lease, keeper and generator in one.
///
/// It uses the [default windows](WindowConfig::default), and waits up to [`MAX_WAIT_MS`] for a clock
/// or a window: longer than crashes hold back the next process on the node. For other windows,
/// another policy or another clock, put the parts together as the [module](crate::file#the-parts)
/// shows.
///
/// Threads share it by reference. Dropped without [`close`](Self::close), it leaves the node free
/// soon, and its next holder waits for the end of the window.
///
/// [`MAX_WAIT_MS`]: Self::MAX_WAIT_MS
#[derive(Debug)]
pub struct LocalIds {
    generator: SharedGenerator<TickedClock>,
    keeper: Keeper<ReservationFile>,
}

impl LocalIds {
    /// How long a call waits at most for the clock, or for the window, in ms.
    pub const MAX_WAIT_MS: u32 = 20_000;

    /// IDs of the lowest node of the folder that no process holds. Makes the folder if there is
    /// none.
    pub fn open(folder: impl AsRef<Path>, layout: Layout) -> Result<Self, FileError> {
        let nodes = NodeFolder::new(folder, layout, WindowConfig::default());
        Self::begin(nodes.acquire(SystemClock.now_us())?)
    }

    /// IDs of that node, which no other machine may use.
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

    /// An ID, after a wait if need be.
    #[inline]
    pub fn next_id(&self) -> Result<u64, Refusal> {
        self.generator.next_id()
    }

    /// Up to `length` IDs of one tick, after a wait if need be.
    pub fn reserve_waiting(&self, length: usize) -> Result<Batch, Refusal> {
        self.generator.reserve_waiting(length)
    }

    /// The generator, for lanes and waits with a deadline.
    pub fn generator(&self) -> &SharedGenerator<TickedClock> {
        &self.generator
    }

    /// Takes out why the window was last not extended, as [`Keeper::take_failure`].
    pub fn take_failure(&self) -> Option<FileError> {
        self.keeper.take_failure()
    }

    /// Ends it, and gives the node back, so that its next holder need not wait.
    pub fn close(self) -> Result<(), KeeperError<FileError>> {
        match self.generator.retire() {
            Some(retired) => self.keeper.close(retired),
            None => Ok(()),
        }
    }
}
