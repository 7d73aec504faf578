//! A process that polls a simulated upstream.

use std::time::Duration;

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use tokio::runtime::Runtime;

use super::{
    child::Kind,
    process::{Child, Memory},
};
use crate::failure::Failure;

/// A fresh upstream, in this process, and a fresh process that polls it.
pub(crate) struct Polling {
    runtime: Runtime,
    upstream: SimServer,
    child: Child,
}

impl Polling {
    /// Starts both, and waits until the process polls each of so many sources once a second.
    pub(crate) fn start(kind: Kind, sources: u16) -> Result<Self, Failure> {
        let runtime = Runtime::new()?;
        let config = ServerConfig {
            world: WorldConfig::measured(super::POSTS_PER_S / f64::from(sources)),
            lists: sources,
            ..ServerConfig::default()
        };
        let upstream = runtime.block_on(SimServer::start(config, 1, Clock::Real))?;
        let child = Child::start(kind, &upstream.url(), sources)?;
        Ok(Self {
            runtime,
            upstream,
            child,
        })
    }

    /// The processor time that the process has used.
    pub(super) fn cpu(&self) -> Result<Duration, Failure> {
        self.child.cpu()
    }

    /// The memory of the process.
    pub(super) fn memory(&self) -> Result<Memory, Failure> {
        self.child.memory()
    }

    /// How many pages the upstream was asked for.
    pub(super) fn requests(&self) -> u64 {
        self.upstream.traffic().page_requests
    }

    /// Ends both; how many posts were taken.
    pub(crate) fn stop(self) -> Result<u64, Failure> {
        let posts = self.child.stop()?;
        self.runtime.block_on(self.upstream.shutdown());
        Ok(posts)
    }
}
