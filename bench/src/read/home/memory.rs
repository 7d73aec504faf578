//! What a process that serves home timelines needs.

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Command, Stdio},
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
    rounds::Spread,
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

/// Resident memory, MB: at the end, and at most.
#[derive(Debug, Clone, Copy)]
struct Memory {
    resident: f64,
    peak: f64,
}

/// Measures new processes, which clients ask for pages: half of them each reader's, all logged in.
pub(super) fn measure(
    runtime: &Runtime,
    database: &Database,
    size: Size,
    effort: Effort,
    table: &mut Table,
) -> Result<(), Failure> {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds(3) {
        ours.push(of_process(runtime, Kind::Driftline, database, size)?);
        bare.push(of_process(runtime, Kind::Bare, database, size)?);
    }
    let of = |all: &[Memory], figure: fn(&Memory) -> f64| Spread::of(all.iter().map(figure), 1);
    let peak = of(&ours, |memory| memory.peak);
    table.row([
        database.name.name().to_owned(),
        of(&ours, |memory| memory.resident).to_string(),
        peak.to_string(),
        of(&bare, |memory| memory.resident).to_string(),
        of(&bare, |memory| memory.peak).to_string(),
        format!("< {TARGET_MB}"),
        met(peak.median < TARGET_MB),
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
    let mut process = Command::new(env::current_exe()?)
        .args(["home-serve", kind_name, &database.place.text()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let says = process.stdout.take();
    let mut line = String::new();
    BufReader::new(says.ok_or_else(|| Failure::new("the process says nothing"))?)
        .read_line(&mut line)?;
    let asked = || -> Result<Memory, Failure> {
        let address: SocketAddr = line
            .trim()
            .parse()
            .map_err(|_| Failure::new(format!("the process says {line:?}, not its address")))?;
        page_through(runtime, kind, address, database, size)?;
        let status = fs::read_to_string(format!("/proc/{}/status", process.id()))?;
        let mb = |name: &str| -> Result<f64, Failure> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next());
            let kib: Option<f64> = kib.and_then(|kib| kib.parse().ok());
            let kib = kib.ok_or_else(|| Failure::new(format!("/proc/PID/status has no {name}")))?;
            Ok(kib * 1_024.0 / 1e6)
        };
        Ok(Memory {
            resident: mb("VmRSS:")?,
            peak: mb("VmHWM:")?,
        })
    };
    let memory = asked();
    // It serves until its standard input ends.
    drop(process.stdin.take());
    process.wait()?;
    memory
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
