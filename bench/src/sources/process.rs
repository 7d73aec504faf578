//! A process of this program that polls, and what the system says about it.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{self, ChildStdout, Command, Stdio},
    time::Duration,
};

use super::child::Kind;
use crate::{cpu, failure::Failure};

/// A process that polls until its standard input ends.
pub(super) struct Child {
    process: process::Child,
    says: BufReader<ChildStdout>,
}

/// Resident memory, kB.
pub(super) struct Memory {
    pub(super) resident_kb: f64,
    pub(super) peak_kb: f64,
}

impl Child {
    /// Starts it and waits until it polls.
    pub(super) fn start(kind: Kind, url: &str, sources: u16) -> Result<Self, Failure> {
        let mut process = Command::new(env::current_exe()?)
            .args(["poll-sources", kind.name(), url, &sources.to_string()])
            .env(super::child::TOKEN_VARIABLE, "bench")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let says = process.stdout.take();
        let says = says.ok_or_else(|| Failure::new("the process says nothing"))?;
        let mut child = Self {
            process,
            says: BufReader::new(says),
        };
        match child.line()?.as_str() {
            "ready" => Ok(child),
            other => Err(Failure::new(format!(
                "the process says {other:?}, not that it is ready"
            ))),
        }
    }

    /// Ends it; how many posts it took.
    pub(super) fn stop(mut self) -> Result<u64, Failure> {
        drop(self.process.stdin.take());
        let posts = self.line()?;
        self.process.wait()?;
        Ok(posts.parse()?)
    }

    /// The processor time that it has used.
    pub(super) fn cpu(&self) -> Result<Duration, Failure> {
        cpu::of_process(self.process.id())
    }

    /// Its memory now and at most.
    pub(super) fn memory(&self) -> Result<Memory, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let kb = |name: &str| -> Result<f64, Failure> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            number
                .and_then(|number| number.parse().ok())
                .ok_or_else(|| Failure::new(format!("/proc/PID/status has no {name}")))
        };
        Ok(Memory {
            resident_kb: kb("VmRSS:")?,
            peak_kb: kb("VmHWM:")?,
        })
    }

    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        self.says.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It has ended already unless something failed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
