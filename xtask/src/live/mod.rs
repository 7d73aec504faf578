//! Trials against real servers: accounts write, Driftline mirrors, both are killed, and at the end
//! what is stored is compared with what the server shows.

mod api;
mod compare;
mod gotosocial;
mod hollo;
mod ladder;
mod mirror;
mod mitra;
mod report;
mod request_log;
mod server;
mod snac;
mod takahe;
mod timelines;
mod writer;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use clap::{Args, ValueEnum};

use crate::error::TaskError;
use crate::test::cluster::{self, Cluster};
use crate::workspace::Workspace;
use ladder::Ladder;
use mirror::Mirror;
use report::Outcome;
use request_log::RequestLog;
use server::{Account, Server, Setup, Software, free_address, output};
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
    /// A built `driftline` to try; without one, this workspace's is built
    #[arg(long)]
    binary: Option<PathBuf>,
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
    let at = fs::canonicalize(&args.at);
    let at = at.map_err(|error| TaskError::Program(args.at.display().to_string(), error))?;
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|error| TaskError::Program("a folder".to_owned(), error))?;
    let folder = args.keep.as_deref().unwrap_or(scratch.path());
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let (server_folder, own_folder) = (folder.join("server"), folder.join("driftline"));
    for folder in [&server_folder, &own_folder] {
        workspace.shell.create_dir(folder)?;
    }
    let binary = match &args.binary {
        Some(binary) => std::path::absolute(binary).unwrap_or_else(|_| binary.clone()),
        None => workspace.build(&["--bin", "driftline"])?.join("driftline"),
    };
    let is_postgres = args.database == Database::Postgres;
    let cluster = match is_postgres || args.software.needs_postgres() {
        true => Some(TrialCluster::start(workspace)?),
        false => None,
    };
    let database = |name, is_needed: bool| {
        let cluster = cluster.as_ref().filter(|_| is_needed);
        cluster
            .map(|cluster| cluster.create_database(name))
            .transpose()
    };
    let server_url = database("server", args.software.needs_postgres())?;
    let own_url = database("driftline", is_postgres)?;

    let address = free_address()?;
    let log = RequestLog::start(&address)?;
    let setup = Setup {
        at: &at,
        folder: &server_folder,
        address: &address,
        host: &log.address,
        database_url: server_url.as_deref(),
    };
    let (server, accounts) = args.software.start(&setup)?;
    let mirror = Mirror::new(&binary, &own_folder, own_url);
    let outcome = Trial {
        args,
        log,
        server,
        accounts,
        mirror,
    }
    .run(&own_folder)?;
    outcome.print();
    match outcome.is_good() {
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
    log: RequestLog,
    server: Server,
    accounts: Vec<Account>,
    mirror: Mirror,
}

impl Trial<'_> {
    fn run(mut self, folder: &Path) -> Result<Outcome, TaskError> {
        let api = self.server.api.clone();
        let accounts = self.accounts.clone();
        let writers = Writers::new(&api, &accounts, self.args.default_ladder);
        let list = writers.befriend()?;
        writers.write_history(HISTORY)?;
        let (timelines, refused) = timelines::shown(&api, &accounts, list.as_deref())?;
        self.add_sources(&timelines, folder)?;
        self.mirror.start()?;
        let begun = Instant::now();
        thread::scope(|scope| {
            for author in 0..accounts.len() {
                let writers = &writers;
                scope.spawn(move || writers.write(author, self.args.seed));
            }
            let pause = self.args.writing / 10;
            let writers = &writers;
            scope.spawn(move || writers.quarrel(pause));
            let killed = self.kill_on_the_way(begun);
            writers.stop();
            killed
        })?;
        let looks = self.looks(&timelines)?;
        let ready = self.wait_until_ready(&timelines)?;
        let record = writers.record().clone();
        let mut outcome = Outcome::gather(&api, &accounts[0], &self.mirror, &timelines, record)?;
        self.mirror.stop();
        outcome.refused = refused;
        outcome.ladder = self.ladder();
        outcome.looks = looks;
        outcome.ready = ready;
        outcome.requests = self.log.counts();
        Ok(outcome)
    }

    fn add_sources(&self, timelines: &[Timeline], folder: &Path) -> Result<(), TaskError> {
        let token = folder.join("token");
        let written = fs::write(&token, &self.accounts[0].token);
        written.map_err(|error| TaskError::Program(token.display().to_string(), error))?;
        let url = format!("http://{}", self.log.address);
        for timeline in timelines {
            self.mirror.add(&url, timeline, &token, self.ladder())?;
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
        self.mirror.kill();
        self.mirror.start()?;
        wait_until(2);
        self.server.kill();
        thread::sleep(AWAY);
        self.server.start_again()?;
        wait_until(3);
        self.server.kill();
        self.mirror.kill();
        self.server.start_again()?;
        self.mirror.start()?;
        wait_until(4);
        Ok(())
    }

    fn ladder(&self) -> Ladder {
        match self.args.default_ladder {
            true => Ladder::Default,
            false => Ladder::Short,
        }
    }

    /// How often each source has been read again until now.
    fn looks(&self, timelines: &[Timeline]) -> Result<Vec<(String, u64)>, TaskError> {
        let looks = timelines.iter().map(|timeline| {
            let report = self.mirror.json(&["source", "verify", &timeline.name])?;
            let rungs = report["rungs"].as_array().into_iter().flatten();
            let looks = rungs.filter_map(|rung| rung["looks"].as_u64()).sum();
            Ok((timeline.name.clone(), looks))
        });
        looks.collect()
    }

    /// Waits until each source is ready to be compared, for a time; how long that took, or the
    /// sources that are not.
    fn wait_until_ready(
        &self,
        timelines: &[Timeline],
    ) -> Result<Result<Duration, Vec<String>>, TaskError> {
        let begun = Instant::now();
        let written = SystemTime::now().duration_since(UNIX_EPOCH);
        let written_ms = i64::try_from(written.unwrap_or_default().as_millis()).unwrap_or(i64::MAX);
        loop {
            let mut unready = Vec::new();
            for timeline in timelines {
                let report = self.mirror.json(&["source", "verify", &timeline.name])?;
                if !self.ladder().is_ready(&report, written_ms) {
                    unready.push(timeline.name.clone());
                }
            }
            if unready.is_empty() {
                return Ok(Ok(begun.elapsed()));
            }
            if begun.elapsed() > self.args.settling {
                return Ok(Err(unready));
            }
            thread::sleep(Duration::from_secs(3));
        }
    }
}

/// Posts that are there before Driftline comes.
const HISTORY: usize = 60;
/// How long the server stays away.
const AWAY: Duration = Duration::from_secs(3);
