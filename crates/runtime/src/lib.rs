//! The parts that all running components of Driftline share: the local clock, fault logs, the
//! health of the store, and the list of metrics.

mod clock;
mod command_error;
mod fault_log;
mod index_backlog;
pub mod metrics;
mod span;

mod store_disk;
mod store_fault;
mod store_probe;
#[cfg(feature = "testing")]
pub mod testing;
mod unhealthy_source;

pub use clock::{now_ms, random, read_clocks, steady_ms};
pub use command_error::CommandError;
pub use fault_log::{FaultLog, FaultLogs, Weight};
pub use index_backlog::{IndexBacklog, IndexWait};
pub use span::show_ms;
pub use store_disk::{LowDisk, StoreDisk};
pub use store_fault::{STORE_RETRY_MS, StoreFault};
pub use store_probe::{ProbeError, StoreProbe};
pub use unhealthy_source::{FailingSource, StalledSource};
