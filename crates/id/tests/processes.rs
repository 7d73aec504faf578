//! Windows in files, between processes: killed, suspended, and fighting for a node.
//!
//! The other processes are this test program itself, with its role in an environment variable.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio, exit};

use driftline_id::clock::{Clock, SystemClock};
use driftline_id::file::{FileError, NodeFolder, ReservationFile};
use driftline_id::window::{Lease, LeaseStore, WindowConfig};
use driftline_id::{ClockPolicy, Generator, Layout, Node, Refusal};

const WINDOW_CONFIG: WindowConfig = WindowConfig {
    length_ms: 300,
    max_clock_skew_ms: 60_000,
};

#[test]
fn a_killed_process_and_its_successor_share_no_id_though_the_clock_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut made: Vec<u64> = Vec::new();
    for offset_us in [0, -400_000, -200_000, -800_000] {
        let mut holder = Process::start("make", folder.path(), offset_us);
        let ids = 300 + made.len();
        while made.len() < ids {
            made.push(holder.line().expect("the holder goes on").parse().unwrap());
        }
        holder.child.kill().unwrap();
        while let Some(line) = holder.line() {
            // The last line may be cut off by the kill.
            made.extend(line.parse::<u64>().ok().filter(|&id| id > 1 << 60));
        }
        holder.child.wait().unwrap();
    }
    assert!(made.is_sorted_by(|a, b| a < b), "an ID came twice, or fell");

    let mut late = Process::start("make", folder.path(), -3_600_000_000);
    let refusal = late.line().unwrap();
    assert!(
        refusal.contains("may have been used") && refusal.contains("ms behind"),
        "{refusal}"
    );
    late.end();
}

#[test]
fn two_processes_never_share_a_node() {
    let folder = tempfile::tempdir().unwrap();
    let mut rivals: Vec<Process> = (0..4)
        .map(|_| Process::start("hold", folder.path(), 0))
        .collect();
    let answers: Vec<String> = rivals
        .iter_mut()
        .map(|rival| rival.line().unwrap())
        .collect();
    let is_held = |answer: &&String| answer.starts_with("held");
    assert_eq!(answers.iter().filter(is_held).count(), 1, "{answers:?}");
    let winner = answers
        .iter()
        .position(|answer| answer.starts_with("held"))
        .unwrap();
    let until_us = |answer: &str| -> i64 { answer.rsplit(' ').next().unwrap().parse().unwrap() };
    let from_us = |answer: &str| -> i64 { answer.split(' ').nth(1).unwrap().parse().unwrap() };

    rivals[winner].child.kill().unwrap();
    rivals[winner].child.wait().unwrap();
    let mut next = Process::start("hold", folder.path(), -100_000);
    let answer = next.line().unwrap();
    assert!(
        from_us(&answer) >= until_us(&answers[winner]),
        "{answer} after {answers:?}"
    );
    rivals.push(next);
    rivals.into_iter().for_each(Process::end);
}

#[test]
fn processes_of_one_folder_get_nodes_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let mut holders: Vec<Process> = (0..3)
        .map(|_| Process::start("lease", folder.path(), 0))
        .collect();
    let mut nodes: Vec<String> = holders.iter_mut().map(|h| h.line().unwrap()).collect();
    nodes.sort();
    assert_eq!(nodes, ["0", "1", "2"]);
    let freed = holders.pop().unwrap();
    freed.end();
    holders.push(Process::start("lease", folder.path(), 0));
    let mut held: Vec<String> = nodes;
    held.extend(holders.last_mut().unwrap().line());
    held.sort();
    held.dedup();
    assert_eq!(held.len(), 3, "a dead process's node is free again");
    holders.into_iter().for_each(Process::end);
}

#[test]
fn a_process_suspended_past_its_window_can_only_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = Process::start("suspend", folder.path(), 0);
    let until_us: i64 = holder.line().unwrap().parse().unwrap();
    holder.signal("STOP");
    // The clock goes past the window without the holder.
    while SystemClock.now_us() <= until_us + 20_000 {
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    let node = Node::new(&Layout::TWITTER, 5).unwrap();
    let open = || ReservationFile::open(folder.path(), node, WINDOW_CONFIG, SystemClock.now_us());
    assert!(
        matches!(open(), Err(FileError::Held { .. })),
        "suspended, it still holds the node"
    );
    holder.signal("CONT");
    let last: u64 = holder.line().unwrap().parse().unwrap();
    assert!(Layout::TWITTER.time_us(last.into()) < until_us);
    holder.end();
    let (_held, window) = open().unwrap();
    assert!(window.from_us() >= until_us);
}

/// Not a test: what the processes above do, when they are asked to.
#[test]
fn role() {
    let Ok(role) = env::var("DRIFTLINE_ID_ROLE") else {
        return;
    };
    let folder = env::var_os("DRIFTLINE_ID_FOLDER").unwrap();
    let clock = Offset(env::var("DRIFTLINE_ID_OFFSET_US").unwrap().parse().unwrap());
    let done = play(&role, Path::new(&folder), clock);
    exit(i32::from(done.is_err()));
}

fn play(role: &str, folder: &Path, clock: Offset) -> std::io::Result<()> {
    let node = Node::new(&Layout::TWITTER, 5).unwrap();
    let open = || ReservationFile::open(folder, node, WINDOW_CONFIG, clock.fresh_us());
    match role {
        "make" => match open() {
            Err(error) => say(&error.to_string()),
            Ok((mut held, window)) => {
                let policy = ClockPolicy::Wait { at_most_ms: 20_000 };
                let mut ids = Generator::new(window, clock, policy).unwrap();
                loop {
                    held.renew(clock.fresh_us()).unwrap();
                    say(&ids.next_id().unwrap().to_string())?;
                }
            }
        },
        "hold" => match open() {
            Ok((_held, window)) => {
                say(&format!("held {} {}", window.from_us(), window.until_us()))?;
                wait_for_end()
            }
            Err(FileError::Held { .. }) => say("busy"),
            Err(other) => say(&other.to_string()),
        },
        "lease" => {
            let nodes = NodeFolder::new(folder, Layout::TWITTER, WINDOW_CONFIG);
            let (lease, _window) = nodes.acquire(clock.fresh_us()).unwrap();
            say(&lease.node().number().to_string())?;
            wait_for_end()
        }
        "suspend" => {
            let (_held, window) = open().unwrap();
            let until_us = window.until_us();
            let mut ids = Generator::new(window, clock, ClockPolicy::Refuse).unwrap();
            let mut last = ids.next_id().unwrap_or(0);
            say(&until_us.to_string())?;
            // As fast as it can: one call of these is the one that was stopped.
            let refusal = loop {
                match ids.next_id() {
                    Ok(id) => last = last.max(id),
                    Err(refusal) => break refusal,
                }
                assert!(clock.now_us() < until_us + 30_000_000, "no end of IDs");
            };
            assert_eq!(refusal, Refusal::WindowEnded { until_us });
            say(&last.to_string())?;
            wait_for_end()
        }
        other => panic!("no role {other}"),
    }
}

/// Lines for the test begin with a mark, as the test harness writes too.
fn say(line: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "\n{MARK}{line}")?;
    out.flush()
}

/// Until the test closes the other end.
fn wait_for_end() -> std::io::Result<()> {
    std::io::stdin().lines().try_for_each(|line| line.map(drop))
}

struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Process {
    fn start(role: &str, folder: &Path, offset_us: i64) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "role", "--nocapture"])
            .env("DRIFTLINE_ID_ROLE", role)
            .env("DRIFTLINE_ID_FOLDER", folder)
            .env("DRIFTLINE_ID_OFFSET_US", offset_us.to_string())
            .stdin(Stdio::piped())
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

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let kill = Command::new("kill")
            .args([&format!("-{name}"), &id])
            .status();
        assert!(kill.unwrap().success());
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
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
