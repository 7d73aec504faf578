//! The memory of a process that serves home timelines.

use std::net::SocketAddr;

use clap::Args;
use tokio::runtime::Runtime;

use super::{
    Site, bare,
    client::{self, Load},
    reader::{self, Reader},
};
use crate::{
    Effort,
    database::Place,
    failure::Failure,
    process::{self, Memory, Process, Side},
    rounds::Pairs,
    table::{Table, Target},
    threads,
};

/// The arguments of the measured process.
#[derive(Debug, Args)]
pub(crate) struct ChildOptions {
    side: Side,
    /// A URL, or the path of a file
    database: String,
}

pub(super) fn table(posts: usize) -> Table {
    Table::new(
        format!(
            "home: a process with {posts} posts and {CLIENTS} clients that page, {PAGES} pages each"
        ),
        "database | figure | Driftline | bare | ratio | target | met",
    )
}

/// Measures new processes, which clients ask for pages: half of them each reader's, all logged in.
pub(super) fn measure(
    database: &str,
    site: &Site,
    min_bytes: usize,
    effort: Effort,
    table: &mut Table,
) -> Result<(), Failure> {
    let of = |side| of_process(side, site, min_bytes);
    let rounds = effort.rounds(3);
    let pairs = Pairs::measure(rounds, || of(Side::Driftline), || of(Side::Bare))?;
    let resident = format!("{database} | resident, MB");
    table.compare(
        resident,
        &pairs,
        |memory| memory.resident_mb,
        1,
        Target::Any,
    );
    let peak = format!("{database} | at most, MB");
    table.compare(
        peak,
        &pairs,
        |memory| memory.peak_mb,
        1,
        Target::Below(120.0),
    );
    Ok(())
}

fn of_process(side: Side, site: &Site, min_bytes: usize) -> Result<Memory, Failure> {
    let place = site.place.text();
    let mut process = Process::start_own(&["home-serve", side.name(), &place])?;
    let line = process.line()?;
    let no_address = |_| Failure::new(format!("the process prints {line:?}, not its address"));
    let address: SocketAddr = line.parse().map_err(no_address)?;
    let load = Load {
        connections: 1,
        requests: PAGES,
    };
    threads::each(0..CLIENTS, |number| {
        let reader = Reader::ALL[number % Reader::ALL.len()];
        let asked = match side {
            Side::Driftline => reader.asks_driftline(reader::log_in(address, reader)?, min_bytes),
            Side::Bare => reader.asks_bare(min_bytes),
        };
        client::read(address, &asked, &site.ids, load, number as u64)
    })?;
    let memory = process.memory()?;
    process.end()?;
    Ok(memory)
}

/// Serves a database until standard input ends, and says where.
pub(crate) fn run_child(options: &ChildOptions) -> Result<(), Failure> {
    let runtime = Runtime::new()?;
    let place = Place::parse(&options.database);
    let (store, address) = match options.side {
        Side::Driftline => {
            let (store, address) = super::serve(&runtime, &place)?;
            (Some(store), address)
        }
        Side::Bare => (None, bare::serve(&runtime, &place)?),
    };
    println!("{address}");
    process::until_input_ends()?;
    if let Some(store) = store {
        runtime.block_on(store.close());
    }
    Ok(())
}

const CLIENTS: usize = 10;
/// Pages that each client reads.
const PAGES: usize = 200;
