//! `commits`: pages of 40 posts that several processes commit to one PostgreSQL at once, next to one
//! that does so alone: directly, over a link that delays, and behind a connection pooler.

use std::{
    thread,
    time::{Duration, Instant},
};

use driftline_db::testing::{Cluster, Link, Pooler};
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

/// How they reach the server.
struct Way {
    name: &'static str,
    url: String,
    alone: Vec<f64>,
    measured: [Vec<Commits>; MEASURED.len()],
}

impl Way {
    fn new(name: &'static str, url: &str) -> Self {
        Self {
            name,
            url: url.to_owned(),
            alone: Vec::new(),
            measured: Default::default(),
        }
    }
}

/// Measures them, each way in each round.
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
            "way",
            "commits/s",
            "to directly",
            "alone",
            "to alone",
            "round trips a commit",
        ],
    );
    let link = Link::delayed(cluster.url(), Duration::from_micros(2_500))?;
    let pooler = Pooler::start(cluster.url(), POOLED)?;
    let keeping = Pooler::start_keeping(cluster.url(), POOLED, 1_000)?;
    let mut ways = vec![
        Way::new("directly", cluster.url()),
        Way::new("2.5 ms each way", link.url()),
        Way::new("PgBouncer", pooler.url()),
    ];
    ways.extend(
        keeping
            .iter()
            .map(|pooler| Way::new("PgBouncer, statements kept", pooler.url())),
    );
    let mut schema = 0;
    for _ in 0..effort.rounds(9) {
        for way in &mut ways {
            let mut measure = |writers| {
                schema += 1;
                let target = Target::Postgres {
                    url: SecretUrl::new(&way.url),
                    schema: Some(format!("commits_{schema}")),
                };
                commits(&target, writers, &pages)
            };
            way.alone.push(measure(ALONE)?.per_s);
            for (writers, measured) in MEASURED.iter().zip(&mut way.measured) {
                measured.push(measure(*writers)?);
            }
        }
    }
    let directly = &ways[0];
    for way in &ways {
        for (number, writers) in MEASURED.iter().enumerate() {
            let per_s = || way.measured[number].iter().map(|commits| commits.per_s);
            let of_directly = directly.measured[number]
                .iter()
                .map(|commits| commits.per_s);
            let to = |others: &mut dyn Iterator<Item = f64>| {
                Spread::of(per_s().zip(others).map(|(figure, other)| figure / other), 2)
            };
            let round_trips = way.measured[number].iter();
            table.row([
                writers.name(),
                way.name.to_owned(),
                Spread::of(per_s(), 0).to_string(),
                to(&mut of_directly.into_iter()).to_string(),
                Spread::of(way.alone.iter().copied(), 0).to_string(),
                to(&mut way.alone.iter().copied()).to_string(),
                Spread::of(round_trips.map(|commits| commits.round_trips), 1).to_string(),
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

/// The server connections of the pooler.
const POOLED: usize = 20;
