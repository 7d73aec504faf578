//! PostgreSQL's own programs.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::DbError;

/// A program of PostgreSQL that was found, with a suitable version.
pub(super) struct Program {
    name: &'static str,
    path: PathBuf,
}

/// A running program. Dropping it kills the program.
pub(super) struct Running {
    name: &'static str,
    child: Child,
    messages: Option<JoinHandle<String>>,
}

impl Program {
    /// Finds a program of at least the given major version, on the `PATH` or in Debian's folders.
    ///
    /// # Errors
    /// [`DbError::Open`], which says what to install.
    pub(super) fn find(name: &'static str, at_least: u32) -> Result<Program, DbError> {
        let mut newest = None;
        for path in candidates(name) {
            let Some(version) = version(&path) else {
                continue;
            };
            if version >= at_least {
                return Ok(Program { name, path });
            }
            newest = newest.max(Some(version));
        }
        let install = match at_least {
            0 => "install PostgreSQL's client programs (postgresql-client)".to_owned(),
            version => format!(
                "install PostgreSQL's client programs of version {version} or newer \
                 (postgresql-client-{version})"
            ),
        };
        Err(DbError::Open(match newest {
            None => format!("{name} is not installed: {install}"),
            Some(found) => format!(
                "{name} is of version {found}, and the server of version {at_least}, which it cannot \
                 read: {install}"
            ),
        }))
    }

    /// Starts the program; `input` is its standard input.
    pub(super) fn start(
        &self,
        arguments: &[OsString],
        environment: &[(&'static str, OsString)],
        input: &[u8],
    ) -> Result<(Running, ChildStdout), DbError> {
        let failed = |error: io::Error| {
            DbError::Other(format!(
                "{} cannot be started: {error}",
                self.path.display()
            ))
        };
        let mut command = Command::new(&self.path);
        // Other variables could also name a server.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") && !environment.is_empty() {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C is for this process, which then ends the program.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (out, err, stdin) = (child.stdout.take(), child.stderr.take(), child.stdin.take());
        let messages = thread::spawn(move || {
            let mut text = String::new();
            let _ = err.map(|mut err| err.read_to_string(&mut text));
            text
        });
        let running = Running {
            name: self.name,
            child,
            messages: Some(messages),
        };
        let Some(out) = out else {
            return Err(DbError::Other(format!("{} has no output", self.name)));
        };
        if let Some(mut stdin) = stdin {
            // The program may have ended already. Its message then has the reason.
            let _ = stdin.write_all(input);
        }
        Ok((running, out))
    }
}

impl Running {
    /// Waits for the program's end, and calls `go_on` meanwhile.
    ///
    /// # Errors
    /// The error of `go_on`, after which the program is killed; otherwise as [`Running::end`].
    pub(super) fn end_while(
        mut self,
        mut go_on: impl FnMut() -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let name = self.name;
        let failed = |error: io::Error| DbError::Other(format!("{name}: {error}"));
        while self.child.try_wait().map_err(failed)?.is_none() {
            go_on()?;
            thread::sleep(LOOK_EVERY);
        }
        self.end()
    }

    /// Waits for the program's end.
    ///
    /// # Errors
    /// [`DbError::Other`] with the program's own message if it failed.
    pub(super) fn end(mut self) -> Result<(), DbError> {
        let name = self.name;
        let status = self.child.wait();
        let status = status.map_err(|error| DbError::Other(format!("{name}: {error}")))?;
        let messages = self
            .messages
            .take()
            .and_then(|messages| messages.join().ok());
        match status.success() {
            true => Ok(()),
            false => Err(DbError::Other(message(name, &messages.unwrap_or_default()))),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.messages.is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The first error that a program printed.
fn message(name: &str, printed: &str) -> String {
    let mut lines = printed.lines().filter(|line| !line.trim().is_empty());
    let error = lines.clone().find(|line| line.contains("error:"));
    let line = error.or_else(|| lines.next()).unwrap_or("failed");
    let line = line.strip_prefix(name).unwrap_or(line);
    format!("{name}: {}", line.trim_start_matches(':').trim())
}

fn candidates(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file())
        .collect();
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(DEBIAN)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin").join(name)))
        })
        .filter(|(_, path)| path.is_file())
        .collect();
    versions.sort();
    found.extend(versions.into_iter().rev().map(|(_, path)| path));
    found
}

/// The major version in `pg_dump (PostgreSQL) 15.14 (Debian 15.14-0)`.
fn version(path: &Path) -> Option<u32> {
    let output = Command::new(path).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let number = text.split_once("(PostgreSQL) ")?.1;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
const DEBIAN: &str = "/usr/lib/postgresql";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_or_too_old_says_what_to_install() {
        let refused = |name, version| Program::find(name, version).map(|_| ()).unwrap_err();
        let missing = refused("pg_nothing", 15).to_string();
        assert!(missing.contains("pg_nothing is not installed"), "{missing}");
        assert!(missing.contains("postgresql-client-15"), "{missing}");
        let old = refused("pg_dump", 999).to_string();
        assert!(old.contains("server of version 999"), "{old}");
        assert!(old.contains("postgresql-client-999"), "{old}");
    }

    #[test]
    fn the_first_error_is_the_message() {
        let printed = "pg_dump: warning: x\npg_dump: error: no room\npg_dump: hint: y\n";
        assert_eq!(message("pg_dump", printed), "pg_dump: error: no room");
        assert_eq!(message("pg_dump", ""), "pg_dump: failed");
    }
}
