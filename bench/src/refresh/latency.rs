//! `latency`: how long a claim of 100 takes in small and in large schedules.

use std::time::{Duration, Instant};

use driftline_core::refresh::{AgeBand, AgeTable, Policy};

use super::{
    database::{Postgres, SqliteFile},
    fill::Width,
    made::NOW_MS,
    ours::{BATCH, Worker},
    sqlite_peer::Peer,
};
use crate::{
    Effort,
    failure::Failure,
    rounds::{Pairs, Spread, Times},
    table::{Table, met},
};

/// Measures both databases at every size, SQLite next to a bare driver.
pub(super) fn run(sizes: &[u64], effort: Effort) -> Result<(), Failure> {
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
    let (mut of_sqlite, mut of_postgres) = (Vec::new(), Vec::new());
    for posts in sizes {
        let file = SqliteFile::fill(*posts, Width::Narrow)?;
        let store = file.store()?;
        let mut ours = Worker::new(&store, file.instance, policy()?);
        let mut bare = Bare {
            peer: Peer::open(&file.path())?,
            now_ms: NOW_MS,
        };
        // The first claims read from the disk and prepare statements.
        ours.round(claims.min(WARM_UP))?;
        bare.round(claims.min(WARM_UP))?;
        let pairs = Pairs::measure(rounds, || ours.round(claims), || bare.round(claims))?;
        let [p50, bare_p50, _] = pairs.cells(|times| times.p50, 2);
        let [p99, bare_p99, ratio] = pairs.cells(|times| times.p99, 2);
        of_sqlite.push(pairs.ours(|times| times.p99, 2).median);
        let scheduled = posts.to_string();
        let name = "SQLite".to_owned();
        table.row([name, scheduled, p50, p99, bare_p50, bare_p99, ratio]);
        store.close_blocking();
    }
    for posts in sizes {
        let cluster = Postgres::start()?;
        let filled = cluster.fill("filled", *posts, Width::Narrow)?;
        let store = cluster.store(filled.name())?;
        let mut ours = Worker::new(&store, filled.instance, policy()?);
        ours.round(claims.min(WARM_UP))?;
        let times = (0..rounds).map(|_| ours.round(claims));
        let times: Vec<Times> = times.collect::<Result<_, _>>()?;
        let of = |figure: fn(&Times) -> f64| Spread::of(times.iter().map(figure), 2);
        of_postgres.push(of(|times| times.p99).median);
        let (p50, p99) = (of(|times| times.p50), of(|times| times.p99));
        let figures = [
            "PostgreSQL".to_owned(),
            posts.to_string(),
            p50.to_string(),
            p99.to_string(),
            "-".to_owned(),
            "-".to_owned(),
            "-".to_owned(),
        ];
        table.row(figures);
        store.close_blocking();
    }
    table.print();
    for (database, p99s) in [("SQLite", of_sqlite), ("PostgreSQL", of_postgres)] {
        if let [first, .., last] = p99s.as_slice() {
            let growth = last / first;
            println!(
                "{database}: p99 grows by a factor of {growth:.2} from the smallest to the largest \
                 (target <= {GROWTH}, met: {})",
                met(growth <= GROWTH)
            );
        }
    }
    println!(
        "post rows are narrow (no JSON); more posts are due than are claimed, and a save puts each \
         off; the whole file fits into the system's memory"
    );
    Ok(())
}

/// The program that claims.
trait Claimer {
    /// Claims a batch and puts it off; the time that the claim took, `None` if nothing was due.
    fn time_claim(&mut self) -> Result<Option<Duration>, Failure>;
    /// Lets a day pass.
    fn sleep_a_day(&mut self);

    /// One round of claims.
    fn round(&mut self, claims: usize) -> Result<Times, Failure> {
        let mut times = Vec::with_capacity(claims);
        while times.len() < claims {
            match self.time_claim()? {
                Some(spent) => times.push(spent),
                None => self.sleep_a_day(),
            }
        }
        Ok(Times::of(times))
    }
}

impl Claimer for Worker {
    fn time_claim(&mut self) -> Result<Option<Duration>, Failure> {
        let start = Instant::now();
        let claim = self.claim()?;
        let spent = start.elapsed();
        let Some(claim) = claim else {
            return Ok(None);
        };
        let answers = self.silence(&claim);
        let is_full = answers.len() == BATCH;
        self.save(claim, answers)?;
        Ok(is_full.then_some(spent))
    }

    fn sleep_a_day(&mut self) {
        Self::sleep_a_day(self);
    }
}

struct Bare {
    peer: Peer,
    now_ms: i64,
}

impl Claimer for Bare {
    fn time_claim(&mut self) -> Result<Option<Duration>, Failure> {
        let start = Instant::now();
        let due = self.peer.claim(self.now_ms)?;
        let spent = start.elapsed();
        self.peer.put_off(&due, self.now_ms)?;
        Ok((due.len() == BATCH).then_some(spent))
    }

    fn sleep_a_day(&mut self) {
        self.now_ms += DAY_MS;
    }
}

/// A policy by which no post retires while days pass.
fn policy() -> Result<Policy, Failure> {
    let band = AgeBand {
        below_ms: 3_650 * DAY_MS,
        every_ms: 60_000,
    };
    Ok(Policy::of_ages(AgeTable::new(vec![band], 0)?))
}

const CLAIMS: usize = 2_000;
const WARM_UP: usize = 50;
const GROWTH: f64 = 2.0;
const DAY_MS: i64 = 24 * 3_600_000;
