//! `sources`: what 200 sources polled once a second cost, next to a bare loop that stores nothing.

mod child;
mod polling;
mod process;

use std::{thread::sleep, time::Duration};

pub(crate) use self::{
    child::{ChildOptions, Kind, run as run_child},
    polling::Polling,
};
use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
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
    let (mut ours, mut peer) = (Vec::new(), Vec::new());
    for round in 0..effort.rounds(2) {
        if round % 2 == 0 {
            ours.push(plan.measure(Kind::Driftline)?);
            peer.push(plan.measure(Kind::Bare)?);
        } else {
            peer.push(plan.measure(Kind::Bare)?);
            ours.push(plan.measure(Kind::Driftline)?);
        }
    }
    let mut table = Table::new(
        format!(
            "sources: {} sources, {POSTS_PER_S} posts/s in all, each polled once a second, {} s",
            plan.sources,
            plan.measured.as_secs()
        ),
        ["figure", "Driftline", "bare loop", "ratio", "target", "met"],
    );
    let mut row = |name: &str, figure: fn(&Usage) -> f64, digits, target: Option<(f64, &str)>| {
        let of = |usages: &[Usage]| Spread::of(usages.iter().map(figure), digits);
        let ratios = ours.iter().zip(&peer).map(|(o, p)| figure(o) / figure(p));
        table.row([
            name.to_owned(),
            of(&ours).to_string(),
            of(&peer).to_string(),
            Spread::of(ratios, 2).to_string(),
            target.map_or_else(String::new, |(most, unit)| format!("< {most}{unit}")),
            target.map_or_else(String::new, |(most, _)| met(of(&ours).median < most)),
        ]);
    };
    row(
        "CPU, % of one core",
        |u| u.cpu_percent,
        1,
        Some((30.0, " %")),
    );
    row("resident, MB", |u| u.resident_mb, 1, Some((150.0, " MB")));
    row("resident at most, MB", |u| u.peak_mb, 1, None);
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
    resident_mb: f64,
    peak_mb: f64,
    requests_per_s: f64,
    posts: f64,
}

impl Plan {
    /// A fresh upstream and a fresh process each time; the process counts alone.
    fn measure(self, kind: Kind) -> Result<Usage, Failure> {
        let polling = Polling::start(kind, self.sources)?;
        sleep(self.warm_up);
        let (cpu_before, requests_before) = (polling.cpu()?, polling.requests());
        sleep(self.measured);
        let (cpu_after, requests_after) = (polling.cpu()?, polling.requests());
        let memory = polling.memory()?;
        let posts = polling.stop()?;
        let seconds = self.measured.as_secs_f64();
        Ok(Usage {
            cpu_percent: (cpu_after - cpu_before).as_secs_f64() / seconds * 100.0,
            resident_mb: memory.resident_kb / 1024.0,
            peak_mb: memory.peak_kb / 1024.0,
            requests_per_s: (requests_after - requests_before) as f64 / seconds,
            posts: posts as f64,
        })
    }
}

const POSTS_PER_S: f64 = 20.0;
