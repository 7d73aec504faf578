//! SIGHUP: the configuration read again while the process runs.

use serde_json::Value;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    commands::config::{Row, rows},
    config::Config,
    error::CliError,
    logs::Log,
    options::global_options::Global,
};

/// What a reload needs.
#[derive(Debug, Clone)]
pub struct Reloading {
    /// Where the configuration is.
    pub global: Global,
    /// What can be changed at run time.
    pub log: Log,
}

impl Reloading {
    /// Reads the configuration again at each SIGHUP, compares it with the one of the start, applies
    /// what it can and logs the rest. An invalid one is logged, and all goes on as it was.
    ///
    /// # Errors
    /// [`CliError::Failed`] if the system takes no handler.
    pub fn start(self, begun: &Config) -> Result<(), CliError> {
        let mut hangups = hangups()?;
        let begun = rows(begun)?;
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                self.read_again(&begun);
            }
        });
        Ok(())
    }

    fn read_again(&self, begun: &[Row]) {
        let read = Config::read(&self.global).and_then(|config| {
            let applied = self.log.apply(&config.log).and_then(|()| rows(&config));
            applied.map_err(|error| vec![error.to_string()])
        });
        match read {
            Err(faults) => {
                for fault in faults {
                    tracing::error!("SIGHUP: the old configuration stays in use: {fault}");
                }
            }
            Ok(now) => match needing_a_restart(begun, &now) {
                keys if keys.is_empty() => {
                    tracing::warn!("SIGHUP: the configuration was read again");
                }
                keys => tracing::warn!(
                    "SIGHUP: the configuration was read again; these keys need a restart: {}",
                    keys.join(", ")
                ),
            },
        }
    }
}

/// Takes SIGHUP from now on, so that it does not end the process.
///
/// # Errors
/// [`CliError::Failed`] if the system takes no handler.
pub fn hangups() -> Result<Signal, CliError> {
    signal(SignalKind::hangup())
        .map_err(|error| CliError::failed(format!("signals cannot be handled: {error}")))
}

/// The keys whose values differ from those of the start, and that cannot be changed at run time.
fn needing_a_restart<'r>(begun: &'r [Row], now: &'r [Row]) -> Vec<&'r str> {
    let value_in = |rows: &'r [Row], key: &str| -> Option<&'r Value> {
        rows.iter()
            .find(|row| row.key == key)
            .map(|row| &row.unmasked)
    };
    let mut keys: Vec<&str> = begun
        .iter()
        .chain(now)
        .map(|row| row.key.as_str())
        .filter(|key| !APPLIED.contains(key) && value_in(begun, key) != value_in(now, key))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

const APPLIED: [&str; 1] = ["log.level"];
