//! `memory`: what a process needs that works on a large schedule.

use std::path::PathBuf;

use clap::Args;
use driftline_core::refresh::Policy;
use driftline_store::{InstanceId, refresh::LookupAnswer};

use super::{
    fill::{Filled, Width},
    made::{self, NOW_MS},
    ours::Worker,
    sqlite_peer::{INSTANCE, Peer},
};
use crate::{
    Effort,
    database::{Place, Server},
    failure::Failure,
    process::{self, Process, Side},
    rounds::Pairs,
    table::{Table, Target},
};

/// The arguments of the measured process.
#[derive(Debug, Args)]
pub(crate) struct ChildOptions {
    side: Side,
    file: PathBuf,
    cycles: u64,
}

/// Measures processes that work on copies of a large file.
pub(super) fn run(sizes: &[u64], effort: Effort) -> Result<(), Failure> {
    let posts = sizes.last().copied().unwrap_or(0);
    let cycles = if effort.quick { 10 } else { CYCLES };
    let filled = Filled::new(Server::sqlite()?, posts, Width::Narrow)?;
    let peak_mb = |side: Side| -> Result<f64, Failure> {
        let file = filled.copy()?.text();
        let arguments = ["refresh-memory", side.name(), &file, &cycles.to_string()];
        let process = Process::start_own(&arguments)?.until_ready()?;
        let peak_mb = process.memory()?.peak_mb;
        process.end()?;
        Ok(peak_mb)
    };
    let rounds = effort.rounds(3);
    let pairs = Pairs::measure(rounds, || peak_mb(Side::Driftline), || peak_mb(Side::Bare))?;
    let mut table = Table::new(
        format!(
            "refresh memory: SQLite, {posts} scheduled posts, {cycles} claims and saves of 100; \
             the most that was resident"
        ),
        "figure | Driftline | bare driver | ratio | target | met",
    );
    table.compare(
        "resident at most, MB",
        &pairs,
        |mb| *mb,
        1,
        Target::Below(200.0),
    );
    table.print();
    println!(
        "every answer of Driftline's process is an edit with JSON of one to two kilobytes; the \
         bare one's only puts posts off. The system's cache of the file is not counted."
    );
    Ok(())
}

/// Works, and waits until its standard input ends.
pub(crate) fn run_child(options: &ChildOptions) -> Result<(), Failure> {
    let place = Place::File(options.file.clone());
    match options.side {
        Side::Driftline => work(&place, options.cycles)?,
        Side::Bare => {
            let mut peer = Peer::open(&place)?;
            for _ in 0..options.cycles {
                let due = peer.claim(NOW_MS)?;
                peer.put_off(&due, NOW_MS)?;
            }
        }
    }
    println!("ready");
    process::until_input_ends()
}

/// Every answer is an edited post.
fn work(place: &Place, cycles: u64) -> Result<(), Failure> {
    let store = place.open()?;
    let instance = InstanceId::from(INSTANCE.unsigned_abs());
    let mut worker = Worker::new(&store, instance, Policy::default());
    for _ in 0..cycles {
        let claim = worker.claim()?;
        let claim = claim.ok_or_else(|| Failure::new("too few posts are due"))?;
        let answers = worker.answers(&claim, |id| {
            let mut post = made::answer(id)?;
            post.edited_at_ms = Some(NOW_MS);
            post.hashes.content = post.hashes.content.wrapping_add(1);
            Ok(LookupAnswer::Found(Box::new(post)))
        })?;
        worker.save(claim, answers)?;
    }
    store.close_blocking();
    Ok(())
}

const CYCLES: u64 = 1_000;
