//! `memory`: what a process needs that works on a large schedule.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::{Args, ValueEnum};
use driftline_core::refresh::Policy;
use driftline_store::{InstanceId, Store, Target};

use super::{
    Options, bare, database::SqliteFile, fill::Width, made::NOW_MS, ours::Worker, sqlite_peer::Peer,
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
    file: PathBuf,
    cycles: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Driftline,
    Bare,
}

/// Measures processes that work on copies of a large file.
pub(super) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let posts = options.sizes(effort).last().copied().unwrap_or(0);
    let cycles = if effort.quick { 10 } else { CYCLES };
    let file = SqliteFile::fill(posts, Width::Narrow)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds(3) {
        for (kind, figures) in [("driftline", &mut ours), ("bare", &mut bare)] {
            let copy = file.copy()?;
            let path = copy.path().display().to_string();
            let output = Command::new(env::current_exe()?)
                .args(["refresh-memory", kind, &path, &cycles.to_string()])
                .output()?;
            let said = String::from_utf8(output.stdout)?;
            let kb: f64 = said.trim().parse().map_err(|_| {
                let said = String::from_utf8_lossy(&output.stderr);
                Failure::new(format!("the measured process says {said:?}"))
            })?;
            figures.push(kb / 1_000.0);
        }
    }
    let ours = Spread::of(ours, 1);
    let mut table = Table::new(
        format!(
            "refresh memory: SQLite, {posts} scheduled posts, {cycles} claims and saves of 100; \
             the most that was resident"
        ),
        ["figure", "Driftline", "bare driver", "target", "met"],
    );
    table.row([
        "resident at most, MB".to_owned(),
        ours.to_string(),
        Spread::of(bare, 1).to_string(),
        format!("< {TARGET_MB}"),
        met(ours.median < TARGET_MB),
    ]);
    table.print();
    println!(
        "every answer of Driftline's process is an edit with JSON of one to two kilobytes; the \
         bare one's only puts posts off. The system's cache of the file is not counted."
    );
    Ok(())
}

/// Works, and says how much was resident at most, kB.
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
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().next());
    println!("{}", kb.unwrap_or("unknown"));
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
