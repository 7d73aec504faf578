//! Trials against real servers: accounts write, Driftline mirrors, both are killed, and at the end
//! what is stored is compared with what the server shows.

mod api;
mod compare;
mod mirror;
mod report;
mod server;
mod software;
mod timelines;
mod writer;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::error::TaskError;
use crate::test::cluster::{self, Cluster};
use crate::workspace::Workspace;
use mirror::Mirror;
use report::SourceOutcome;
use server::{Account, Server, Setup, failed, free_address, output};
use software::Software;
use timelines::Timeline;
use writer::Writers;

/// What `cargo xtask live` takes.
#[derive(Debug, Args)]
pub(crate) struct LiveArgs {
    /// The server's software
    software: Software,
    /// The folder where the server is built: GoToSocial's or snac's with the binary of that name,
    /// Takahe's with a virtual environment `.venv`, Mitra's with its `target`, Hollo's with its
    /// `dist` and `node_modules`, for `node` 24 or later on the path
    #[arg(long)]
    at: PathBuf,
    /// What Driftline keeps its data in
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Database,
    /// How long the accounts write. Posts are read again at the age of 90 s, every 10 s: a longer
    /// time has timelines, and mentions beyond their first page, read again while they grow
    #[arg(long = "for", default_value = "3m", value_parser = humantime::parse_duration)]
    writing: Duration,
    /// Read again at the ages that Driftline has by default. The comparison comes when nothing is
    /// open and nothing waits for its second look, and no post returns to a timeline before it
    #[arg(long)]
    default_ladder: bool,
    /// How long Driftline may take after the writing
    #[arg(long, default_value = "5m", value_parser = humantime::parse_duration)]
    settling: Duration,
    /// What the accounts draw their writes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A folder to keep all data and logs in; without one they are removed
    #[arg(long)]
    keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    Sqlite,
    Postgres,
}

/// Runs a trial; fails if Driftline's copy differs from what the server shows.
pub(crate) fn run(workspace: &Workspace, args: &LiveArgs) -> Result<(), TaskError> {
    let at = fs::canonicalize(&args.at).map_err(|error| failed(&args.at, error))?;
    let scratch = tempfile::tempdir().map_err(|error| failed(Path::new("a folder"), error))?;
    let folder = args.keep.as_deref().unwrap_or(scratch.path());
    let folder = std::path::absolute(folder).map_err(|error| failed(folder, error))?;
    let server_folder = workspace.shell.create_dir(folder.join("server"))?;
    let own_folder = workspace.shell.create_dir(folder.join("driftline"))?;
    let binary = workspace.build(&["--bin", "driftline"])?.join("driftline");
    let is_postgres = args.database == Database::Postgres;
    let needs_postgres = args.software.needs_postgres();
    let cluster = match is_postgres || needs_postgres {
        true => Some(TrialCluster::start(workspace)?),
        false => None,
    };
    let database = |name, is_needed: bool| {
        let cluster = cluster.as_ref().filter(|_| is_needed);
        let url = cluster.map(|cluster| cluster.create_database(name));
        url.transpose()
    };
    let server_url = database("server", needs_postgres)?.unwrap_or_default();
    let own_url = database("driftline", is_postgres)?;

    let address = free_address()?;
    let setup = Setup {
        at: &at,
        folder: &server_folder,
        address: &address,
        host: &address,
        database_url: &server_url,
    };
    let (server, accounts) = args.software.start(&setup)?;
    let mirror = Mirror::new(&binary, &own_folder, own_url);
    let trial = Trial {
        args,
        address: &address,
        server,
        accounts,
        mirror,
    };
    let sources = trial.run(&own_folder)?;
    report::print(&sources);
    match sources.iter().all(|source| source.difference.is_good()) {
        true => Ok(()),
        false => Err(TaskError::message(
            "the copy differs from what the server shows",
        )),
    }
}

/// A PostgreSQL cluster for the trial: the one that the environment names, or its own.
struct TrialCluster {
    url: String,
    _own: Option<Cluster>,
}

impl TrialCluster {
    fn start(workspace: &Workspace) -> Result<TrialCluster, TaskError> {
        if let Ok(url) = std::env::var(cluster::VARIABLE) {
            return Ok(TrialCluster { url, _own: None });
        }
        let own = Cluster::start(&cluster::program(workspace)?, None)?;
        Ok(TrialCluster {
            url: own.url().to_owned(),
            _own: Some(own),
        })
    }

    /// Makes a database and gives its URL.
    fn create_database(&self, name: &str) -> Result<String, TaskError> {
        let name = format!("{name}_{}", std::process::id());
        let create = format!("create database {name}");
        output(Command::new("psql").args([&self.url, "--quiet", "--command", &create]))?;
        let (server, _) = self.url.rsplit_once('/').unwrap_or((&self.url, ""));
        Ok(format!("{server}/{name}"))
    }
}

/// A server with accounts, and a mirror of it.
struct Trial<'a> {
    args: &'a LiveArgs,
    address: &'a str,
    server: Server,
    accounts: Vec<Account>,
    mirror: Mirror,
}

impl Trial<'_> {
    fn run(mut self, folder: &Path) -> Result<Vec<SourceOutcome>, TaskError> {
        let api = self.server.api.clone();
        let accounts = self.accounts.clone();
        let writers = Writers::new(&api, &accounts, self.args.default_ladder);
        let list = writers.befriend()?;
        writers.write_history(HISTORY)?;
        let timelines = timelines::shown(&api, &accounts, list.as_deref())?;
        self.add_sources(&timelines, folder)?;
        self.mirror.start()?;
        let begun = Instant::now();
        thread::scope(|scope| {
            let writers = &writers;
            for author in 0..accounts.len() {
                scope.spawn(move || writers.write(author, self.args.seed));
            }
            let pause = self.args.writing / 10;
            scope.spawn(move || writers.quarrel(pause));
            let killed = self.kill_on_the_way(begun);
            writers.stop();
            killed
        })?;
        self.wait_until_ready(&timelines)?;
        let record = writers.record().clone();
        let sources = report::gather(&api, &accounts, &self.mirror, &timelines, &record)?;
        self.mirror.end("TERM");
        println!("written: {:?}", record.done);
        println!(
            "refused: {:?}; without an answer: {}",
            record.refused, record.unanswered
        );
        Ok(sources)
    }

    fn add_sources(&self, timelines: &[Timeline], folder: &Path) -> Result<(), TaskError> {
        let token = folder.join("token");
        let written = fs::write(&token, &self.accounts[0].token);
        written.map_err(|error| failed(&token, error))?;
        let url = format!("http://{}", self.address);
        for timeline in timelines {
            let has_default_ladder = self.args.default_ladder;
            self.mirror
                .add(&url, timeline, &token, has_default_ladder)?;
        }
        self.mirror.add_credential(&url, &token)
    }

    /// Kills Driftline at a quarter of the time, the server at the half, both at three quarters.
    fn kill_on_the_way(&mut self, begun: Instant) -> Result<(), TaskError> {
        let quarter = self.args.writing / 4;
        let wait_until = |quarters: u32| {
            thread::sleep((quarter * quarters).saturating_sub(begun.elapsed()));
        };
        wait_until(1);
        self.mirror.end("KILL");
        self.mirror.start()?;
        wait_until(2);
        self.server.kill();
        thread::sleep(AWAY);
        self.server.start_again()?;
        wait_until(3);
        self.server.kill();
        self.mirror.end("KILL");
        self.server.start_again()?;
        self.mirror.start()?;
        wait_until(4);
        Ok(())
    }

    /// Waits until each source is ready to be compared, for a time. Prints how long that took, or the
    /// sources that are not.
    fn wait_until_ready(&self, timelines: &[Timeline]) -> Result<(), TaskError> {
        let begun = Instant::now();
        let written = SystemTime::now().duration_since(UNIX_EPOCH);
        let written_ms = i64::try_from(written.unwrap_or_default().as_millis()).unwrap_or(i64::MAX);
        loop {
            let mut unready = Vec::new();
            for Timeline { name, .. } in timelines {
                let report = self.mirror.json(&["source", "verify", name])?;
                let is_ready = match self.args.default_ladder {
                    true => is_read_twice(&report, written_ms),
                    false => report["settled"] == true,
                };
                if !is_ready {
                    unready.push(name.as_str());
                }
            }
            if unready.is_empty() || begun.elapsed() > self.args.settling {
                let seconds = begun.elapsed().as_secs();
                println!("{seconds} s after the last write not ready: {unready:?}");
                return Ok(());
            }
            thread::sleep(Duration::from_secs(3));
        }
    }
}

/// True if a source on the default ladder, which takes a day, is ready by the report of `source verify`: a poll
/// has succeeded since `written_ms`, nothing is open, and nothing waits for its second look.
fn is_read_twice(report: &Value, written_ms: i64) -> bool {
    let last_ms = report["polls"]["last_ms"].as_i64();
    let is_open = |gap: &Value| match gap["kind"].as_str() {
        Some("open" | "history") => true,
        Some("provisional") => gap["rung"] == 0,
        _ => false,
    };
    let mut gaps = report["gaps"].as_array().into_iter().flatten();
    last_ms.is_some_and(|last_ms| last_ms > written_ms)
        && report["verdict"] != "catching_up"
        && !gaps.any(is_open)
}

/// Posts that are there before Driftline comes.
const HISTORY: usize = 60;
/// How long the server stays away.
const AWAY: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_default_ladder_waits_for_a_poll_and_for_the_second_look() {
        for (is_ready, verdict, last_ms, kind, rung) in [
            (true, "provisional", 9, "provisional", 1),
            (true, "gaps", 9, "unrecoverable", 0),
            (false, "provisional", 5, "provisional", 1),
            (false, "provisional", 9, "provisional", 0),
            (false, "gaps", 9, "open", 0),
            (false, "history", 9, "history", 0),
            (false, "catching_up", 9, "provisional", 1),
        ] {
            let report = json!({
                "verdict": verdict,
                "polls": { "last_ms": last_ms },
                "gaps": [{ "kind": kind, "rung": rung }],
            });
            assert_eq!(is_read_twice(&report, 5), is_ready, "{report}");
        }
        assert!(!is_read_twice(&json!({}), 5));
    }
}
