//! The servers, as processes of their own.

use std::{
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tempfile::TempDir;

use crate::failure::Failure;

/// Redis, which keeps nothing.
pub(super) struct RedisServer {
    pub(super) address: SocketAddr,
    process: Process,
}

impl RedisServer {
    /// Starts it and waits until it listens.
    pub(super) fn start() -> Result<Self, Failure> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut command = Command::new("redis-server");
        command
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = Process::start(&mut command)?;
        let begun = Instant::now();
        while let Err(error) = TcpStream::connect(address) {
            if begun.elapsed() > TIMEOUT {
                return Err(error.into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { address, process })
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// What Redis's own tool measures, with so many requests at once.
    pub(super) fn own_figure(&self, depth: usize, requests: u32) -> Result<String, Failure> {
        let (port, depth) = (self.address.port().to_string(), depth.to_string());
        let said = said(
            Command::new("redis-benchmark")
                .args(["-p", &port, "-t", "incr", "-c", "50", "-q", "-P", &depth])
                .args(["-n", &requests.to_string()]),
        )?;
        // It overwrites a line with its progress.
        let last = said
            .split(['\r', '\n'])
            .rfind(|line| line.contains("per second"));
        let last = last.map(str::trim).map(str::to_owned);
        last.ok_or_else(|| Failure::new(format!("redis-benchmark says {said:?}")))
    }

    /// Its version.
    pub(super) fn version() -> Result<String, Failure> {
        let said = said(Command::new("redis-server").arg("--version"))?;
        let version = said
            .split_whitespace()
            .find_map(|word| word.strip_prefix("v="));
        Ok(version.unwrap_or("?").to_owned())
    }
}

/// Driftline's ID service.
pub(super) struct IdServer {
    pub(super) thrift: SocketAddr,
    pub(super) http: SocketAddr,
    process: Process,
    /// Its standard output, which it may write to again.
    _says: BufReader<ChildStdout>,
    _data: TempDir,
}

/// What the service says once it is ready.
#[derive(Deserialize)]
struct Ready {
    thrift: String,
    http: String,
}

impl IdServer {
    /// Starts it and waits until it is ready.
    pub(super) fn start(program: &Path) -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        let mut command = Command::new(program);
        command
            .arg("--json")
            .arg("--data")
            .arg(data.path())
            .args(["id", "serve", "--layout", "twitter", "--node", "0"])
            .args([
                "--listen-thrift",
                "127.0.0.1:0",
                "--listen-http",
                "127.0.0.1:0",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = Process::start(&mut command)?;
        let says = process.0.stdout.take();
        let says = says.ok_or_else(|| Failure::new("the service says nothing"))?;
        let mut line = String::new();
        let mut says = BufReader::new(says);
        says.read_line(&mut line)?;
        let ready: Ready = serde_json::from_str(&line).map_err(|error| {
            let program = program.display();
            Failure::new(format!(
                "{program} does not say that it is ready: {line:?}, {error}"
            ))
        })?;
        let http = ready
            .http
            .trim_start_matches("http://")
            .trim_end_matches('/');
        Ok(Self {
            thrift: ready.thrift.parse()?,
            http: http.parse()?,
            process,
            _says: says,
            _data: data,
        })
    }

    /// Its process.
    pub(super) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Its version.
    pub(super) fn version(program: &Path) -> Result<String, Failure> {
        Ok(said(Command::new(program).arg("--version"))?
            .trim()
            .to_owned())
    }
}

/// A process that ends with this value.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Result<Self, Failure> {
        let child = command.spawn().map_err(|error| {
            let program = command.get_program().display();
            Failure::new(format!("{program} could not be started: {error}"))
        })?;
        Ok(Self(child))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program's standard output, if it succeeds.
fn said(command: &mut Command) -> Result<String, Failure> {
    let program = command.get_program().display().to_string();
    let output = command
        .output()
        .map_err(|error| Failure::new(format!("{program} could not be started: {error}")))?;
    if !output.status.success() {
        let status = output.status;
        return Err(Failure::new(format!("{program} failed ({status})")));
    }
    Ok(String::from_utf8(output.stdout)?)
}

const TIMEOUT: Duration = Duration::from_secs(10);
