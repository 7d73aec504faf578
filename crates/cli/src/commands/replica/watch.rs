//! `replica watch`: syncs again and again.

use std::{path::Path, time::Duration};

use clap::Args;
use driftline_replica::{Backoff, Direction, Replica, ReplicaError, Retries, SyncReport};
use tokio::time::{Instant, sleep};

use super::{
    listener::Listener,
    pace::{MIN_PAUSE, Pace},
    round::{self, random},
};
use crate::{
    duration::{duration, parse_ms},
    error::CliError,
    output, stop,
};

/// Syncs again and again, until it is ended by Ctrl-C or SIGTERM.
///
/// It listens to the server, and syncs when something has changed there or here: at most once a second, and less often while
/// rounds bring nothing. If the server's stream of events cannot be read, or there are more than 200 subscriptions, it also syncs
/// after the time of --every. After the end of a stream, and while the server cannot be reached, it tries again after 1, 2, 4 …
/// 60 s. Other commands may work with the replica meanwhile. It never removes most of the replica: it ends with an error instead.
#[derive(Debug, Args)]
pub struct Watch {
    /// The time between two rounds without a stream of events, and between two looks for changes of this device, 1s or more;
    /// each wait is up to a quarter shorter or longer.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = interval)]
    every: Duration,
}

impl Watch {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] if trying again cannot help.
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        let mut stop = stop::on_first_signal()?;
        let mut backoff = Backoff::new();
        let mut random = random;
        let mut listener = Listener::default();
        let mut pace = Pace::new(self.every);
        let mut was_good = false;
        while !*stop.borrow() {
            let started = Instant::now();
            // A round that is dropped half-way has stored each chunk with its cursor.
            let outcome = tokio::select! {
                outcome = round(folder) => outcome,
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            };
            let waiting = async {
                match outcome {
                    Ok(report) => {
                        backoff.succeed();
                        was_good = true;
                        let earliest = started + pace.pause_after(report.has_changes());
                        if report.has_changes() {
                            output::reply(json, &report, round::lines)?;
                        }
                        if report.work.indexed >= MAX_INDEXED {
                            sleep(MIN_PAUSE).await;
                            return Ok(());
                        }
                        match listener.renew(folder).await {
                            Ok(()) => listener.wait(folder, self.every, earliest).await,
                            // The next round reports the error.
                            Err(_) => sleep(self.every).await,
                        }
                    }
                    // The server was there before, so an answer of something else in its place passes, too.
                    Err(error) if error.may_pass() || (was_good && error.may_be_of_proxy()) => {
                        let wait = backoff.fail(&mut random).max(error.asked_wait());
                        let wait = wait.max(MIN_PAUSE);
                        output::note(&format!(
                            "driftline: {error}; trying again in {:.1} s",
                            wait.as_secs_f64()
                        ));
                        sleep(wait).await;
                    }
                    Err(error) => return Err(error.into()),
                }
                Ok::<_, CliError>(())
            };
            tokio::select! {
                waited = waiting => waited?,
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
        Ok(())
    }
}

/// Opens the replica, syncs once, and closes it.
async fn round(folder: &Path) -> Result<SyncReport, ReplicaError> {
    let replica = Replica::open(folder).await?;
    let (direction, retries) = (Direction::Both, Retries::none());
    let synced = round::sync(&replica, direction, retries, false, MAX_INDEXED).await;
    replica.close().await;
    synced
}

/// The largest number of posts that one round indexes, in some seconds. News waits meanwhile.
const MAX_INDEXED: usize = 20_000;

fn interval(text: &str) -> Result<Duration, String> {
    match parse_ms(text)? {
        ms @ 1_000.. => Ok(duration(ms)),
        _ => Err("the shortest time between two rounds is 1s".to_owned()),
    }
}
