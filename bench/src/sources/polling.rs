//! A process that polls a simulated upstream.

use std::{
    env,
    process::{Command, Stdio},
};

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use tokio::runtime::Runtime;

use super::child::{Kind, TOKEN_VARIABLE};
use crate::{failure::Failure, process::Process};

/// A fresh upstream, in this process, and a fresh process that polls it.
pub(crate) struct Polling {
    runtime: Runtime,
    upstream: SimServer,
    process: Process,
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
        let mut command = Command::new(env::current_exe()?);
        command
            .args([
                "poll-sources",
                kind.name(),
                &upstream.url(),
                &sources.to_string(),
            ])
            .env(TOKEN_VARIABLE, "bench")
            .stdin(Stdio::piped());
        let process = Process::start(&mut command)?.until_ready()?;
        Ok(Self {
            runtime,
            upstream,
            process,
        })
    }

    /// The process.
    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// How many pages the upstream was asked for.
    pub(super) fn requests(&self) -> u64 {
        self.upstream.traffic().page_requests
    }

    /// Ends both; how many posts were taken.
    pub(crate) fn stop(self) -> Result<u64, Failure> {
        let posts = self.process.end()?.parse()?;
        self.runtime.block_on(self.upstream.shutdown());
        Ok(posts)
    }
}
