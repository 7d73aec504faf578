//! `latency`: how long a claim of 100 takes in small and in large schedules.

use std::time::{Duration, Instant};

use driftline_core::refresh::{AgeBand, AgeTable, Policy};
use driftline_store::refresh::LookupAnswer;

use super::{
    fill::{Filled, Width},
    made::NOW_MS,
    ours::{BATCH, Worker},
    sqlite_peer::Peer,
};
use crate::{
    Effort,
    database::Server,
    failure::Failure,
    rounds::{Pairs, Times},
    table::{TIMES, Table, met},
};

/// Measures SQLite at every size.
pub(super) fn run(sizes: &[u64], effort: Effort) -> Result<(), Failure> {
    let claims = if effort.quick { 50 } else { CLAIMS };
    let mut table = Table::new(
        format!(
            "refresh latency: one claim of 100 at a time; {claims} claims a round, a save after each, not in the figure"
        ),
        &format!("scheduled | {TIMES}"),
    );
    let mut p99s = Vec::new();
    for posts in sizes {
        let filled = Filled::new(Server::sqlite()?, *posts, Width::Narrow)?;
        let store = filled.place.open()?;
        let mut worker = Worker::new(&store, filled.instance, policy()?);
        let mut ours = |now_ms| {
            worker.now_ms = now_ms;
            let start = Instant::now();
            let claim = worker.claim()?;
            let spent = start.elapsed();
            let Some(claim) = claim else {
                return Ok(None);
            };
            let answers = worker.answers(&claim, |_| Ok(LookupAnswer::Nothing))?;
            let is_full = answers.len() == BATCH;
            worker.save(claim, answers)?;
            Ok(is_full.then_some(spent))
        };
        let mut peer = Peer::open(&filled.place)?;
        let mut bare = |now_ms| {
            let start = Instant::now();
            let due = peer.claim(now_ms)?;
            let spent = start.elapsed();
            peer.put_off(&due, now_ms)?;
            Ok((due.len() == BATCH).then_some(spent))
        };
        let [mut ours_ms, mut bare_ms] = [NOW_MS; 2];
        // The first claims read from the disk and prepare statements.
        round(claims.min(WARM_UP), &mut ours_ms, &mut ours)?;
        round(claims.min(WARM_UP), &mut bare_ms, &mut bare)?;
        let pairs = Pairs::measure(
            effort.rounds(3),
            || round(claims, &mut ours_ms, &mut ours),
            || round(claims, &mut bare_ms, &mut bare),
        )?;
        p99s.push(pairs.of(0, |times| times.p99, 2).median);
        table.times(posts, &pairs, f64::INFINITY);
        store.close_blocking();
    }
    table.print();
    if let [first, .., last] = p99s.as_slice() {
        let growth = last / first;
        println!(
            "p99 grows by a factor of {growth:.2} from the smallest to the largest (target <= {GROWTH}, met: {})",
            met(growth <= GROWTH)
        );
    }
    println!(
        "post rows are narrow (no JSON); more posts are due than are claimed, and a save puts each \
         off; the whole file fits into the system's memory"
    );
    Ok(())
}

/// One round of claims at a time, each of which `claim` puts off; a day passes when it returns none.
fn round(
    claims: usize,
    now_ms: &mut i64,
    claim: &mut impl FnMut(i64) -> Result<Option<Duration>, Failure>,
) -> Result<Times, Failure> {
    let mut times = Vec::with_capacity(claims);
    while times.len() < claims {
        match claim(*now_ms)? {
            Some(spent) => times.push(spent),
            None => *now_ms += DAY_MS,
        }
    }
    Ok(Times::of(times))
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
