//! The servers, as processes of their own.

use std::{
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;
use tempfile::TempDir;

use crate::{
    failure::Failure,
    process::{Driftline, Process},
};

/// Redis, which keeps nothing.
pub(super) struct RedisServer {
    pub(super) address: SocketAddr,
    pub(super) process: Process,
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
            .stdin(Stdio::null());
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
    pub(super) process: Process,
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
    pub(super) fn start(driftline: &Driftline) -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        let mut command = driftline.command(data.path(), &["--json"]);
        command.args(["id", "serve", "--layout", "twitter", "--node", "0"]);
        for listen in ["--listen-thrift", "--listen-http"] {
            command.args([listen, "127.0.0.1:0"]);
        }
        let mut process = Process::start(&mut command)?;
        let ready: Ready = serde_json::from_str(&process.line()?)?;
        let http = ready
            .http
            .trim_start_matches("http://")
            .trim_end_matches('/');
        Ok(Self {
            thrift: ready.thrift.parse()?,
            http: http.parse()?,
            process,
            _data: data,
        })
    }

    /// Its version.
    pub(super) fn version(driftline: &Driftline) -> Result<String, Failure> {
        Ok(said(Command::new(&driftline.path).arg("--version"))?
            .trim()
            .to_owned())
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
