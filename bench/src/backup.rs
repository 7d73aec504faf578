//! `backup`: a store that is written to, copied by us and by SQLite in one step, and the longest wait of its
//! writer meanwhile.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, sleep},
    time::{Duration, Instant},
};

use driftline_store::{Root, Store, StoreError, Target, backup};
use rusqlite::{Connection, OpenFlags};

use crate::{
    Effort,
    database::Place,
    failure::Failure,
    process::{self, disk},
    read::fill,
    rounds::Rounds,
    table::{Table, met},
};

/// How a store is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As `driftline backup` does, without the proof.
    Copy,
    /// With the proof: digests of the snapshot, and of the copy that was read again.
    Proven,
    /// SQLite's backup in one step, by rusqlite: the peer.
    OneStep,
    /// Nothing, for the writer's own waits.
    Nothing,
}

/// The figures of a copy.
struct Figures {
    seconds: f64,
    max_wait_ms: f64,
    commits_per_s: f64,
}

/// Measures them, interleaved.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 2_000 } else { 1_000_000 };
    let folder = tempfile::tempdir_in(disk())?;
    let path = folder.path().join("driftline.db");
    fill::timeline(&Place::File(path.clone()), posts, fill::ACCOUNTS)?;
    let store = Store::open(Target::Sqlite { path: path.clone() })?;
    let mut rounds = Rounds::new();
    for _ in 0..effort.rounds(5) {
        let copy = folder.path().join("copy");
        rounds.round(Way::ALL, |way| measure(way, &store, &path, &copy))?;
    }
    store.close_blocking();
    let mib = fs::metadata(&path)?.len() >> 20;
    let mut table = Table::new(
        format!("backup: {posts} posts, {mib} MiB, {COMMITS_PER_S} commits a second meanwhile"),
        "way | seconds | MiB/s | to one step | longest wait of the writer, ms | commits/s | < 200 ms",
    );
    for (number, way) in Way::ALL.iter().enumerate() {
        let seconds = rounds.of(number, |copy| copy.seconds, 2);
        let mut speed = rounds
            .of(number, |copy| mib as f64 / copy.seconds, 0)
            .to_string();
        let mut ratio = rounds.ratio(number, 2, |copy| copy.seconds).to_string();
        if *way == Way::Nothing {
            (speed, ratio) = ("-".to_owned(), "-".to_owned());
        }
        let longest = rounds.of(number, |copy| copy.max_wait_ms, 1);
        let commits = rounds.of(number, |copy| copy.commits_per_s, 0);
        let is_met = rounds
            .0
            .iter()
            .all(|round| round[number].max_wait_ms < MAX_WAIT_MS);
        let (name, is_met) = (way.name(), met(is_met));
        table.row(format!(
            "{name} | {seconds} | {speed} | {ratio} | {longest} | {commits} | {is_met}"
        ));
    }
    table.print();
    Ok(())
}

impl Way {
    const ALL: [Self; 4] = [Self::Copy, Self::Proven, Self::OneStep, Self::Nothing];

    const fn name(self) -> &'static str {
        match self {
            Self::Copy => "driftline, copied",
            Self::Proven => "driftline, copied and proven",
            Self::OneStep => "SQLite, one step",
            Self::Nothing => "no copy",
        }
    }

    fn copy(self, from: &Path, to: &Path) -> Result<(), Failure> {
        let target = Target::Sqlite {
            path: from.to_owned(),
        };
        match self {
            Self::Copy | Self::Proven => {
                let is_proven = self == Self::Proven;
                // The digests come after the copy: their first row ends a copy alone.
                let watch = Box::new(move |progress: backup::Progress| {
                    is_proven || matches!(progress, backup::Progress::Copied { .. })
                });
                match backup::copy(&target, to, watch) {
                    Ok(snapshot) if is_proven => {
                        let found = backup::read(backup::CopyKind::File, to, Box::new(|_| true));
                        let found = found.map_err(StoreError::from)?;
                        if let Some(difference) = backup::difference(&snapshot.tables, &found) {
                            return Err(Failure::new(difference));
                        }
                    }
                    Err(error) if is_proven || !error.is_interrupted() => return Err(error.into()),
                    _ => {}
                }
            }
            Self::OneStep => {
                let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
                let mut target = Connection::open(to)?;
                rusqlite::backup::Backup::new(&source, &mut target)?.step(-1)?;
                File::open(to)?.sync_all()?;
            }
            Self::Nothing => sleep(Duration::from_secs(2)),
        }
        Ok(())
    }
}

/// Copies once while a writer commits at fixed times; its wait counts from the time when it was to begin.
fn measure(way: Way, store: &Store, from: &Path, to: &Path) -> Result<Figures, Failure> {
    let _ = fs::remove_file(to);
    calm(from)?;
    let is_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| commit_until(store, &is_ended));
        let started = Instant::now();
        let copied = way.copy(from, to);
        let seconds = started.elapsed().as_secs_f64();
        is_ended.store(true, Ordering::Relaxed);
        let written = writer.join();
        let (commits, longest) = written.map_err(|_| Failure::new("the writer panicked"))??;
        copied.map(|()| Figures {
            seconds,
            max_wait_ms: longest.as_secs_f64() * 1e3,
            commits_per_s: commits as f64 / seconds,
        })
    })
}

/// Waits until the disk has done what was written and removed before, which it would do half a minute later,
/// in the middle of a measurement: until no flush has taken long for a while.
fn calm(beside: &Path) -> Result<(), Failure> {
    process::run(&mut Command::new("sync"))?;
    let path = beside.with_extension("calm");
    let mut file = File::create(&path)?;
    let begun = Instant::now();
    let mut calm_since = begun;
    while calm_since.elapsed() < Duration::from_secs(3) {
        let flush = Instant::now();
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        if flush.elapsed() > Duration::from_millis(20) {
            calm_since = Instant::now();
        }
        if begun.elapsed() > Duration::from_secs(120) {
            return Err(Failure::new("the disk is too busy to measure"));
        }
        sleep(Duration::from_millis(2));
    }
    Ok(fs::remove_file(path)?)
}

fn commit_until(store: &Store, is_ended: &AtomicBool) -> Result<(u64, Duration), Failure> {
    let between = Duration::from_secs(1) / COMMITS_PER_S;
    let (mut commits, mut longest) = (0, Duration::ZERO);
    let mut due = Instant::now();
    while !is_ended.load(Ordering::Relaxed) {
        sleep(due.saturating_duration_since(Instant::now()));
        store.write_blocking(Root::none(), |tx| {
            // Another value each time: SQLite writes no page that stays as it is.
            tx.execute("update local_clock set last_id = last_id + 1", &[])?;
            Ok::<_, StoreError>(())
        })?;
        longest = longest.max(due.elapsed());
        commits += 1;
        due += between;
        // A stall counts once: what was due in it is not made up for.
        due = due.max(Instant::now() - between);
    }
    Ok((commits, longest))
}

const COMMITS_PER_S: u32 = 500;
const MAX_WAIT_MS: f64 = 200.0;
