//! `sources`: what 200 sources polled once a second cost, next to a bare loop that stores nothing.

mod child;
mod polling;

use std::{thread::sleep, time::Duration};

pub(crate) use self::{
    child::{ChildOptions, Kind, run as run_child},
    polling::Polling,
};
use crate::{
    Effort, cpu,
    failure::Failure,
    process::Memory,
    rounds::Pairs,
    table::{Table, met},
};

/// Measures both in processes of their own.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let plan = if effort.quick {
        Plan {
            sources: 20,
            warm_up: Duration::from_secs(2),
            measured: Duration::from_secs(4),
        }
    } else {
        Plan {
            sources: 200,
            warm_up: Duration::from_secs(20),
            measured: Duration::from_secs(60),
        }
    };
    let pairs = Pairs::measure(
        effort.rounds(2),
        || plan.measure(Kind::Driftline),
        || plan.measure(Kind::Bare),
    )?;
    let mut table = Table::new(
        format!(
            "sources: {} sources, {POSTS_PER_S} posts/s in all, each polled once a second, {} s",
            plan.sources,
            plan.measured.as_secs()
        ),
        ["figure", "Driftline", "bare loop", "ratio", "target", "met"],
    );
    let mut row = |name: &str, figure: fn(&Usage) -> f64, digits, target: Option<(f64, &str)>| {
        let [ours, peer, ratio] = pairs.cells(figure, digits);
        let median = pairs.ours(figure, digits).median;
        table.row([
            name.to_owned(),
            ours,
            peer,
            ratio,
            target.map_or_else(String::new, |(most, unit)| format!("< {most}{unit}")),
            target.map_or_else(String::new, |(most, _)| met(median < most)),
        ]);
    };
    row(
        "CPU, % of one core",
        |u| u.cpu_percent,
        1,
        Some((30.0, " %")),
    );
    row(
        "resident, MB",
        |u| u.memory.resident_mb,
        1,
        Some((150.0, " MB")),
    );
    row("resident at most, MB", |u| u.memory.peak_mb, 1, None);
    row("requests/s", |u| u.requests_per_s, 1, None);
    row("posts taken", |u| u.posts, 0, None);
    table.print();
    Ok(())
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Plan {
    sources: u16,
    warm_up: Duration,
    measured: Duration,
}

/// What a process used.
#[derive(Debug, Clone, Copy)]
struct Usage {
    cpu_percent: f64,
    memory: Memory,
    requests_per_s: f64,
    posts: f64,
}

impl Plan {
    /// A fresh upstream and a fresh process each time; the process counts alone.
    fn measure(self, kind: Kind) -> Result<Usage, Failure> {
        let polling = Polling::start(kind, self.sources)?;
        sleep(self.warm_up);
        let used = || cpu::of_process(polling.process().id());
        let (cpu_before, requests_before) = (used()?, polling.requests());
        sleep(self.measured);
        let (cpu_after, requests_after) = (used()?, polling.requests());
        let memory = polling.process().memory()?;
        let posts = polling.stop()?;
        let seconds = self.measured.as_secs_f64();
        Ok(Usage {
            cpu_percent: (cpu_after - cpu_before).as_secs_f64() / seconds * 100.0,
            memory,
            requests_per_s: (requests_after - requests_before) as f64 / seconds,
            posts: posts as f64,
        })
    }
}

const POSTS_PER_S: f64 = 20.0;
