//! A large library next to a small one: pulls without news, a crowd that follows it, and its comparison with a replica.

use std::time::{Duration, Instant};

use super::{
    crowd::{self, Crowd, Followed},
    device::Device,
    library::{self, SOURCES, short_text},
    protocol::{Client, NoNews},
    server::Server,
};
use crate::{
    Effort, database,
    failure::Failure,
    rounds::{Rounds, Spread},
    table::{Table, met},
};

/// Measures them.
pub(super) fn run(effort: Effort) -> Result<(), Failure> {
    let (sizes, crowd) = match effort.quick {
        true => (
            [1_000, 10_000],
            Crowd {
                clients: 20,
                changes: 30,
            },
        ),
        false => (
            [10_000, 1_000_000],
            Crowd {
                clients: 200,
                changes: 300,
            },
        ),
    };
    let rounds = effort.rounds(3);
    let database = database::Server::sqlite()?;
    let fill = |objects: usize| -> Result<Server, Failure> {
        let place = database.create(&format!("sync_{objects}"))?;
        let account = library::fill(&place, objects, short_text)?;
        Server::start(&place, account)
    };
    let servers = [fill(sizes[0])?, fill(sizes[1])?];
    no_news(&servers, sizes, rounds)?.print();
    let [small, large] = servers;
    small.close();
    follow(&large, sizes[1], crowd, rounds)?.print();
    verify(&large, sizes[1], rounds)?.print();
    large.close();
    Ok(())
}

/// Pulls of one library and of 40, from both servers.
fn no_news(servers: &[Server; 2], sizes: [usize; 2], rounds: usize) -> Result<Table, Failure> {
    let all = 1 + usize::try_from(SOURCES)?;
    let ways = [(0, 1), (0, all), (1, 1), (1, all)];
    let mut measured: Rounds<NoNews, 4> = Rounds::new();
    for _ in 0..rounds {
        measured.round(ways, |(server, libraries)| {
            let server = &servers[server];
            Client::connect(server)?.no_news(server, libraries, PULLS)
        })?;
    }
    let mut table = Table::new(
        format!("sync: {PULLS} pulls without news a row and round, over one connection"),
        "objects | libraries | p50, ms | p99, ms | bytes of a body | at most | p50, times that of the small library | target | met",
    );
    for (way, (server, libraries)) in ways.into_iter().enumerate() {
        let p50 = measured.of(way, |of| of.times.p50, 2);
        let p99 = measured.of(way, |of| of.times.p99, 2);
        let bytes = measured.of(way, |of| of.bytes as f64, 0);
        let max_bytes = measured.of(way, |of| of.max_bytes as f64, 0);
        let growth = measured.ratio(way, way % 2, |of| of.times.p50);
        let is_met = met(bytes.median < MAX_BYTES && growth.median <= MAX_GROWTH);
        let objects = sizes[server];
        let target = format!("< {MAX_BYTES} bytes, <= {MAX_GROWTH} times");
        table.row(format!(
            "{objects} | {libraries} | {p50} | {p99} | {bytes} | {max_bytes} | {growth} | {target} | {is_met}"
        ));
    }
    Ok(table)
}

/// Clients that follow changes.
fn follow(server: &Server, objects: usize, crowd: Crowd, rounds: usize) -> Result<Table, Failure> {
    let followed = (0..rounds).map(|round| crowd::measure(server, crowd, round));
    let followed: Vec<Followed> = followed.collect::<Result<_, _>>()?;
    let Crowd { clients, changes } = crowd;
    let mut table = Table::new(
        format!(
            "sync: {objects} objects, {changes} changes, ten a second; {clients} clients that pull on wake-up"
        ),
        "figure | Driftline | target | met",
    );
    let mut row = |name: &str, figure: fn(&Followed) -> f64, max: Option<f64>| {
        let spread = Spread::of(followed.iter().map(figure), 1);
        table.row(measured(name, spread, max));
    };
    row("commit to client, p50, ms", |of| of.delays.p50, None);
    row("p99, ms", |of| of.delays.p99, None);
    row("at most, ms", |of| of.max_delay_ms, Some(1_000.0));
    row("a pull, p50, ms", |of| of.pulls.p50, None);
    row("p99, ms", |of| of.pulls.p99, Some(100.0));
    row("pulls/s", |of| of.pulls_per_s, None);
    let server = "CPU of the server and of the commits, % of one core";
    row(server, |of| of.server_cpu_percent, None);
    let clients = "CPU of the clients, % of one core";
    row(clients, |of| of.clients_cpu_percent, None);
    Ok(table)
}

/// A replica that has everything, and the digest alone.
fn verify(server: &Server, objects: usize, rounds: usize) -> Result<Table, Failure> {
    let device = Device::make(server)?;
    let full = device.sync()?;
    // The server computes the digests of all objects at the first requests, of which it refuses all but the last.
    let begun = Instant::now();
    while let Err(failure) = Client::connect(server)?.digest(objects) {
        if begun.elapsed() > MAX_FIRST_DIGEST {
            return Err(failure);
        }
    }
    let first_digest = begun.elapsed().as_secs_f64();
    let mut seconds: Rounds<f64, 2> = Rounds::new();
    let mut requests = Vec::new();
    for _ in 0..rounds {
        let digest = Client::connect(server)?.digest(objects)?.as_secs_f64();
        let verified = device.verify()?;
        seconds.0.push([digest, verified.seconds]);
        requests.push(verified.requests);
    }
    device.close();
    let mut table = Table::new(
        format!("sync: a replica with {objects} equal objects"),
        "figure | Driftline | target | met",
    );
    let of = |way| seconds.of(way, |seconds| *seconds, 3);
    table.row(measured("the server's digest, s", of(0), None));
    table.row(measured("verify, s", of(1), Some(1.0)));
    let requests = Spread::of(requests, 0);
    table.row(measured("its requests", requests, None));
    let first = Spread::of([first_digest], 1);
    table.row(measured("the first digest, s", first, None));
    let first = Spread::of([full.seconds], 1);
    table.row(measured("the first sync before, s", first, None));
    Ok(table)
}

/// The cells of a figure that may have a bound.
fn measured(name: &str, figure: Spread, below: Option<f64>) -> String {
    match below {
        Some(max) => {
            let is_met = met(figure.median < max);
            format!("{name} | {figure} | < {max} | {is_met}")
        }
        None => format!("{name} | {figure} | |"),
    }
}

const PULLS: usize = 500;
const MAX_BYTES: f64 = 300.0;
/// As for pages of timelines.
const MAX_GROWTH: f64 = 1.5;
const MAX_FIRST_DIGEST: Duration = Duration::from_secs(180);
