//! A server under trial: its programs and its accounts.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::api::Api;
use crate::error::TaskError;

/// Where a server is built, and where it may keep its data.
pub(super) struct Setup<'a> {
    /// What `--at` names.
    pub(super) at: &'a Path,
    /// An empty folder.
    pub(super) folder: &'a Path,
    /// Where it is to listen, `127.0.0.1:PORT`.
    pub(super) address: &'a str,
    /// The name that it is to answer to.
    pub(super) host: &'a str,
    /// A database of its own if it needs PostgreSQL, else empty.
    pub(super) database_url: &'a str,
}

/// A server that is set up.
pub(super) struct Server {
    programs: Vec<Command>,
    running: Vec<Child>,
    /// Its API.
    pub(super) api: Api,
}

/// One who writes.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) name: &'static str,
    pub(super) id: String,
    pub(super) token: String,
}

impl Setup<'_> {
    /// A program of the server, its output in a file of that name.
    pub(super) fn program(&self, name: &str, program: &Path) -> Result<Command, TaskError> {
        let path = self.folder.join(format!("{name}.log"));
        let failed = |error| failed(&path, error);
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(failed)?;
        let mut command = Command::new("sh");
        command
            .args(["-c", KEEPER, "sh"])
            .arg(program)
            .current_dir(self.folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log);
        Ok(command)
    }

    /// The absolute path of a file of the built server.
    pub(super) fn built(&self, names: &[&str]) -> Result<PathBuf, TaskError> {
        let found = names.iter().map(|name| self.at.join(name));
        let path = found.into_iter().find(|path| path.exists());
        path.ok_or_else(|| {
            let (at, names) = (self.at.display(), names.join(" or "));
            TaskError::message(format!("{at} has no {names}: build the server there first"))
        })
    }

    /// Makes a folder in its own.
    pub(super) fn make_folder(&self, name: &str) -> Result<PathBuf, TaskError> {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).map_err(|error| failed(&path, error))?;
        Ok(path)
    }
}

impl Server {
    /// A server of these programs, which runs until it is dropped.
    pub(super) fn start(setup: &Setup<'_>, programs: Vec<Command>) -> Result<Server, TaskError> {
        let mut server = Server {
            programs,
            running: Vec::new(),
            api: Api::new(setup.address, setup.host),
        };
        server.start_again()?;
        Ok(server)
    }

    /// Starts its programs and waits until it answers.
    pub(super) fn start_again(&mut self) -> Result<(), TaskError> {
        for program in &mut self.programs {
            // A group of its own: what it starts ends with it.
            let started = program.process_group(0).spawn();
            self.running
                .push(started.map_err(|error| failed(Path::new("sh"), error))?);
        }
        let begun = Instant::now();
        loop {
            let answer = self.api.get("/api/v1/instance", None);
            let why = match answer {
                // Hollo has no instance before its first account.
                Ok(answer) if matches!(answer.status, 200 | 404) => return Ok(()),
                Ok(answer) => answer.text,
                Err(error) => error.to_string(),
            };
            if begun.elapsed() > START {
                let text = format!("the server does not answer: {why}");
                return Err(TaskError::message(text));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Ends its programs with SIGKILL.
    pub(super) fn kill(&mut self) {
        for mut child in self.running.drain(..) {
            signal("KILL", &format!("-{}", child.id()));
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An error about a file or a program.
pub(super) fn failed(what: &Path, error: io::Error) -> TaskError {
    TaskError::Program(what.display().to_string(), error)
}

/// Sends a signal to a process, or to a group (`-PID`).
pub(super) fn signal(name: &str, process: &str) {
    let mut kill = Command::new("kill");
    kill.args(["-s", name, "--", process]).stderr(Stdio::null());
    let _ = kill.status();
}

/// Runs a program to its end and gives what it printed.
pub(super) fn output(command: &mut Command) -> Result<String, TaskError> {
    let name = command.get_program().display().to_string();
    let output = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output();
    let output = output.map_err(|error| TaskError::Program(name.clone(), error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(TaskError::message(format!("{name} failed: {text}")))
}

/// An address on loopback that is free now.
pub(super) fn free_address() -> Result<String, TaskError> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let free = free.map_err(|error| failed(Path::new("a free port"), error))?;
    Ok(free.to_string())
}

/// Ends the program, and all that it started, when this program has ended in whatever way.
const KEEPER: &str = r#""$@" </dev/null & cat >/dev/null; kill -KILL -- "-$$""#;
/// The accounts' names.
pub(super) const NAMES: [&str; 3] = ["ada", "ben", "cleo"];
const START: Duration = Duration::from_secs(300);
