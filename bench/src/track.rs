//! `track`: IDs that are looked up at a server on this machine by the program itself, next to a bare loop that
//! sends the same requests and inserts the answers.

use std::{
    fs,
    path::Path,
    process::Stdio,
    sync::{
        Mutex,
        mpsc::{self, SyncSender},
    },
    thread,
    time::Instant,
};

use driftline_id::Layout;
use rusqlite::Connection;

use crate::{
    Effort,
    failure::Failure,
    http,
    process::{self, Driftline, disk},
    rounds::Pairs,
    table::{Table, met},
    upstream::{Kind, Upstream},
};

/// The figures of one side.
#[derive(Default)]
struct Figures {
    seconds: f64,
    /// Sent for each ID, times the most IDs of one.
    requests: f64,
    peak_mib: f64,
}

/// Measures each kind of server, both in turns.
pub(crate) fn run(program: &Driftline, effort: Effort) -> Result<(), Failure> {
    let ids = if effort.quick { 2_000 } else { 1_000_000 };
    let mut table = Table::new(
        "track: IDs looked up at a server on this machine and stored in a file",
        "IDs a request, at most | IDs | IDs/s | bare loop, IDs/s | of it | requests an ID, times the most | <= 1.02 | memory at most, MiB",
    );
    for kind in Kind::ALL {
        let batch = kind.batch();
        let ids = if batch == 1 { ids / 10 } else { ids };
        let mut rounds = Pairs::new();
        for _ in 0..effort.rounds(3) {
            rounds.0.push(measure(program, kind, ids)?);
        }
        let per_s = |figures: &Figures| ids as f64 / figures.seconds;
        let (ours, bare) = (rounds.of(0, per_s, 0), rounds.of(1, per_s, 0));
        let (ratio, peak) = (rounds.ratio(0, 1, per_s), rounds.of(0, |f| f.peak_mib, 0));
        let requests = rounds.of(0, |figures| figures.requests, 3);
        let is_met = met(rounds.0.iter().all(|[ours, _]| ours.requests <= 1.02));
        table.row(format!(
            "{batch} | {ids} | {ours} | {bare} | {ratio} | {requests} | {is_met} | {peak}"
        ));
    }
    table.print();
    Ok(())
}

fn measure(program: &Driftline, kind: Kind, count: usize) -> Result<[Figures; 2], Failure> {
    let folder = tempfile::tempdir_in(disk())?;
    let first = u64::try_from(Layout::MASTODON.smallest_at(FIRST_MS))?;
    let ids = (0..count as u64).map(|number| first + (number << 16));
    let ids: Vec<u64> = ids.collect();
    let file = folder.path().join("ids");
    let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
    fs::write(&file, lines)?;
    let upstream = Upstream::start(kind)?;
    let ran = track(program, kind, &upstream, folder.path(), &file)?;
    let requests = upstream.requests() as f64 / count as f64;
    let database = Connection::open(folder.path().join("data/driftline.db"))?;
    stored(&database, count)?;
    let begun = Instant::now();
    bare(kind, &upstream, &folder.path().join("bare.db"), &ids)?;
    let ours = Figures {
        seconds: ran.seconds,
        requests: requests * kind.batch() as f64,
        peak_mib: ran.peak_mib,
    };
    let bare = Figures {
        seconds: begun.elapsed().as_secs_f64(),
        ..Figures::default()
    };
    Ok([ours, bare])
}

fn track(
    program: &Driftline,
    kind: Kind,
    upstream: &Upstream,
    folder: &Path,
    ids: &Path,
) -> Result<process::Ran, Failure> {
    let data = folder.join("data");
    let driftline = |arguments: &[&str]| {
        let mut command = program.command(&data, arguments);
        command.env("BENCH_TOKEN", "bench").stdout(Stdio::null());
        command
    };
    let url = format!("http://{}", upstream.address);
    let mut add = driftline(&["credential", "add", &url, "--kind", kind.api()]);
    process::run(add.args(["--token-env", "BENCH_TOKEN"]))?;
    let mut track = driftline(&["track", &url, "--once", "--allow-private"]);
    process::run(track.arg("--ids").arg(ids))
}

/// Fails unless so many posts are stored.
fn stored(database: &Connection, count: usize) -> Result<(), Failure> {
    let sql = "select count(*) from post";
    let stored: i64 = database.query_row(sql, [], |row| row.get(0))?;
    match usize::try_from(stored)? == count {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{stored} of {count} posts are stored"
        ))),
    }
}

/// As many requests at once as the program sends; a commit for what has come since the last.
fn bare(kind: Kind, upstream: &Upstream, path: &Path, ids: &[u64]) -> Result<(), Failure> {
    let database = Connection::open(path)?;
    database.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = full;
         create table post (id integer primary key, raw text not null);",
    )?;
    let (sender, answers) = mpsc::sync_channel::<Vec<(u64, String)>>(16);
    let batches = Mutex::new(ids.chunks(kind.batch()));
    let ask = &|sender: SyncSender<Vec<(u64, String)>>| -> Result<(), Failure> {
        let mut connection = http::Connection::open(upstream.address)?;
        let next = || batches.lock().ok().and_then(|mut batches| batches.next());
        while let Some(batch) = next() {
            let request = format!("GET {}", kind.target(batch));
            let answer = connection.ask(&request, None, "")?;
            let _ = sender.send(kind.posts(answer)?);
        }
        Ok(())
    };
    thread::scope(|scope| -> Result<(), Failure> {
        let asking = [(); WORKERS].map(|()| {
            let sender = sender.clone();
            scope.spawn(move || ask(sender))
        });
        drop(sender);
        while let Ok(first) = answers.recv() {
            database.execute_batch("begin")?;
            let mut insert = database.prepare_cached("insert into post values (?1, ?2)")?;
            for (id, raw) in std::iter::once(first).chain(answers.try_iter()).flatten() {
                insert.execute((i64::try_from(id)?, raw))?;
            }
            database.execute_batch("commit")?;
        }
        let panicked = |_| Err(Failure::new("a worker panicked"));
        asking
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(panicked))
    })?;
    stored(&database, ids.len())
}

/// As `track` has for a server.
const WORKERS: usize = 2;
/// October 2025.
const FIRST_MS: i64 = 1_760_000_000_000;
