//! `replica watch`: syncs again and again.

use std::{path::Path, time::Duration};

use clap::Args;
use driftline_replica::{Backoff, Retries, jittered};

use super::round::{self, Direction, random};
use crate::{
    duration::{duration, parse_ms},
    error::CliError,
    output, stop,
};

/// Syncs again and again, until it is ended by Ctrl-C or SIGTERM.
///
/// While the server cannot be reached it tries again after 1, 2, 4 … 60 s. Between two rounds other commands may work with
/// the replica. It never removes most of the replica: then it ends and says so.
#[derive(Debug, Args)]
pub struct Watch {
    /// The time between two rounds, 1s or more; each wait is up to a quarter shorter or longer.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = interval)]
    every: Duration,
}

impl Watch {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] if trying again cannot help.
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        let mut stop = stop::on_signal()?;
        let mut backoff = Backoff::new();
        let mut random = random;
        while !*stop.borrow() {
            // A round that is dropped half-way has stored each chunk with its cursor.
            let outcome = tokio::select! {
                outcome = round::round(folder, Direction::Both, Retries::none(), false) => outcome,
                _ = stop.wait_for(|stop| *stop) => return Ok(()),
            };
            let wait = match outcome {
                Ok(report) => {
                    backoff.succeed();
                    if report.has_changes() {
                        output::reply(json, &report, round::lines)?;
                    }
                    jittered(self.every, random())
                }
                Err(error) if error.may_pass() => {
                    let wait = backoff.fail(&mut random).max(error.asked_wait());
                    output::note(&format!(
                        "driftline: {error}; trying again in {:.1} s",
                        wait.as_secs_f64()
                    ));
                    wait
                }
                Err(error) => return Err(error.into()),
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
        Ok(())
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    match parse_ms(text)? {
        ms @ 1_000.. => Ok(duration(ms)),
        _ => Err("the shortest time between two rounds is 1s".to_owned()),
    }
}
