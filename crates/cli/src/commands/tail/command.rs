use std::{io, process::Stdio, time::Duration};

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
    /// [`CliError`] if there is no shell.
    pub async fn run(
        &self,
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
    async fn try_once(&self, line: &FeedLine) -> Result<Result<(), String>, CliError> {
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
            Ok(Ok(status)) if status.success() => return Ok(Ok(())),
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                let limit = i64::try_from(self.timeout.as_millis()).unwrap_or(i64::MAX);
                format!("it took longer than {}", show_ms(limit))
            }
        };
        kill(group);
        let _ = child.wait().await;
        Ok(Err(outcome))
    }
}

/// Gives it its input and waits for its end.
async fn feed(child: &mut Child, input: String) -> io::Result<std::process::ExitStatus> {
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
