//! `commits`: pages of 40 posts that several processes commit to one PostgreSQL at once, next to one
//! that does so alone: directly, over a link that delays, and behind a connection pooler.

use std::time::{Duration, Instant};

use driftline_db::testing::{Cluster, Link, Pooler};
use driftline_store::{Store, Target};

use crate::{
    Effort,
    database::postgres_target,
    failure::Failure,
    ingest::{Intake, page},
    pages::{self, RawPage},
    rounds::{Rounds, Spread},
    table::Table,
    threads,
};

/// How many writers there are, and what they share.
#[derive(Clone, Copy)]
pub(crate) struct Writers {
    processes: usize,
    sources: usize,
    /// Whether all sources are of one instance, and so have each post in common.
    of_one_instance: bool,
}

/// One alone, and those that are compared with it.
const WRITERS: [Writers; 5] = [
    Writers::new(1, 1, false),
    Writers::new(1, 4, false),
    Writers::new(4, 4, false),
    Writers::new(8, 2, false),
    Writers::new(4, 4, true),
];

impl Writers {
    pub(crate) const fn new(processes: usize, sources: usize, of_one_instance: bool) -> Self {
        Self {
            processes,
            sources,
            of_one_instance,
        }
    }

    fn name(self) -> String {
        let shared = match self.of_one_instance {
            true => ", one instance",
            false => "",
        };
        format!("{} x {}{shared}", self.processes, self.sources)
    }
}

/// Measures them, each way in each round.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let count = if effort.quick { 4 } else { 60 };
    let pages = pages::forward(u64::from(pages::LIMIT) * count)?;
    let cluster = Cluster::start()?;
    let link = Link::delayed(cluster.url(), Duration::from_micros(2_500))?;
    let pooler = Pooler::start(cluster.url(), POOLED)?;
    let keeping = Pooler::start_keeping(cluster.url(), POOLED, 1_000)?;
    let mut ways = vec![
        ("directly", cluster.url()),
        ("2.5 ms each way", link.url()),
        ("PgBouncer", pooler.url()),
    ];
    let keeping = keeping.as_ref();
    ways.extend(keeping.map(|pooler| ("PgBouncer, statements kept", pooler.url())));
    // The rounds of each way, and in each the figures of one writer alone and of the others.
    let mut figures: Vec<Rounds<Commits, 5>> = ways.iter().map(|_| Rounds::new()).collect();
    let mut schema = 0;
    for _ in 0..effort.rounds(9) {
        for ((_, url), figures) in ways.iter().zip(&mut figures) {
            figures.round(WRITERS, |writers| {
                schema += 1;
                let target = postgres_target(url, Some(format!("commits_{schema}")));
                commits(&target, writers, &pages)
            })?;
        }
    }
    let mut table = Table::new(
        format!(
            "commits: {} pages of {} posts a source",
            pages.len(),
            pages::LIMIT
        ),
        "processes x sources | way | commits/s | to directly | alone | to alone | round trips a commit",
    );
    for ((name, _), way) in ways.iter().zip(&figures) {
        let per_s = |commits: &Commits| commits.per_s;
        let alone = way.of(0, per_s, 0);
        for (number, writers) in WRITERS.iter().enumerate().skip(1) {
            let both = way.0.iter().zip(&figures[0].0);
            let to_directly =
                both.map(|(way, directly)| way[number].per_s / directly[number].per_s);
            let to_directly = Spread::of(to_directly, 2);
            let (figure, to_alone) = (way.of(number, per_s, 0), way.ratio(number, 0, per_s));
            let trips = way.of(number, |commits| commits.round_trips, 1);
            let writers = writers.name();
            table.row(format!(
                "{writers} | {name} | {figure} | {to_directly} | {alone} | {to_alone} | {trips}"
            ));
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
    let (mut stores, mut intakes) = (Vec::new(), Vec::new());
    for process in 0..writers.processes {
        let store = Store::open(target.clone())?;
        for source in 0..writers.sources {
            let name = format!("{process}-{source}");
            let host = if writers.of_one_instance {
                "one"
            } else {
                &name
            };
            intakes.push(Intake::of_host(&store, &name, host, pages)?);
        }
        stores.push(store);
    }
    let trips = || -> u64 { stores.iter().map(|store| store.stats().round_trips).sum() };
    let trips_before = trips();
    let start = Instant::now();
    threads::each(&mut intakes, |intake| {
        pages.iter().try_for_each(|raw| intake.commit(page(raw)?))
    })?;
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

/// The server connections of the pooler.
const POOLED: usize = 20;
