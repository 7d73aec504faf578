//! `commits`: pages of 40 posts that several processes commit to one PostgreSQL at once, next to one
//! that does so alone.

use std::{
    thread,
    time::{Duration, Instant},
};

use driftline_db::testing::{Cluster, Link};
use driftline_store::{SecretUrl, Store, Target};

use crate::{
    Effort,
    failure::Failure,
    ingest::{Intake, add_source_of, page},
    pages::{self, RawPage},
    rounds::Spread,
    table::Table,
};

/// How many writers there are, and what they share.
#[derive(Clone, Copy)]
pub(crate) struct Writers {
    processes: usize,
    sources: usize,
    /// Whether all sources are of one instance, and so have each post in common.
    of_one_instance: bool,
}

const ALONE: Writers = Writers::new(1, 1);
const MEASURED: [Writers; 4] = [
    Writers::new(1, 4),
    Writers::new(4, 4),
    Writers::new(8, 2),
    Writers {
        of_one_instance: true,
        ..Writers::new(4, 4)
    },
];

impl Writers {
    pub(crate) const fn new(processes: usize, sources: usize) -> Self {
        Self {
            processes,
            sources,
            of_one_instance: false,
        }
    }

    fn name(self) -> String {
        let shared = if self.of_one_instance {
            ", one instance"
        } else {
            ""
        };
        format!("{} x {}{shared}", self.processes, self.sources)
    }
}

/// Measures them directly and over a link.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let count = if effort.quick { 4 } else { 60 };
    let pages = pages::forward(u64::from(pages::LIMIT) * count)?;
    let cluster = Cluster::start()?;
    let mut table = Table::new(
        format!(
            "commits: {} pages of {} posts a source",
            pages.len(),
            pages::LIMIT
        ),
        [
            "processes x sources",
            "link, ms each way",
            "commits/s",
            "alone",
            "times",
            "round trips a commit",
        ],
    );
    let rounds = effort.rounds(3);
    let mut schema = 0;
    for delay_ms in [0.0, 2.5] {
        let delay = Duration::from_secs_f64(delay_ms / 1000.0);
        let url = match delay.is_zero() {
            true => cluster.url().to_owned(),
            false => Link::delayed(cluster.url(), delay)?.url().to_owned(),
        };
        let mut measure = |writers| {
            schema += 1;
            let target = Target::Postgres {
                url: SecretUrl::new(&url),
                schema: Some(format!("commits_{schema}")),
            };
            commits(&target, writers, &pages)
        };
        let mut alone = Vec::new();
        let mut measured = vec![Vec::new(); MEASURED.len()];
        for _ in 0..rounds {
            alone.push(measure(ALONE)?.per_s);
            for (writers, measured) in MEASURED.iter().zip(&mut measured) {
                measured.push(measure(*writers)?);
            }
        }
        for (writers, measured) in MEASURED.iter().zip(measured) {
            let figures = measured.iter().map(|commits| commits.per_s);
            let times = figures
                .clone()
                .zip(&alone)
                .map(|(figure, alone)| figure / alone);
            let times = Spread::of(times, 2);
            let round_trips = measured.iter().map(|commits| commits.round_trips);
            table.row([
                writers.name(),
                format!("{delay_ms}"),
                Spread::of(figures, 0).to_string(),
                Spread::of(alone.iter().copied(), 0).to_string(),
                times.to_string(),
                Spread::of(round_trips, 1).to_string(),
            ]);
        }
    }
    table.print();
    Ok(())
}

#[derive(Clone, Copy)]
pub(crate) struct Commits {
    pub(crate) per_s: f64,
    /// Of each, those of preparing statements included.
    round_trips: f64,
}

/// Has new writers commit these pages, each those of a source of its own.
pub(crate) fn commits(
    target: &Target,
    writers: Writers,
    pages: &[RawPage],
) -> Result<Commits, Failure> {
    let open = || Store::open(target.clone());
    let first_ms = pages.first().map_or(0, |page| page.at_ms);
    let mut stores = Vec::new();
    let mut intakes = Vec::new();
    for process in 0..writers.processes {
        let store = open()?;
        for source in 0..writers.sources {
            let name = format!("{process}-{source}");
            let host = if writers.of_one_instance {
                "one"
            } else {
                &name
            };
            let source = add_source_of(&store, &name, &format!("https://{host}.example"))?;
            intakes.push(Intake::start(&store, source, first_ms)?);
        }
        stores.push(store);
    }
    let trips = || {
        stores
            .iter()
            .map(|store| store.stats().round_trips)
            .sum::<u64>()
    };
    let trips_before = trips();
    let start = Instant::now();
    let committed: Result<Vec<()>, Failure> = thread::scope(|scope| {
        let writing: Vec<_> = intakes
            .iter_mut()
            .map(|intake| {
                scope.spawn(move || pages.iter().try_for_each(|raw| intake.commit(page(raw)?)))
            })
            .collect();
        let ended = writing.into_iter().map(|writer| {
            writer
                .join()
                .unwrap_or_else(|_| Err(Failure::new("a writer panicked")))
        });
        ended.collect()
    });
    committed?;
    let seconds = start.elapsed().as_secs_f64();
    let round_trips = trips() - trips_before;
    for store in stores {
        store.close_blocking();
    }
    let commits = (writers.processes * writers.sources * pages.len()) as f64;
    Ok(Commits {
        per_s: commits / seconds,
        round_trips: round_trips as f64 / commits,
    })
}
