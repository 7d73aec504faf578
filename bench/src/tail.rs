//! `tail`: from an answer of an upstream to the line that the program prints of its post, next to a client
//! of the same server's events.

use std::{
    io::{BufRead, BufReader, Write as _},
    net::TcpStream,
    process::Stdio,
    sync::mpsc,
    thread,
    time::Duration,
};

use driftline_sim::{
    WorldConfig,
    http::{Clock, ServerConfig, SimServer},
};
use jiff::Timestamp;
use serde::Deserialize;

use crate::{
    Effort,
    failure::Failure,
    process::{self, Driftline, Process, disk},
    rounds::{Spread, Times},
    table::{Table, met},
};

/// Measures both ways in the same rounds.
pub(crate) fn run(driftline: &Driftline, effort: Effort) -> Result<(), Failure> {
    let posts = if effort.quick { 20 } else { 400 };
    let mut ways = [Way::new("driftline --json tail"), Way::new(PATH)];
    for seed in 0..effort.rounds(5) {
        for (way, times) in ways.iter_mut().zip(measure(driftline, seed as u64, posts)?) {
            let times = Times::of(times);
            way.p50_ms.push(times.p50);
            way.p99_ms.push(times.p99);
        }
    }
    let mut table = Table::new(
        format!(
            "tail: {posts} posts, about {POSTS_PER_S} a second, by `driftline serve` with a database file; from the answer that shows a post to the client, the commit included"
        ),
        ["client", "p50, ms", "p99, ms", "p50 < 20 ms"],
    );
    for way in ways {
        table.row([
            way.name.to_owned(),
            Spread::of(way.p50_ms.iter().copied(), 1).to_string(),
            Spread::of(way.p99_ms.iter().copied(), 1).to_string(),
            met(way.p50_ms.iter().all(|ms| *ms < 20.0)),
        ]);
    }
    table.print();
    Ok(())
}

struct Way {
    name: &'static str,
    p50_ms: Vec<f64>,
    p99_ms: Vec<f64>,
}

impl Way {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            p50_ms: Vec::new(),
            p99_ms: Vec::new(),
        }
    }
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
    let Listening { listening } = serde_json::from_str(&server.line()?)?;
    let url = upstream.url();
    let add = ["source", "add", &url, "--name", "sim", "--every", "100ms"];
    process::run(driftline(&add).stdout(Stdio::null()))?;
    let address = listening
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let mut events = TcpStream::connect(address)?;
    let token = std::fs::read_to_string(folder.path().join("operator.token"))?;
    let token = token.trim();
    write!(
        events,
        "GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    )?;
    events.set_read_timeout(Some(LIMIT))?;
    let mut tail = Process::start(&mut driftline(&["tail"]))?;
    // Reads of a pipe have no time limit: its end is waited for here.
    let (told, of_tail) = mpsc::channel();
    thread::spawn(move || {
        let read = delays(&mut tail.output, posts);
        drop(tail);
        let _ = told.send(read);
    });
    let of_events = delays(BufReader::new(events), posts)?;
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
        let Ok(told) = serde_json::from_str::<Told>(data) else {
            continue;
        };
        let arrived = Timestamp::from_millisecond(told.post.arrived_at_ms)?;
        let delay = now.duration_since(arrived);
        delays.push(Duration::try_from(delay).unwrap_or_default());
        if delays.len() == posts {
            return Ok(delays);
        }
    }
    Err(Failure::new("the posts end early"))
}

#[derive(Deserialize)]
struct Listening {
    listening: String,
}

#[derive(Deserialize)]
struct Told {
    post: Post,
}

#[derive(Deserialize)]
struct Post {
    arrived_at_ms: i64,
}

const PATH: &str = "/api/v1/stream/posts";
const POSTS_PER_S: f64 = 20.0;
const LIMIT: Duration = Duration::from_secs(120);
