//! `track`: IDs that are looked up at a server on this machine by the program itself, next to a bare loop that
//! sends the same requests and inserts the answers.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Instant,
};

use driftline_id::Layout;
use rusqlite::Connection;

use crate::{
    Effort,
    failure::Failure,
    process::{self, Driftline, disk},
    rounds::Spread,
    table::{Table, met},
    upstream::{Kind, Upstream},
};

/// What a round took.
struct Round {
    seconds: f64,
    /// Sent for each ID.
    requests: f64,
    peer_seconds: f64,
    peak_mib: f64,
}

/// Measures each kind of server, both in turns.
pub(crate) fn run(program: &Driftline, effort: Effort) -> Result<(), Failure> {
    let ids = if effort.quick { 2_000 } else { 1_000_000 };
    let mut table = Table::new(
        "track: IDs looked up at a server on this machine and stored in a file",
        [
            "IDs a request, at most",
            "IDs",
            "IDs/s",
            "bare loop, IDs/s",
            "of it",
            "requests an ID, times the most",
            "<= 1.02",
            "memory at most, MiB",
        ],
    );
    for kind in Kind::ALL {
        let ids = match kind.batch() {
            1 => ids / 10,
            _ => ids,
        };
        let mut rounds = Vec::new();
        for _ in 0..effort.rounds(3) {
            rounds.push(measure(program, kind, ids)?);
        }
        let of = |figure: fn(&Round) -> f64| rounds.iter().map(figure);
        let per_s = |seconds: f64| ids as f64 / seconds;
        let requests = || of(|round| round.requests).map(|each| each * kind.batch() as f64);
        table.row([
            kind.batch().to_string(),
            ids.to_string(),
            Spread::of(of(|round| round.seconds).map(per_s), 0).to_string(),
            Spread::of(of(|round| round.peer_seconds).map(per_s), 0).to_string(),
            Spread::of(of(|round| round.peer_seconds / round.seconds), 2).to_string(),
            Spread::of(requests(), 3).to_string(),
            met(requests().all(|each| each <= 1.02)),
            Spread::of(of(|round| round.peak_mib), 0).to_string(),
        ]);
    }
    table.print();
    Ok(())
}

fn measure(program: &Driftline, kind: Kind, count: usize) -> Result<Round, Failure> {
    let folder = tempfile::tempdir_in(disk())?;
    let first = u64::try_from(Layout::MASTODON.smallest_at(FIRST_MS))?;
    let ids: Vec<u64> = (0..count as u64)
        .map(|number| first + (number << 16))
        .collect();
    let file = folder.path().join("ids");
    let mut writer = BufWriter::new(File::create(&file)?);
    for id in &ids {
        writeln!(writer, "{id}")?;
    }
    writer.flush()?;
    let upstream = Upstream::start(kind)?;
    let ran = track(program, &upstream, folder.path(), &file)?;
    let requests = upstream.requests() as f64 / count as f64;
    let stored = stored(&folder.path().join("data/driftline.db"))?;
    if stored != count {
        return Err(Failure::new(format!(
            "{stored} of {count} posts are stored"
        )));
    }
    let begun = Instant::now();
    bare(&upstream, &folder.path().join("bare.db"), &ids)?;
    Ok(Round {
        seconds: ran.seconds,
        requests,
        peer_seconds: begun.elapsed().as_secs_f64(),
        peak_mib: ran.peak_mib,
    })
}

fn track(
    program: &Driftline,
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
    let url = upstream.url();
    let kind = upstream.kind().api();
    let mut add = driftline(&["credential", "add", url, "--kind", kind]);
    process::run(add.args(["--token-env", "BENCH_TOKEN"]))?;
    let mut track = driftline(&["track", url, "--once", "--allow-private"]);
    process::run(track.arg("--ids").arg(ids))
}

fn stored(database: &Path) -> Result<usize, Failure> {
    let connection = Connection::open(database)?;
    let count =
        connection.query_row("select count(*) from post", [], |row| row.get::<_, i64>(0))?;
    Ok(usize::try_from(count)?)
}

/// As many requests at once as the program sends; a commit for what has come since the last.
fn bare(upstream: &Upstream, path: &Path, ids: &[u64]) -> Result<(), Failure> {
    // There is one already after the first round.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = full;
         create table post (id integer primary key, raw text not null);",
    )?;
    let (sender, answers) = mpsc::sync_channel::<Vec<(u64, String)>>(16);
    let batches = ids.chunks(upstream.kind().batch());
    let batches = Arc::new(Mutex::new(batches));
    thread::scope(|scope| -> Result<(), Failure> {
        let asking: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (sender, batches) = (sender.clone(), Arc::clone(&batches));
                scope.spawn(move || -> Result<(), Failure> {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()?;
                    let client = reqwest::Client::new();
                    let next = || batches.lock().ok().and_then(|mut batches| batches.next());
                    while let Some(batch) = next() {
                        let answer = runtime.block_on(upstream.ask(&client, batch))?;
                        let _ = sender.send(upstream.kind().posts(&answer)?);
                    }
                    Ok(())
                })
            })
            .collect();
        drop(sender);
        while let Ok(first) = answers.recv() {
            connection.execute_batch("begin")?;
            let mut insert = connection.prepare_cached("insert into post values (?1, ?2)")?;
            for (id, raw) in std::iter::once(first).chain(answers.try_iter()).flatten() {
                insert.execute((i64::try_from(id)?, raw))?;
            }
            connection.execute_batch("commit")?;
        }
        for worker in asking {
            worker
                .join()
                .map_err(|_| Failure::new("a worker panicked"))??;
        }
        Ok(())
    })?;
    let count =
        connection.query_row("select count(*) from post", [], |row| row.get::<_, i64>(0))?;
    drop(connection);
    fs::remove_file(path)?;
    match usize::try_from(count)? == ids.len() {
        true => Ok(()),
        false => Err(Failure::new(format!("the bare loop has stored {count}"))),
    }
}

/// As `track` has for a server.
const WORKERS: usize = 2;
/// October 2025.
const FIRST_MS: i64 = 1_760_000_000_000;
