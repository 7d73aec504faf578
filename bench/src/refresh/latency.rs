//! `latency`: how long a claim of 100 takes in small and in large schedules.

use std::time::{Duration, Instant};

use driftline_core::refresh::{AgeBand, AgeTable, Policy};
use driftline_store::{InstanceId, Store};
use hdrhistogram::Histogram;
use tokio::runtime::Runtime;

use super::{
    Database, Options,
    database::{Postgres, SqliteFile},
    fill::Width,
    made::NOW_MS,
    ours::Worker,
    postgres_peer, sqlite_peer,
};
use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
    table::{Table, met},
};

/// Measures both databases at every size.
pub(super) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let claims = if effort.quick { 50 } else { CLAIMS };
    let mut table = Table::new(
        format!(
            "refresh latency: one claim of 100 at a time, ms; {claims} claims a round, a save \
             after each, not in the figure"
        ),
        [
            "database",
            "scheduled",
            "Driftline p50",
            "Driftline p99",
            "bare p50",
            "bare p99",
            "p99 ratio",
        ],
    );
    let rounds = effort.rounds(3);
    let mut flat = Vec::new();
    for database in [Database::Sqlite, Database::Postgres] {
        if !options.has(database) {
            continue;
        }
        let mut p99s = Vec::new();
        for posts in options.sizes(effort) {
            let rounds = measure(database, posts, claims, rounds)?;
            let of = |figure: &dyn Fn(&[Times; 2]) -> f64, digits| {
                Spread::of(rounds.iter().map(figure), digits)
            };
            let p99 = of(&|[ours, _]| ours.p99, 2);
            p99s.push(p99.median);
            table.row([
                format!("{database:?}"),
                posts.to_string(),
                of(&|[ours, _]| ours.p50, 2).to_string(),
                p99.to_string(),
                of(&|[_, bare]| bare.p50, 2).to_string(),
                of(&|[_, bare]| bare.p99, 2).to_string(),
                of(&|[ours, bare]| ours.p99 / bare.p99, 2).to_string(),
            ]);
        }
        if let [first, .., last] = p99s.as_slice() {
            flat.push((database, last / first));
        }
    }
    table.print();
    for (database, growth) in flat {
        println!(
            "{database:?}: p99 grows by a factor of {growth:.2} from the smallest to the largest \
             (target <= {GROWTH}, met: {})",
            met(growth <= GROWTH)
        );
    }
    println!(
        "post rows are narrow (no JSON); more posts are due than are claimed, and a save puts each \
         off; the whole file fits into the system's memory"
    );
    Ok(())
}

/// Latencies of a round, ms.
struct Times {
    p50: f64,
    p99: f64,
}

impl Times {
    fn of(histogram: &Histogram<u64>) -> Self {
        let ms = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e6;
        Self {
            p50: ms(0.5),
            p99: ms(0.99),
        }
    }
}

/// Rounds of ours and of the bare driver, in turns on the same database.
fn measure(
    database: Database,
    posts: u64,
    claims: usize,
    rounds: usize,
) -> Result<Vec<[Times; 2]>, Failure> {
    match database {
        Database::Sqlite => {
            let file = SqliteFile::fill(posts, Width::Narrow)?;
            let mut ours = Ours::new(file.store()?, file.instance)?;
            let mut bare = BareSqlite {
                peer: sqlite_peer::Peer::open(&file.path())?,
                now_ms: NOW_MS,
            };
            in_turns(&mut ours, &mut bare, claims, rounds)
        }
        Database::Postgres => {
            let cluster = Postgres::start()?;
            let filled = cluster.fill("filled", posts, Width::Narrow)?;
            let mut ours = Ours::new(cluster.store(filled.name())?, filled.instance)?;
            let runtime = Runtime::new()?;
            let url = cluster.url(filled.name());
            let mut bare = BarePostgres {
                peer: runtime.block_on(postgres_peer::Peer::connect(&url, 0))?,
                runtime,
                now_ms: NOW_MS,
            };
            in_turns(&mut ours, &mut bare, claims, rounds)
        }
    }
}

fn in_turns(
    ours: &mut Ours,
    bare: &mut dyn Claimer,
    claims: usize,
    rounds: usize,
) -> Result<Vec<[Times; 2]>, Failure> {
    let mut found = Vec::new();
    // The first claims read from the disk and prepare statements.
    round(ours, claims.min(WARM_UP))?;
    round(bare, claims.min(WARM_UP))?;
    for _ in 0..rounds {
        found.push([round(ours, claims)?, round(bare, claims)?]);
    }
    ours.store.close_blocking();
    Ok(found)
}

fn round(claimer: &mut dyn Claimer, claims: usize) -> Result<Times, Failure> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, MAX_NS, 3)?;
    let mut number = 0;
    while number < claims {
        match claimer.claim()? {
            Some(spent) => {
                histogram.saturating_record(u64::try_from(spent.as_nanos())?);
                number += 1;
            }
            None => claimer.sleep_a_day(),
        }
    }
    Ok(Times::of(&histogram))
}

/// Whoever claims.
trait Claimer {
    /// Claims a batch and puts it off; the time that the claim took, `None` if nothing was due.
    fn claim(&mut self) -> Result<Option<Duration>, Failure>;
    /// Lets a day pass.
    fn sleep_a_day(&mut self);
}

struct Ours {
    store: Store,
    worker: Worker,
}

impl Ours {
    fn new(store: Store, instance: InstanceId) -> Result<Self, Failure> {
        let worker = Worker::new(&store, instance, long_lease_policy()?);
        Ok(Self { store, worker })
    }
}

impl Claimer for Ours {
    fn claim(&mut self) -> Result<Option<Duration>, Failure> {
        let start = Instant::now();
        let claim = self.worker.claim()?;
        let spent = start.elapsed();
        let Some(claim) = claim else {
            return Ok(None);
        };
        let answers = self.worker.silence(&claim);
        if answers.len() != super::ours::BATCH {
            self.worker.save(claim, answers)?;
            return Ok(None);
        }
        self.worker.save(claim, answers)?;
        Ok(Some(spent))
    }

    fn sleep_a_day(&mut self) {
        self.worker.sleep_a_day();
    }
}

struct BareSqlite {
    peer: sqlite_peer::Peer,
    now_ms: i64,
}

impl Claimer for BareSqlite {
    fn claim(&mut self) -> Result<Option<Duration>, Failure> {
        let start = Instant::now();
        let due = self.peer.claim(self.now_ms)?;
        let spent = start.elapsed();
        self.peer.put_off(&due, self.now_ms)?;
        Ok((due.len() == super::ours::BATCH).then_some(spent))
    }

    fn sleep_a_day(&mut self) {
        self.now_ms += DAY_MS;
    }
}

struct BarePostgres {
    peer: postgres_peer::Peer,
    runtime: Runtime,
    now_ms: i64,
}

impl Claimer for BarePostgres {
    fn claim(&mut self) -> Result<Option<Duration>, Failure> {
        let Self {
            peer,
            runtime,
            now_ms,
        } = self;
        runtime.block_on(async {
            let start = Instant::now();
            let lease = peer.claim(*now_ms).await?;
            let spent = start.elapsed();
            let Some(lease) = lease else {
                return Ok(None);
            };
            peer.put_off(&lease, *now_ms).await?;
            Ok((lease.due.len() == super::ours::BATCH).then_some(spent))
        })
    }

    fn sleep_a_day(&mut self) {
        self.now_ms += DAY_MS;
    }
}

/// A policy by which no post retires while days pass.
pub(super) fn long_lease_policy() -> Result<Policy, Failure> {
    let band = AgeBand {
        below_ms: 3_650 * DAY_MS,
        every_ms: 60_000,
    };
    Ok(Policy::of_ages(AgeTable::new(vec![band], 0)?))
}

/// What takes longer counts as this.
const MAX_NS: u64 = 60_000_000_000;
const CLAIMS: usize = 2_000;
const WARM_UP: usize = 50;
const GROWTH: f64 = 2.0;
const DAY_MS: i64 = 24 * 3_600_000;
