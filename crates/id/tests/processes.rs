//! Windows in files, between processes that are killed and fight for a node.
//!
//! The other processes are this test program itself, with their folder in an environment variable.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio, exit};

use driftline_id::clock::{Clock, SystemClock};
use driftline_id::file::ReservationFile;
use driftline_id::window::{Lease, WindowConfig};
use driftline_id::{ClockPolicy, Generator, Layout, Node};

const WINDOW_CONFIG: WindowConfig = WindowConfig {
    length_ms: 300,
    max_clock_skew_ms: 60_000,
};

#[test]
fn processes_of_one_node_share_no_id_though_they_are_killed_and_the_clock_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut made: Vec<u64> = Vec::new();
    for offset_us in [0, -400_000, -200_000, -800_000] {
        let mut holder = Process::start(folder.path(), offset_us);
        let ids = 300 + made.len();
        while made.len() < ids {
            made.push(holder.line().expect("the holder goes on").parse().unwrap());
        }
        let mut rival = Process::start(folder.path(), offset_us);
        let refusal = rival.line().unwrap();
        assert!(refusal.contains("held by another process"), "{refusal}");
        holder.child.kill().unwrap();
        while let Some(line) = holder.line() {
            // The last line may be cut off by the kill.
            made.extend(line.parse::<u64>().ok().filter(|&id| id > 1 << 60));
        }
    }
    assert!(made.is_sorted_by(|a, b| a < b), "an ID came twice, or fell");

    let mut late = Process::start(folder.path(), -3_600_000_000);
    let refusal = late.line().unwrap();
    assert!(
        refusal.contains("may have been used") && refusal.contains("ms behind"),
        "{refusal}"
    );
}

/// Not a test: what the processes above do, when they are asked to.
#[test]
fn role() {
    let Some(folder) = env::var_os("DRIFTLINE_ID_FOLDER") else {
        return;
    };
    let clock = Offset(env::var("DRIFTLINE_ID_OFFSET_US").unwrap().parse().unwrap());
    let done = play(Path::new(&folder), clock);
    exit(i32::from(done.is_err()));
}

fn play(folder: &Path, clock: Offset) -> std::io::Result<()> {
    let node = Node::new(&Layout::TWITTER, 5).unwrap();
    let opened = ReservationFile::open(folder, node, WINDOW_CONFIG, clock.fresh_us());
    let (mut held, window) = match opened {
        Ok(opened) => opened,
        Err(error) => return say(&error.to_string()),
    };
    let policy = ClockPolicy::Wait { at_most_ms: 20_000 };
    let mut ids = Generator::new(window, clock, policy).unwrap();
    loop {
        held.renew(clock.fresh_us()).unwrap();
        say(&ids.next_id().unwrap().to_string())?;
    }
}

/// Lines for the test begin with a mark, as the test harness writes too.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "\n{MARK}{line}")?;
    out.flush()
}

struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    fn start(folder: &Path, offset_us: i64) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "role", "--nocapture"])
            .env("DRIFTLINE_ID_FOLDER", folder)
            .env("DRIFTLINE_ID_OFFSET_US", offset_us.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line that was said; `None` at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some(said) = line.trim_end().strip_prefix(MARK) {
                return Some(said.to_string());
            }
            line.clear();
        }
        None
    }
}

/// A process that the test has forgotten, as when it fails, is not left behind.
impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The system's time, set wrong by so many µs.
#[derive(Clone, Copy)]
struct Offset(i64);

impl Clock for Offset {
    fn now_us(&self) -> i64 {
        SystemClock.now_us() + self.0
    }
}

const MARK: &str = "> ";
