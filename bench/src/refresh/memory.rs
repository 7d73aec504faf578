//! `memory`: what a process needs that works on a large schedule.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use driftline_core::refresh::Policy;
use driftline_store::{InstanceId, Store, Target};

use super::{
    bare, database::SqliteFile, fill::Width, made::NOW_MS, ours::Worker, sqlite_peer::Peer,
};
use crate::{
    Effort,
    failure::Failure,
    process::Process,
    rounds::Pairs,
    table::{Table, met},
};

/// What the measured process takes.
#[derive(Debug, Args)]
pub(crate) struct ChildOptions {
    kind: Kind,
    file: PathBuf,
    cycles: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Driftline,
    Bare,
}

/// Measures processes that work on copies of a large file.
pub(super) fn run(sizes: &[u64], effort: Effort) -> Result<(), Failure> {
    let posts = sizes.last().copied().unwrap_or(0);
    let cycles = if effort.quick { 10 } else { CYCLES };
    let file = SqliteFile::fill(posts, Width::Narrow)?;
    let peak_mb = |kind: &str| -> Result<f64, Failure> {
        let copy = file.copy()?;
        let path = copy.path().display().to_string();
        let arguments = ["refresh-memory", kind, &path, &cycles.to_string()];
        let process = Process::start_own(&arguments)?.until_ready()?;
        let peak_mb = process.memory()?.peak_mb;
        process.end()?;
        Ok(peak_mb)
    };
    let rounds = effort.rounds(3);
    let pairs = Pairs::measure(rounds, || peak_mb("driftline"), || peak_mb("bare"))?;
    let mut table = Table::new(
        format!(
            "refresh memory: SQLite, {posts} scheduled posts, {cycles} claims and saves of 100; \
             the most that was resident"
        ),
        [
            "figure",
            "Driftline",
            "bare driver",
            "ratio",
            "target",
            "met",
        ],
    );
    let [ours, bare, ratio] = pairs.cells(|mb| *mb, 1);
    table.row([
        "resident at most, MB".to_owned(),
        ours,
        bare,
        ratio,
        format!("< {TARGET_MB}"),
        met(pairs.ours(|mb| *mb, 1).median < TARGET_MB),
    ]);
    table.print();
    println!(
        "every answer of Driftline's process is an edit with JSON of one to two kilobytes; the \
         bare one's only puts posts off. The system's cache of the file is not counted."
    );
    Ok(())
}

/// Works, and waits until its standard input ends.
pub(crate) fn run_child(options: &ChildOptions) -> Result<(), Failure> {
    match options.kind {
        Kind::Driftline => work(&options.file, options.cycles)?,
        Kind::Bare => {
            let mut peer = Peer::open(&options.file)?;
            for _ in 0..options.cycles {
                let due = peer.claim(NOW_MS)?;
                peer.put_off(&due, NOW_MS)?;
            }
        }
    }
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn work(file: &Path, cycles: u64) -> Result<(), Failure> {
    let store = Store::open(Target::Sqlite {
        path: file.to_owned(),
    })?;
    let mut worker = Worker::new(
        &store,
        InstanceId::from(bare::INSTANCE.unsigned_abs()),
        Policy::default(),
    );
    for _ in 0..cycles {
        let claim = worker.claim()?;
        let claim = claim.ok_or_else(|| Failure::new("too few posts are due"))?;
        let answers = worker.answers_edited(&claim)?;
        worker.save(claim, answers)?;
    }
    store.close_blocking();
    Ok(())
}

const CYCLES: u64 = 1_000;
const TARGET_MB: f64 = 200.0;
