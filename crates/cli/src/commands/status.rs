//! `status`: how the mirror is, on one screen.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use driftline_server::admin::{MirrorStatus, ShowStatus};
use rustix::{fs::statvfs, termios::tcgetwinsize};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{
    config::Config,
    data_dir::DataDir,
    error::CliError,
    output,
    shown::{self, Overview, Room, StoreOverview},
    socket::Client,
    stop,
    store_access::{Missing, once, same_database},
};

/// Shows how the mirror is: sources, refreshing, quotas, IDs, the store and the process.
#[derive(Debug, Args)]
pub struct Status {
    /// Go on until Ctrl-C: every 2 s on a terminal; elsewhere every 10 s, one block after another.
    #[arg(long)]
    watch: bool,
}

impl Status {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let mut look = Look::new(config)?;
        if self.watch {
            let stop = stop::on_signal()?;
            return watch(&mut look, json, stop).await;
        }
        let overview = look.now().await?;
        let room = Room {
            rows: None,
            ..room()
        };
        output::reply(json, &overview, |of| shown::status(of, room))
    }
}

/// Looks again and again, until the signal.
async fn watch(
    look: &mut Look<'_>,
    json: bool,
    mut stop: watch::Receiver<bool>,
) -> Result<(), CliError> {
    let redraws = !json && io::stdout().is_terminal();
    let every = if redraws { REDRAWN } else { PRINTED };
    let mut is_first = true;
    while !*stop.borrow() {
        let looked = tokio::select! {
            looked = look.now() => looked,
            _ = stop.changed() => break,
        };
        let lines = match looked {
            // A server that is started again, or a database that is away for a while, is no end.
            Err(error @ CliError::Failed(_)) if !is_first => vec![error.to_string()],
            Err(error) => return Err(error),
            Ok(overview) if json => {
                output::json(&overview)?;
                Vec::new()
            }
            Ok(overview) => shown::status(&overview, room()),
        };
        if redraws {
            print(&frame(&lines, is_first))?;
        } else if json {
            lines.iter().for_each(|line| output::note(line));
        } else {
            let gap = if is_first { "" } else { "\n" };
            print(&format!("{gap}{}\n", lines.join("\n")))?;
        }
        is_first = false;
        tokio::select! {
            () = sleep(every) => {}
            _ = stop.changed() => {}
        }
    }
    if redraws {
        print("\n")?;
    }
    Ok(())
}

/// What draws a screen over the last one in one write: each line is cleared behind its text alone,
/// so that nothing flickers.
fn frame(lines: &[String], is_first: bool) -> String {
    let start = if is_first { CLEARED } else { "" };
    let lines = lines.join(&format!("{LINE_END}\r\n"));
    format!("{start}{HOME}{lines}{LINE_END}{SCREEN_END}")
}

fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| output::broken(&error))
}

/// The room of the terminal, of which the last column stays free: what clears behind a text there
/// would take its last character.
fn room() -> Room {
    let size = tcgetwinsize(io::stdout()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    match size {
        Some(size) if io::stdout().is_terminal() => Room {
            columns: usize::from(size.ws_col) - 1,
            rows: Some(usize::from(size.ws_row)),
        },
        _ => Room {
            columns: PIPE_COLUMNS,
            rows: None,
        },
    }
}

/// Looks at a mirror, through the process that holds its data folder or into the store.
struct Look<'c> {
    config: &'c Config,
    data_dir: DataDir,
    /// What the store alone showed, and when it was opened for that.
    stored: Option<(Instant, MirrorStatus)>,
}

impl<'c> Look<'c> {
    fn new(config: &'c Config) -> Result<Self, CliError> {
        let data_dir = DataDir::new(&config.store)?;
        Ok(Self {
            config,
            data_dir,
            stored: None,
        })
    }

    async fn now(&mut self) -> Result<Overview, CliError> {
        let mirror = self.mirror().await?;
        Ok(Overview {
            running: mirror.process.is_some(),
            store: self.store(mirror.postgresql_bytes),
            mirror,
        })
    }

    async fn mirror(&mut self) -> Result<MirrorStatus, CliError> {
        if let Ok(client) = Client::connect(&self.data_dir.socket()).await {
            same_database(&self.data_dir)?;
            self.stored = None;
            let mut client = client.acting_as(self.config.as_account.clone());
            return client.execute(ShowStatus).await;
        }
        // A server that starts meanwhile needs the folder's lock, so it is seldom held.
        if let Some((at, status)) = &self.stored
            && at.elapsed() < REOPENED
        {
            return Ok(status.clone());
        }
        let status = once(self.config, Missing::Refuse, ShowStatus).await?;
        if status.process.is_none() {
            self.stored = Some((Instant::now(), status.clone()));
        }
        Ok(status)
    }

    fn store(&self, postgresql_bytes: Option<u64>) -> StoreOverview {
        let file = self.data_dir.database_file();
        let disk = file.and_then(|_| statvfs(self.data_dir.data()).ok());
        let wal = file.map(|file| {
            let mut name = file.as_os_str().to_owned();
            name.push("-wal");
            PathBuf::from(name)
        });
        StoreOverview {
            database: self.data_dir.shown().to_owned(),
            bytes: file.map_or(postgresql_bytes, bytes),
            wal_bytes: wal.map(|wal| bytes(&wal).unwrap_or(0)),
            disk_free_bytes: disk
                .as_ref()
                .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
            disk_bytes: disk.map(|disk| disk.f_blocks.saturating_mul(disk.f_frsize)),
        }
    }
}

fn bytes(file: &Path) -> Option<u64> {
    Some(file.metadata().ok()?.len())
}

const REDRAWN: Duration = Duration::from_secs(2);
const PRINTED: Duration = Duration::from_secs(10);
/// How often the store is opened where nothing runs.
const REOPENED: Duration = Duration::from_secs(10);
const PIPE_COLUMNS: usize = 80;
const CLEARED: &str = "\x1b[2J";
const HOME: &str = "\x1b[H";
const LINE_END: &str = "\x1b[K";
const SCREEN_END: &str = "\x1b[J";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_begins_at_home_and_clears_what_it_does_not_cover() {
        let lines = ["one", "two"].map(str::to_owned);
        assert_eq!(frame(&lines, false), "\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J");
        assert!(frame(&lines, true).starts_with("\x1b[2J\x1b[H"));
    }
}
