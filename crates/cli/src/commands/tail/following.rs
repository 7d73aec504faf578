//! Reading the feed through the process that holds the data folder, whichever does; or from the store.

use std::time::Duration;

use driftline_server::admin::{FeedPage, Host, ReadFeed, Request};
use tokio::time::sleep;

use crate::{
    config::Config,
    data_dir::DataDir,
    error::CliError,
    output,
    socket::Client,
    store_access::{self, Missing, StoreAccess, same_database},
};

/// Follows the feed.
pub struct Following<'c> {
    config: &'c Config,
    /// What is asked for next.
    request: ReadFeed,
    /// Whether it ends when all was told.
    ends: bool,
    from: From,
    /// Whether it was said that nothing comes.
    has_said: bool,
}

/// Where the feed comes from.
enum From {
    Nowhere,
    /// The process that holds the data folder.
    Server(Client),
    /// The database, beside other processes.
    Database(Box<Host>),
}

impl<'c> Following<'c> {
    /// Begins with this request.
    pub fn new(config: &'c Config, request: ReadFeed, ends: bool) -> Self {
        Self {
            config,
            request,
            ends,
            from: From::Nowhere,
            has_said: false,
        }
    }

    /// The next events, and the position after them; `None` at the end. May be dropped while it waits.
    ///
    /// # Errors
    /// [`CliError`] if there is no store, no such source, or no such position.
    pub async fn next(&mut self) -> Result<Option<FeedPage>, CliError> {
        loop {
            let has_begun = self.request.after.is_some();
            let answer = match self.from {
                From::Nowhere => match self.connect().await? {
                    Some(page) => Ok(page),
                    None => continue,
                },
                From::Server(_) | From::Database(_) => self.execute(self.request.clone()).await,
            };
            match answer {
                Ok(page) if page.events.is_empty() && self.ends && has_begun => return Ok(None),
                Ok(page) => {
                    self.has_said = false;
                    self.request.after = Some(page.position.clone());
                    self.request.wait_ms = if self.ends { 0 } else { WAIT_MS };
                    return Ok(Some(page));
                }
                Err(why) if why.may_pass() && !self.ends => {
                    self.retry_later(&why).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Executes another command where the feed comes from.
    ///
    /// # Errors
    /// [`CliError`] as for [`Request::execute`].
    pub async fn execute<R: Request>(&mut self, request: R) -> Result<R::Reply, CliError> {
        match &mut self.from {
            From::Nowhere => store_access::once(self.config, Missing::Refuse, request).await,
            From::Server(client) => client.execute(request).await,
            From::Database(host) => Ok(request.execute(host).await?),
        }
    }

    /// Waits a moment after an error that may pass, and then connects again.
    pub async fn retry_later(&mut self, error: &CliError) {
        self.say(&format!("{error}; going on once it is there again"));
        self.leave().await;
        sleep(RETRY).await;
    }

    /// Lets go of the store.
    pub async fn close(mut self) {
        self.leave().await;
    }

    /// Finds the feed; what a file holds without a server is returned at once, since its lock must be
    /// free for whoever is to write to it.
    async fn connect(&mut self) -> Result<Option<FeedPage>, CliError> {
        let data_dir = DataDir::new(&self.config.store)?;
        if let Ok(client) = Client::connect(&data_dir.socket()).await {
            same_database(&data_dir)?;
            self.from = From::Server(client.acting_as(self.config.as_account.clone()));
            return Ok(None);
        }
        if data_dir.is_shared() {
            let address = self.config.address()?;
            let (_, store) = data_dir.open_shared("").await?;
            let host = Host {
                address,
                ..Host::of(&store)
            };
            match host.acting_as(self.config.as_account.as_ref()).await {
                Ok(host) => self.from = From::Database(Box::new(host)),
                Err(error) => {
                    store.close().await;
                    return Err(error.into());
                }
            }
            return Ok(None);
        }
        match StoreAccess::open(self.config, Missing::Refuse).await? {
            StoreAccess::Server(client) => {
                self.from = From::Server(client);
                Ok(None)
            }
            StoreAccess::Here { host, lock } => {
                let request = ReadFeed {
                    wait_ms: 0,
                    ..self.request.clone()
                };
                let has_begun = request.after.is_some();
                let page = request.execute(&host).await;
                host.store.close().await;
                drop(lock);
                let page = page?;
                if page.events.is_empty() && has_begun && !self.ends {
                    self.say("nothing stores posts in this data folder now; waiting for `driftline serve` or `driftline mirror`");
                    while Client::connect(&data_dir.socket()).await.is_err() {
                        sleep(RETRY).await;
                    }
                    return Ok(None);
                }
                Ok(Some(page))
            }
        }
    }

    async fn leave(&mut self) {
        if let From::Database(host) = std::mem::replace(&mut self.from, From::Nowhere) {
            host.store.close().await;
        }
    }

    fn say(&mut self, text: &str) {
        if !std::mem::replace(&mut self.has_said, true) {
            output::note(&format!("driftline: {text}"));
        }
    }
}

const WAIT_MS: u64 = 20_000;
const RETRY: Duration = Duration::from_millis(500);
