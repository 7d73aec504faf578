//! The ID service next to Redis's `INCR`, each in a process of its own, over loopback.

mod client;
mod connection;
mod exchange;
mod server;

use std::{thread::sleep, time::Duration};

use self::{
    client::{Outcome, Pace, Time, load},
    exchange::{Http, Redis, Thrift},
    server::{IdServer, RedisServer},
};
use crate::{
    Effort,
    failure::Failure,
    process::{Driftline, Side},
    rounds::Pairs,
    sources::Polling,
    table::{Table, Target},
};

/// Measures every load on both.
pub(super) fn run(driftline: &Driftline, effort: Effort) -> Result<(), Failure> {
    let (ms, sources) = match effort.quick {
        true => ([100, 300], 20),
        false => ([500, 3_000], 200),
    };
    let [warm_up, measured] = ms.map(Duration::from_millis);
    let time = Time { warm_up, measured };
    let (ours, redis) = (IdServer::start(driftline)?, RedisServer::start()?);
    let mut cases = Load::ALL.map(|load| (load, Pairs::new()));
    let mut measure = |is_paced: bool| -> Result<(), Failure> {
        for _ in 0..effort.rounds(5) {
            let cases = cases.iter_mut();
            for (load, pairs) in cases.filter(|(load, _)| (*load == Load::Paced) == is_paced) {
                pairs.round([Side::Driftline, Side::Bare], |side| match side {
                    Side::Driftline => load.ours(&ours, time),
                    Side::Bare => load.redis(&redis, time),
                })?;
            }
        }
        Ok(())
    };
    measure(false)?;
    let polling = Polling::start(Side::Driftline, sources)?;
    sleep(time.measured);
    measure(true)?;
    polling.stop()?;
    println!(
        "\n{}, Redis {}",
        IdServer::version(driftline)?,
        RedisServer::version()?
    );
    let seconds = time.measured.as_secs_f64();
    figures(&cases, sources, seconds).print();
    println!("{} IDs sampled, all distinct", distinct(&mut cases)?);
    Ok(())
}

/// What is asked of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// One ID a request.
    Single,
    /// One ID a request, many requests at once.
    Pipelined,
    /// Many IDs a request.
    Batches,
    /// One ID a request, at a steady rate, while another process polls.
    Paced,
}

impl Load {
    const ALL: [Self; 4] = [Self::Single, Self::Pipelined, Self::Batches, Self::Paced];

    fn name(self) -> String {
        match self {
            Self::Single => "one ID a request".to_owned(),
            Self::Pipelined => format!("pipelined by {PIPELINED}"),
            Self::Batches => "batches".to_owned(),
            Self::Paced => format!("{PER_S} a second"),
        }
    }

    fn pace(self) -> Pace {
        match self {
            Self::Single | Self::Batches => Pace::Closed(1),
            Self::Pipelined => Pace::Closed(PIPELINED),
            Self::Paced => Pace::PerS(PER_S),
        }
    }

    fn ours(self, server: &IdServer, time: Time) -> Result<Outcome, Failure> {
        let (id, pace) = (server.process.id(), self.pace());
        if self == Self::Batches {
            let batch = Http { count: BATCH };
            return load(server.http, id, &batch, BATCH_CONNECTIONS, pace, time);
        }
        load(server.thrift, id, &Thrift, CONNECTIONS, pace, time)
    }

    fn redis(self, server: &RedisServer, time: Time) -> Result<Outcome, Failure> {
        let by = if self == Self::Batches { BLOCK } else { 1 };
        let (address, id) = (server.address, server.process.id());
        load(address, id, &Redis { by }, CONNECTIONS, self.pace(), time)
    }
}

fn figures(cases: &[(Load, Pairs<Outcome>)], sources: u16, seconds: f64) -> Table {
    let mut table = Table::new(
        format!(
            "id: Thrift get_id next to INCR, {CONNECTIONS} connections of one thread, {seconds} s a \
             round; batches: {BATCH} IDs over HTTP on {BATCH_CONNECTIONS} connections next to \
             INCRBY {BLOCK} on {CONNECTIONS}; {PER_S} a second: from the intended time, seen \
             every 0.1 ms, while another process polls {sources} sources"
        ),
        "load | figure | Driftline | Redis | ratio | target | met",
    );
    for (load, pairs) in cases {
        let mut row = |name: &str, figure: fn(&Outcome) -> f64, digits, target| {
            let cells = format!("{} | {name}", load.name());
            table.compare(cells, pairs, figure, digits, target);
        };
        let (requests_target, p99_target) = match load {
            Load::Single => (Target::OfPeer(1.0), P99_TARGET),
            Load::Pipelined => (Target::OfPeer(1.0), Target::Any),
            Load::Batches => (Target::Any, Target::Any),
            Load::Paced => (Target::Any, P99_TARGET),
        };
        if *load == Load::Batches {
            row(
                "IDs/s",
                |o| o.ids_per_s,
                0,
                Target::AtLeast(CAP_TARGET_PER_S),
            );
        } else {
            row("requests/s", |o| o.requests_per_s, 0, requests_target);
        }
        row("p50, ms", |o| o.p50_ms, 3, Target::Any);
        row("p99, ms", |o| o.p99_ms, 3, p99_target);
        // One core is 1; a client near to 1 is what limits a figure.
        row("processor of the client", |o| o.client_cpu, 2, Target::Any);
        row("processor of the server", |o| o.server_cpu, 2, Target::Any);
    }
    table
}

/// How many IDs of the service were kept, none of which repeats.
fn distinct(cases: &mut [(Load, Pairs<Outcome>)]) -> Result<usize, Failure> {
    let rounds = cases.iter_mut().flat_map(|(_, pairs)| &mut pairs.0);
    let mut ids: Vec<u64> = rounds.flat_map(|[ours, _]| ours.ids.drain(..)).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Failure::new(format!("the service repeats {}", pair[0]))),
        None => Ok(ids.len()),
    }
}

const CONNECTIONS: usize = 50;
const PIPELINED: usize = 16;
const PER_S: u32 = 10_000;
const BATCH: u64 = 100_000;
const BATCH_CONNECTIONS: usize = 4;
const BLOCK: u64 = 1_000;
const P99_TARGET: Target = Target::Below(2.0);
/// 98 % of the cap, which is 4096 IDs a ms.
const CAP_TARGET_PER_S: f64 = 4_096_000.0 * 0.98;
