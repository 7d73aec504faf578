//! `tail`: from an answer of an upstream to the line that the program prints of its post, next to a client
//! of the same server's events.

use std::{io::BufRead, process::Stdio, sync::mpsc, thread, time::Duration};

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    Effort,
    failure::Failure,
    http::Connection,
    process::{self, Driftline, Process, disk},
    rounds::{Pairs, Times},
    table::{Table, met},
};

/// Measures both ways in the same rounds.
pub(crate) fn run(driftline: &Driftline, effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 20 } else { 400 };
    let mut rounds = Pairs::new();
    for seed in 0..effort.rounds(5) {
        let times = measure(driftline, seed as u64, posts)?;
        rounds.0.push(times.map(Times::of));
    }
    let mut table = Table::new(
        format!(
            "tail: {posts} posts, about {POSTS_PER_S} a second, by `driftline serve` with a database file; from the answer that shows a post to the client, the commit included"
        ),
        "client | p50, ms | p99, ms | p50 < 20 ms",
    );
    for (way, name) in ["driftline --json tail", PATH].iter().enumerate() {
        let (p50, p99) = (rounds.of(way, |t| t.p50, 1), rounds.of(way, |t| t.p99, 1));
        let is_met = met(rounds.0.iter().all(|round| round[way].p50 < 20.0));
        table.row(format!("{name} | {p50} | {p99} | {is_met}"));
    }
    table.print();
    Ok(())
}

/// Of each post, for the program and for the client.
fn measure(program: &Driftline, seed: u64, posts: usize) -> Result<[Vec<Duration>; 2], Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let config = ServerConfig {
        world: WorldConfig::punctual(POSTS_PER_S),
        ..ServerConfig::default()
    };
    let upstream = runtime.block_on(SimServer::start(config, seed, Clock::Real))?;
    let folder = tempfile::tempdir_in(disk())?;
    let driftline = |arguments: &[&str]| {
        let mut command = program.command(folder.path(), &["--json"]);
        command.args(arguments);
        command
    };
    let serve = ["serve", "--listen", "127.0.0.1:0", "--allow-private"];
    let mut server = Process::start(&mut driftline(&serve))?;
    let listening: Value = serde_json::from_str(&server.line()?)?;
    let address = listening["listening"].as_str().unwrap_or_default();
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    let url = upstream.url();
    let add = ["source", "add", &url, "--name", "sim", "--every", "100ms"];
    process::run(driftline(&add).stdout(Stdio::null()))?;
    let mut events = Connection::open(address.parse()?)?;
    let token = std::fs::read_to_string(folder.path().join("operator.token"))?;
    events.send(&format!("GET {PATH}"), Some(token.trim()), "")?;
    events.answers.get_ref().set_read_timeout(Some(LIMIT))?;
    let mut tail = Process::start(&mut driftline(&["tail"]))?;
    // Reads of a pipe have no time limit: its end is waited for here.
    let (told, of_tail) = mpsc::channel();
    thread::spawn(move || {
        let read = delays(&mut tail.output, posts);
        drop(tail);
        let _ = told.send(read);
    });
    let of_events = delays(events.answers, posts)?;
    let of_tail = of_tail.recv_timeout(LIMIT)??;
    Ok([of_tail, of_events])
}

/// The times between the answers with the posts of so many lines and the arrival of these lines.
fn delays(lines: impl BufRead, posts: usize) -> Result<Vec<Duration>, Failure> {
    let mut delays = Vec::with_capacity(posts);
    for line in lines.lines() {
        let line = line?;
        let now = Timestamp::now();
        let data = line.strip_prefix("data:").unwrap_or(&line);
        let post = serde_json::from_str::<Value>(data).unwrap_or_default();
        let Some(arrived_at_ms) = post["post"]["arrived_at_ms"].as_i64() else {
            continue;
        };
        let arrived = Timestamp::from_millisecond(arrived_at_ms)?;
        let delay = now.duration_since(arrived);
        delays.push(Duration::try_from(delay).unwrap_or_default());
        if delays.len() == posts {
            return Ok(delays);
        }
    }
    Err(Failure::new("the posts end early"))
}

const PATH: &str = "/api/v1/stream/posts";
const POSTS_PER_S: f64 = 20.0;
const LIMIT: Duration = Duration::from_secs(120);
