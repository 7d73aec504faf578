//! What a process that serves home timelines needs.

use std::{
    io::{self, Read as _},
    net::SocketAddr,
    sync::Arc,
    thread,
};

use clap::{Args, ValueEnum};
use tokio::runtime::Runtime;

use super::{
    super::client::{self, Load},
    Size, bare,
    database::{Database, Place},
    reader::{self, Reader},
};
use crate::{
    Effort,
    failure::Failure,
    process::{Memory, Process},
    rounds::Pairs,
    table::{Table, met},
};

/// What the measured process takes.
#[derive(Debug, Args)]
pub(crate) struct ChildOptions {
    kind: Kind,
    /// A URL, or the path of a file
    database: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Driftline,
    Bare,
}

/// Measures new processes, which clients ask for pages: half of them each reader's, all logged in.
pub(super) fn measure(
    runtime: &Runtime,
    database: &Database,
    size: Size,
    effort: Effort,
    table: &mut Table,
) -> Result<(), Failure> {
    let of = |kind| of_process(runtime, kind, database, size);
    let rounds = effort.rounds(3);
    let pairs = Pairs::measure(rounds, || of(Kind::Driftline), || of(Kind::Bare))?;
    let [resident, bare_resident, _] = pairs.cells(|memory| memory.resident_mb, 1);
    let [peak, bare_peak, _] = pairs.cells(|memory| memory.peak_mb, 1);
    let median = pairs.ours(|memory| memory.peak_mb, 1).median;
    table.row([
        database.name.name().to_owned(),
        resident,
        peak,
        bare_resident,
        bare_peak,
        format!("< {TARGET_MB}"),
        met(median < TARGET_MB),
    ]);
    Ok(())
}

fn of_process(
    runtime: &Runtime,
    kind: Kind,
    database: &Database,
    size: Size,
) -> Result<Memory, Failure> {
    let kind_name = match kind {
        Kind::Driftline => "driftline",
        Kind::Bare => "bare",
    };
    let place = database.place.text();
    let mut process = Process::start_own(&["home-serve", kind_name, &place])?;
    let line = process.line()?;
    let address: SocketAddr = line
        .parse()
        .map_err(|_| Failure::new(format!("the process prints {line:?}, not its address")))?;
    page_through(runtime, kind, address, database, size)?;
    let memory = process.memory()?;
    process.end()?;
    Ok(memory)
}

/// As many clients as are told, each over a connection of its own that is kept alive.
fn page_through(
    runtime: &Runtime,
    kind: Kind,
    address: SocketAddr,
    database: &Database,
    size: Size,
) -> Result<(), Failure> {
    let ids = database.upper_ids();
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let reader = Reader::ALL[number % Reader::ALL.len()];
        let asked = match kind {
            Kind::Driftline => {
                let token = runtime.block_on(reader::log_in(address, reader))?;
                reader.asks_driftline(token, size.min_bytes)
            }
            Kind::Bare => reader.asks_bare(size.min_bytes),
        };
        let ids = Arc::clone(&ids);
        let load = Load {
            connections: 1,
            requests: PAGES,
        };
        clients.push(move || client::read(address, &asked, &ids, load, number as u64));
    }
    let reading: Vec<_> = clients.into_iter().map(thread::spawn).collect();
    for client in reading {
        let read = client.join();
        read.map_err(|_| Failure::new("a client panicked"))??;
    }
    Ok(())
}

/// Serves a database until standard input ends, and says where.
pub(crate) fn run_child(options: &ChildOptions) -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let place = Place::parse(&options.database);
    let mut store = None;
    let address = match options.kind {
        Kind::Driftline => {
            let (opened, address) = runtime.block_on(super::super::serve_store(place.target()))?;
            store = Some(opened);
            address
        }
        Kind::Bare => runtime.block_on(bare::serve(&place))?,
    };
    println!("{address}");
    io::stdin().read_to_end(&mut Vec::new())?;
    if let Some(store) = store {
        runtime.block_on(store.close());
    }
    Ok(())
}

pub(super) const CLIENTS: usize = 10;
/// Pages that each client reads.
pub(super) const PAGES: usize = 200;
const TARGET_MB: f64 = 120.0;
