use std::{
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use driftline_server::admin::FeedLine;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncWriteExt as _,
    process::{Child, Command},
    sync::watch,
    time::{sleep, timeout},
};

use super::line;
use crate::{duration::show_ms, error::CliError};

/// A command that is run for each event.
#[derive(Debug)]
pub struct PostCommand {
    /// The text for the shell.
    pub text: String,
    /// How long it may take.
    pub timeout: Duration,
    /// How often it is run if it fails.
    pub tries: u32,
    /// True once the shell has found the command.
    pub is_found: bool,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ran {
    /// With the status 0.
    Well,
    /// It failed at every try, the last time so.
    Failed(String),
    /// It was not tried again, since the process is to end.
    Stopped,
}

impl PostCommand {
    /// Runs it for an event, until it ends well or was tried often enough.
    ///
    /// # Errors
    /// [`CliError`] if there is no shell, or if the shell finds no command that it may run: the first time alone, since
    /// a command may be away for a moment while it is replaced.
    pub async fn run(
        &mut self,
        line: &FeedLine,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<Ran, CliError> {
        let mut wait = FIRST_WAIT;
        for left in (0..self.tries).rev() {
            let Err(why) = self.try_once(line).await? else {
                return Ok(Ran::Well);
            };
            if left == 0 {
                return Ok(Ran::Failed(why));
            }
            tokio::select! {
                () = sleep(wait) => wait = (wait * 2).min(MAX_WAIT),
                _ = stop.wait_for(|stop| *stop) => return Ok(Ran::Stopped),
            }
        }
        Ok(Ran::Stopped)
    }

    /// Returns how it failed, if it did.
    async fn try_once(&mut self, line: &FeedLine) -> Result<Result<(), String>, CliError> {
        // A group of its own: Ctrl-C ends this process after the command, and not the command; and
        // what it started ends with it.
        let spawned = Command::new("sh")
            .arg("-c")
            .arg(&self.text)
            .env("DRIFTLINE_EVENT", line.event.name())
            .env("DRIFTLINE_EVENT_ID", &line.position)
            .env("DRIFTLINE_SOURCE", &line.source)
            .stdin(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let mut child =
            spawned.map_err(|error| CliError::failed(format!("`sh` cannot be run: {error}")))?;
        let group = child.id();
        let outcome = match timeout(self.timeout, feed(&mut child, line::json(line))).await {
            Ok(Ok(status)) if status.success() => {
                self.is_found = true;
                return Ok(Ok(()));
            }
            Ok(Ok(status)) if !self.is_found && is_not_run(status) => {
                return Err(CliError::failed(format!(
                    "the command {:?} cannot be run ({status}): does it exist, and is it executable?",
                    self.text
                )));
            }
            Ok(Ok(status)) => {
                self.is_found = true;
                status.to_string()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                self.is_found = true;
                let limit = i64::try_from(self.timeout.as_millis()).unwrap_or(i64::MAX);
                format!("it took longer than {}", show_ms(limit))
            }
        };
        kill(group);
        let _ = child.wait().await;
        Ok(Err(outcome))
    }
}

/// Returns whether the shell did not find the command, or may not execute it
/// (<https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html#tag_19_08_02>).
fn is_not_run(status: ExitStatus) -> bool {
    matches!(status.code(), Some(126 | 127))
}

/// Gives it its input and waits for its end.
async fn feed(child: &mut Child, input: String) -> io::Result<ExitStatus> {
    if let Some(mut stdin) = child.stdin.take() {
        let written = stdin.write_all(format!("{input}\n").as_bytes()).await;
        // It need not read.
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            return Err(error);
        }
    }
    child.wait().await
}

/// Kills what is left of a command's group.
fn kill(group: Option<u32>) {
    let group = group.and_then(|id| i32::try_from(id).ok());
    if let Some(group) = group.and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(60);
