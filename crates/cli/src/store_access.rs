//! Access to a store: opened here, or through the process that holds the
//! data folder.

use std::time::Duration;

use driftline_server::admin::{Host, Request};
use tokio::time::{Instant, sleep};

use crate::{
    config::Config,
    data_dir::{DataDir, Lock},
    error::CliError,
    output,
    socket::Client,
};

/// Access to a store.
pub enum StoreAccess {
    /// Opened by this process, which holds the folder's lock meanwhile.
    Here {
        /// The store, and access to upstreams.
        host: Box<Host>,
        /// The lock; none where the store is only read.
        lock: Option<Lock>,
    },
    /// Held by another process.
    Server(Client),
}

/// What to do if there is no store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is made.
    Make,
    /// It is an error.
    Refuse,
}

impl StoreAccess {
    /// Opens the store, or connects to the process that holds it.
    ///
    /// # Errors
    /// [`CliError`] if there is no store, or a process that takes no commands
    /// holds it.
    pub async fn open(config: &Config, missing: Missing) -> Result<Self, CliError> {
        let data_dir = DataDir::new(&config.store)?;
        if missing == Missing::Refuse {
            data_dir.require()?;
        }
        let address = config.address()?;
        if config.store.read_only || data_dir.is_read_only() {
            data_dir.require()?;
            let store = data_dir.open_read_only().await?;
            let host = Host {
                address,
                ..Host::of(&store)
            };
            let host = match host.acting_as(config.as_account.as_ref()).await {
                Ok(host) => Box::new(host),
                Err(error) => {
                    store.close().await;
                    return Err(error.into());
                }
            };
            return Ok(Self::Here { host, lock: None });
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(lock) = data_dir.try_lock()? {
                let store = data_dir.open(&lock).await?;
                let http = config.http(false);
                let access = http.and_then(|http| config.access(&store, http, data_dir.data()));
                let access = match access {
                    Ok(access) => Some(access),
                    Err(error) => {
                        store.close().await;
                        return Err(error);
                    }
                };
                let host = Host {
                    access,
                    sources_per_account: config.sources_per_account(),
                    address: address.clone(),
                    ..Host::of(&store)
                };
                let host = match host.acting_as(config.as_account.as_ref()).await {
                    Ok(host) => Box::new(host),
                    Err(error) => {
                        store.close().await;
                        return Err(error.into());
                    }
                };
                let lock = Some(lock);
                return Ok(Self::Here { host, lock });
            }
            // It may be starting or ending, or carry a short command out.
            match Client::connect(&data_dir.socket()).await {
                Ok(client) => {
                    same_database(&data_dir)?;
                    let account = config.as_account.clone();
                    return Ok(Self::Server(client.acting_as(account)));
                }
                Err(_) if Instant::now() < deadline => sleep(TIMEOUT / 100).await,
                Err(error) => {
                    return Err(CliError::locked(format!(
                        "{} works with the data folder {} and takes no commands ({error}); wait until it ends",
                        data_dir.holder().0,
                        data_dir.data().display()
                    )));
                }
            }
        }
    }

    /// Executes a command.
    ///
    /// # Errors
    /// [`CliError`] as for [`Request::execute`].
    pub async fn execute<R: Request>(&mut self, request: R) -> Result<R::Reply, CliError> {
        match self {
            Self::Here { host, .. } => Ok(Box::pin(request.execute(host)).await?),
            Self::Server(client) => client.execute(request).await,
        }
    }
}

/// Works with a store.
///
/// # Errors
/// As for [`StoreAccess::open`], or those of the work.
pub async fn with<T>(
    config: &Config,
    missing: Missing,
    work: impl AsyncFnOnce(&mut StoreAccess) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let mut access = StoreAccess::open(config, missing).await?;
    let outcome = work(&mut access).await;
    if let StoreAccess::Here { host, lock } = access {
        host.store.close().await;
        drop(lock);
    }
    outcome
}

/// Executes one command.
///
/// # Errors
/// As for [`StoreAccess::open`] and [`StoreAccess::execute`].
pub async fn once<R: Request>(
    config: &Config,
    missing: Missing,
    request: R,
) -> Result<R::Reply, CliError> {
    with(config, missing, async |access| {
        access.execute(request).await
    })
    .await
}

/// Executes a command on a store that exists, and prints the reply.
///
/// # Errors
/// As for [`once`] and [`output::reply`].
pub async fn show<R: Request>(
    config: &Config,
    json: bool,
    request: R,
    shown: impl FnOnce(&R::Reply) -> Vec<String>,
) -> Result<(), CliError> {
    output::reply(json, &once(config, Missing::Refuse, request).await?, shown)
}

/// Checks that a command does not go to another database than the configured one.
///
/// # Errors
/// [`CliError::Usage`] if the process that holds the folder uses another one.
pub fn same_database(data_dir: &DataDir) -> Result<(), CliError> {
    match data_dir.holder() {
        (process, Some(used)) if used != data_dir.shown() => Err(CliError::usage(format!(
            "{process} serves the data folder {} with the database {used}, not {}; name another folder with --data",
            data_dir.data().display(),
            data_dir.shown()
        ))),
        _ => Ok(()),
    }
}

const TIMEOUT: Duration = Duration::from_secs(5);
