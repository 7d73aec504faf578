//! `sources`: what 200 sources polled once a second cost, next to a bare loop that stores nothing.

mod child;

use std::{thread::sleep, time::Duration};

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use tokio::runtime::Runtime;

pub(crate) use self::child::{ChildOptions, run as run_child};
use crate::{
    Effort, cpu,
    failure::Failure,
    process::{Memory, Process, Side},
    rounds::Pairs,
    table::{Table, Target},
};

/// Measures both in processes of their own.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let (sources, warm_up_s, measured_s) = match effort.quick {
        true => (20, 2, 4),
        false => (200, 20, 60),
    };
    let [warm_up, measured] = [warm_up_s, measured_s].map(Duration::from_secs);
    let pairs = Pairs::measure(
        effort.rounds(2),
        || measure(Side::Driftline, sources, warm_up, measured),
        || measure(Side::Bare, sources, warm_up, measured),
    )?;
    let mut table = Table::new(
        format!(
            "sources: {sources} sources, {POSTS_PER_S} posts/s in all, each polled once a second, {measured_s} s"
        ),
        "figure | Driftline | bare loop | ratio | target | met",
    );
    let mut row = |name: &str, figure: fn(&Usage) -> f64, digits, target| {
        table.compare(name, &pairs, figure, digits, target);
    };
    row(
        "CPU, % of one core",
        |u| u.cpu_percent,
        1,
        Target::Below(30.0),
    );
    row(
        "resident, MB",
        |u| u.memory.resident_mb,
        1,
        Target::Below(150.0),
    );
    row("resident at most, MB", |u| u.memory.peak_mb, 1, Target::Any);
    row("requests/s", |u| u.requests_per_s, 1, Target::Any);
    row("posts taken", |u| u.posts, 0, Target::Any);
    table.print();
    Ok(())
}

/// What a process used.
#[derive(Debug, Clone, Copy)]
struct Usage {
    cpu_percent: f64,
    memory: Memory,
    requests_per_s: f64,
    posts: f64,
}

/// Measures a fresh process with a fresh upstream; the process counts alone.
fn measure(
    side: Side,
    sources: u16,
    warm_up: Duration,
    measured: Duration,
) -> Result<Usage, Failure> {
    let polling = Polling::start(side, sources)?;
    sleep(warm_up);
    let used = || cpu::of_process(polling.process.id());
    let requests = || polling.upstream.traffic().page_requests;
    let (cpu_before, requests_before) = (used()?, requests());
    sleep(measured);
    let (cpu_after, requests_after) = (used()?, requests());
    let memory = polling.process.memory()?;
    let posts = polling.stop()?;
    let seconds = measured.as_secs_f64();
    Ok(Usage {
        cpu_percent: (cpu_after - cpu_before).as_secs_f64() / seconds * 100.0,
        memory,
        requests_per_s: (requests_after - requests_before) as f64 / seconds,
        posts: posts as f64,
    })
}

/// A fresh upstream, in this process, and a fresh process that polls it.
pub(crate) struct Polling {
    runtime: Runtime,
    upstream: SimServer,
    process: Process,
}

impl Polling {
    /// Starts both, and waits until the process polls each of so many sources once a second.
    pub(crate) fn start(side: Side, sources: u16) -> Result<Self, Failure> {
        let runtime = Runtime::new()?;
        let config = ServerConfig {
            world: WorldConfig::measured(POSTS_PER_S / f64::from(sources)),
            lists: sources,
            ..ServerConfig::default()
        };
        let upstream = runtime.block_on(SimServer::start(config, 1, Clock::Real))?;
        let (url, count) = (upstream.url(), sources.to_string());
        let process = Process::start_own(&["poll-sources", side.name(), &url, &count])?;
        Ok(Self {
            runtime,
            upstream,
            process: process.until_ready()?,
        })
    }

    /// Ends both; how many posts were taken.
    pub(crate) fn stop(self) -> Result<u64, Failure> {
        let posts = self.process.end()?.parse()?;
        self.runtime.block_on(self.upstream.shutdown());
        Ok(posts)
    }
}

const POSTS_PER_S: f64 = 20.0;
