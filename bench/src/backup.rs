//! `backup`: a store that is written to, copied by us and by SQLite in one step, and the longest wait of its
//! writer meanwhile.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

use driftline_store::{Root, Store, StoreError, Target, backup};
use rusqlite::{Connection, OpenFlags};

use crate::{
    Effort,
    failure::Failure,
    process::{self, disk},
    read,
    rounds::Spread,
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

/// One round's figures.
#[derive(Default)]
struct Figures {
    seconds: Vec<f64>,
    max_wait_ms: Vec<f64>,
    commits: Vec<f64>,
}

/// Measures them, interleaved.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 2_000 } else { 1_000_000 };
    let folder = tempfile::tempdir_in(disk())?;
    let path = folder.path().join("driftline.db");
    read::fill::timeline(&path, posts, read::fill::ACCOUNTS)?;
    let store = Store::open(Target::Sqlite { path: path.clone() })?;
    let ways = [Way::Copy, Way::Proven, Way::OneStep, Way::Nothing];
    let mut figures: [Figures; 4] = Default::default();
    for round in 0..effort.rounds(5) {
        for (way, figures) in ways.iter().zip(&mut figures) {
            let to = folder.path().join(format!("copy-{round}"));
            measure(*way, &store, &path, &to, figures)?;
            let _ = fs::remove_file(&to);
        }
    }
    store.close_blocking();
    let bytes = fs::metadata(&path)?.len();
    let mut table = Table::new(
        format!(
            "backup: {posts} posts, {} MiB, {COMMITS_PER_S} commits a second meanwhile",
            bytes >> 20
        ),
        [
            "way",
            "seconds",
            "MiB/s",
            "to one step",
            "longest wait of the writer, ms",
            "commits/s",
            "< 200 ms",
        ],
    );
    let peers = figures[2].seconds.clone();
    for (way, of) in ways.iter().zip(&figures) {
        let longest = Spread::of(of.max_wait_ms.iter().copied(), 1);
        let is_met = of.max_wait_ms.iter().all(|ms| *ms < MAX_WAIT_MS);
        let speed = of.seconds.iter().map(|s| (bytes >> 20) as f64 / s);
        let ratio = of.seconds.iter().zip(&peers).map(|(own, peer)| own / peer);
        let is_copy = *way != Way::Nothing;
        let or_none = |spread: Spread| match is_copy {
            true => spread.to_string(),
            false => "-".to_owned(),
        };
        table.row([
            way.name().to_owned(),
            Spread::of(of.seconds.iter().copied(), 2).to_string(),
            or_none(Spread::of(speed, 0)),
            or_none(Spread::of(ratio, 2)),
            longest.to_string(),
            Spread::of(of.commits.iter().copied(), 0).to_string(),
            met(is_met),
        ]);
    }
    table.print();
    Ok(())
}

impl Way {
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
                    Ok(snapshot) => {
                        let watch = Box::new(|_| true);
                        if is_proven {
                            let found = backup::read(backup::CopyKind::File, to, watch);
                            let found = found.map_err(StoreError::from)?;
                            match backup::difference(&snapshot.tables, &found) {
                                None => {}
                                Some(difference) => return Err(Failure::new(difference)),
                            }
                        }
                    }
                    Err(error) if error.is_interrupted() && !is_proven => {}
                    Err(error) => return Err(error.into()),
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
fn measure(
    way: Way,
    store: &Store,
    from: &Path,
    to: &Path,
    figures: &mut Figures,
) -> Result<(), Failure> {
    calm(from)?;
    let is_ended = Arc::new(AtomicBool::new(false));
    let writer = {
        let (store, is_ended) = (store.clone(), Arc::clone(&is_ended));
        thread::spawn(move || commit_until(&store, &is_ended))
    };
    let started = Instant::now();
    let copied = way.copy(from, to);
    let seconds = started.elapsed().as_secs_f64();
    is_ended.store(true, Ordering::Relaxed);
    let written = writer.join();
    let (commits, longest) = written.map_err(|_| Failure::new("the writer panicked"))??;
    copied?;
    figures.seconds.push(seconds);
    figures.max_wait_ms.push(longest.as_secs_f64() * 1e3);
    figures.commits.push(commits as f64 / seconds);
    Ok(())
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
