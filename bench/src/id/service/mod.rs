//! The ID service next to Redis's `INCR`, each in a process of its own, over loopback.

mod client;
mod connection;
mod exchange;
mod server;

use std::{thread::sleep, time::Duration};

use self::{
    client::{Outcome, Time, closed, paced},
    exchange::{Http, Redis, Thrift},
    server::{IdServer, RedisServer},
};
use crate::{
    Effort,
    failure::Failure,
    process::Driftline,
    rounds::Pairs,
    sources::{Kind, Polling},
    table::{Table, met},
};

/// Measures every load on both.
pub(super) fn run(driftline: &Driftline, effort: Effort) -> Result<(), Failure> {
    let (ms, sources) = if effort.quick {
        ([100, 300], 20)
    } else {
        ([500, 3_000], 200)
    };
    let [warm_up, measured] = ms.map(Duration::from_millis);
    let time = Time { warm_up, measured };
    let servers = Servers {
        ours: IdServer::start(driftline)?,
        redis: RedisServer::start()?,
    };
    let rounds = effort.rounds(5);
    let mut cases = Load::ALL.map(Case::new);
    for _ in 0..rounds {
        for case in cases.iter_mut().filter(|case| case.load != Load::Paced) {
            case.measure(&servers, time)?;
        }
    }
    let polling = Polling::start(Kind::Driftline, sources)?;
    sleep(time.measured);
    for _ in 0..rounds {
        for case in cases.iter_mut().filter(|case| case.load == Load::Paced) {
            case.measure(&servers, time)?;
        }
    }
    polling.stop()?;
    println!(
        "\n{}, Redis {}",
        IdServer::version(driftline)?,
        RedisServer::version()?
    );
    let seconds = time.measured.as_secs_f64();
    figures(&cases, sources, seconds).print();
    shares(&cases).print();
    println!("{} IDs sampled, all distinct", distinct(&mut cases)?);
    Ok(())
}

struct Servers {
    ours: IdServer,
    redis: RedisServer,
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

    fn ours(self, server: &IdServer, time: Time) -> Result<Outcome, Failure> {
        let (thrift, id) = (server.thrift, server.id());
        match self {
            Self::Single => closed(thrift, id, &Thrift, CONNECTIONS, 1, time),
            Self::Pipelined => closed(thrift, id, &Thrift, CONNECTIONS, PIPELINED, time),
            Self::Batches => {
                let batch = Http { count: BATCH };
                closed(server.http, id, &batch, BATCH_CONNECTIONS, 1, time)
            }
            Self::Paced => paced(thrift, id, &Thrift, CONNECTIONS, PER_S, time),
        }
    }

    fn redis(self, server: &RedisServer, time: Time) -> Result<Outcome, Failure> {
        let (address, id) = (server.address, server.id());
        let incr = Redis { by: 1 };
        match self {
            Self::Single => closed(address, id, &incr, CONNECTIONS, 1, time),
            Self::Pipelined => closed(address, id, &incr, CONNECTIONS, PIPELINED, time),
            Self::Batches => {
                let block = Redis { by: BLOCK };
                closed(address, id, &block, CONNECTIONS, 1, time)
            }
            Self::Paced => paced(address, id, &incr, CONNECTIONS, PER_S, time),
        }
    }
}

/// A load, and what came of it on both in each round.
struct Case {
    load: Load,
    pairs: Pairs<Outcome>,
}

impl Case {
    fn new(load: Load) -> Self {
        Self {
            load,
            pairs: Pairs::new(),
        }
    }

    fn measure(&mut self, servers: &Servers, time: Time) -> Result<(), Failure> {
        self.pairs.round(
            || self.load.ours(&servers.ours, time),
            || self.load.redis(&servers.redis, time),
        )
    }
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// At least as much as Redis.
    Redis,
    /// Less than that.
    LessThan(f64),
    /// The layout's cap, but for a little.
    Cap,
}

fn figures(cases: &[Case], sources: u16, seconds: f64) -> Table {
    let mut table = Table::new(
        format!(
            "id: Thrift get_id next to INCR, {CONNECTIONS} connections of one thread, {seconds} s a \
             round; batches: {BATCH} IDs over HTTP on {BATCH_CONNECTIONS} connections next to \
             INCRBY {BLOCK} on {CONNECTIONS}; {PER_S} a second: from the intended time, seen \
             every 0.1 ms, while another process polls {sources} sources"
        ),
        [
            "load",
            "figure",
            "Driftline",
            "Redis",
            "ratio",
            "target",
            "met",
        ],
    );
    for case in cases {
        let mut row = |name: &str, figure: fn(&Outcome) -> f64, digits, target: Option<Target>| {
            let [ours, redis, ratio] = case.pairs.cells(figure, digits);
            let ours_median = case.pairs.ours(figure, digits).median;
            let ratio_median = case.pairs.ratio(figure).median;
            let (shown, is_met) = match target {
                None => (String::new(), None),
                Some(Target::Redis) => (">= Redis".to_owned(), Some(ratio_median >= 1.0)),
                Some(Target::LessThan(most)) => (format!("< {most}"), Some(ours_median < most)),
                Some(Target::Cap) => {
                    let least = CAP_PER_S * CAP_TARGET;
                    (format!(">= {least:.0}"), Some(ours_median >= least))
                }
            };
            table.row([
                case.load.name(),
                name.to_owned(),
                ours,
                redis,
                ratio,
                shown,
                is_met.map_or_else(String::new, met),
            ]);
        };
        let p99 = Some(Target::LessThan(P99_TARGET_MS));
        let (requests_target, p99_target) = match case.load {
            Load::Single => (Some(Target::Redis), p99),
            Load::Pipelined => (Some(Target::Redis), None),
            Load::Batches => (None, None),
            Load::Paced => (None, p99),
        };
        if case.load == Load::Batches {
            row("IDs/s", |o| o.ids_per_s, 0, Some(Target::Cap));
        } else {
            row("requests/s", |o| o.requests_per_s, 0, requests_target);
        }
        row("p50, ms", |o| o.p50_ms, 3, None);
        row("p99, ms", |o| o.p99_ms, 3, p99_target);
    }
    table
}

fn shares(cases: &[Case]) -> Table {
    let mut table = Table::new(
        "id: processor time, of one core; a client near to 1 is what limits a figure",
        ["load", "client", "Driftline", "client of Redis", "Redis"],
    );
    for case in cases {
        let [client, redis_client, _] = case.pairs.cells(|o| o.client_cpu, 2);
        let [server, redis_server, _] = case.pairs.cells(|o| o.server_cpu, 2);
        table.row([case.load.name(), client, server, redis_client, redis_server]);
    }
    table
}

/// How many IDs of the service were kept, none of which repeats.
fn distinct(cases: &mut [Case]) -> Result<usize, Failure> {
    let outcomes = cases.iter_mut().flat_map(|case| case.pairs.all_ours());
    let mut ids: Vec<u64> = outcomes.flat_map(|outcome| outcome.ids.drain(..)).collect();
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
const P99_TARGET_MS: f64 = 2.0;
/// 4096 IDs a ms.
const CAP_PER_S: f64 = 4_096_000.0;
const CAP_TARGET: f64 = 0.98;
