//! The way to a store: opened here, or through the process that holds the
//! data folder.

use std::time::Duration;

use driftline_server::{
    Access,
    admin::{self, Command, Host},
};
use driftline_store::Store;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::{
    config::Config,
    data_dir::{DataDir, Lock},
    error::CliError,
    socket::Client,
};

/// A store within store_access.
pub enum StoreAccess {
    /// Opened by this process, which holds the folder's lock meanwhile.
    Here {
        /// The store, and what reaches upstreams.
        host: Box<Host>,
        /// The lock.
        lock: Lock,
    },
    /// Held by another process.
    Server(Client),
}

/// Whether a store may be made where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is made.
    Make,
    /// It is an error.
    Refuse,
}

impl StoreAccess {
    /// Finds the way.
    ///
    /// # Errors
    /// [`CliError`] if there is no store, or a process that takes no commands
    /// holds it.
    pub async fn open(config: &Config, missing: Missing) -> Result<Self, CliError> {
        let place = DataDir::new(&config.store)?;
        if missing == Missing::Refuse && !place.exists() {
            return Err(CliError::usage(format!(
                "there is no store in {}; add a source first, or name another folder with --data",
                place.data().display()
            )));
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(lock) = place.try_lock()? {
                let store = place.open(&lock).await?;
                let mut host = Host::of(&store);
                match access(config, &store, &place) {
                    Ok(access) => host.access = Some(access),
                    Err(error) => {
                        store.close().await;
                        return Err(error);
                    }
                }
                return Ok(Self::Here {
                    host: Box::new(host),
                    lock,
                });
            }
            // It may be starting or ending, or carry a short command out.
            match Client::connect(&place.socket()).await {
                Ok(client) => {
                    same_database(&place)?;
                    return Ok(Self::Server(client));
                }
                Err(_) if Instant::now() < deadline => sleep(TIMEOUT / 100).await,
                Err(error) => {
                    return Err(CliError::failed(format!(
                        "{} works with the data folder {} and takes no commands ({error}); wait until it ends",
                        place.holder().0,
                        place.data().display()
                    )));
                }
            }
        }
    }

    /// Has a command carried out.
    ///
    /// # Errors
    /// [`CliError`] as for [`admin::execute`].
    pub async fn execute(&mut self, command: Command) -> Result<Value, CliError> {
        match self {
            Self::Here { host, .. } => Ok(admin::execute(host, command).await?),
            Self::Server(client) => client.execute(&command).await,
        }
    }

    /// Lets the store go.
    pub async fn close(self) {
        if let Self::Here { host, lock } = self {
            host.store.close().await;
            drop(lock);
        }
    }
}

/// Has one command carried out.
///
/// # Errors
/// As for [`StoreAccess::open`] and [`StoreAccess::execute`].
pub async fn once(config: &Config, missing: Missing, command: Command) -> Result<Value, CliError> {
    let mut store_access = StoreAccess::open(config, missing).await?;
    let outcome = store_access.execute(command).await;
    store_access.close().await;
    outcome
}

fn access(config: &Config, store: &Store, place: &DataDir) -> Result<Access, CliError> {
    let http = config.http(false)?;
    config.access(store, http, place.data())
}

/// A command must not go to another database than the one that was named.
fn same_database(place: &DataDir) -> Result<(), CliError> {
    match place.holder() {
        (process, Some(used)) if used != place.shown() => Err(CliError::usage(format!(
            "{process} serves the data folder {} with the database {used}, not {}; name another folder with --data",
            place.data().display(),
            place.shown()
        ))),
        _ => Ok(()),
    }
}

const TIMEOUT: Duration = Duration::from_secs(5);
