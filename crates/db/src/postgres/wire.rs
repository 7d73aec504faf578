use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Error, NoTls, Socket};

use super::tls::Tls;
use crate::error::DbError;

/// A connection with a small runtime that drives it, for use on a plain thread.
pub(super) struct Wire {
    runtime: Runtime,
    /// Present until the end.
    client: Option<Client>,
    driver: JoinHandle<()>,
}

impl Wire {
    /// Connects. The outer error concerns this machine, the inner one the server or the network.
    pub(super) fn connect(
        config: &Config,
        tls: Option<&Tls>,
    ) -> Result<Result<Wire, Error>, DbError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| DbError::Open(format!("cannot start a runtime: {error}")))?;
        let connected = match tls {
            Some(Tls(tls)) => runtime.block_on(connect(config, tls.clone())),
            None => runtime.block_on(connect(config, NoTls)),
        };
        Ok(connected.map(|(client, driver)| Wire {
            runtime,
            client: Some(client),
            driver,
        }))
    }

    /// Waits for the result of `work` with the client.
    pub(super) fn wait<'a, F: Future>(&'a self, work: impl FnOnce(&'a Client) -> F) -> F::Output {
        let client = self.client.as_ref().expect("there until the end");
        self.runtime.block_on(work(client))
    }

    /// Sends a command without waiting for its answer.
    pub(super) fn send(&self, command: &str) {
        self.wait(async |client| {
            let mut command = pin!(client.batch_execute(command));
            // It is queued when it is first polled.
            poll_fn(|context| {
                let _ = command.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
        });
        self.listen();
    }

    /// Receives unsolicited messages of the server, such as the end of the connection.
    pub(super) fn listen(&self) {
        self.runtime.block_on(async {
            // The first wakes the connection's task, the second lets it run, and so send.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        });
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.as_ref().is_none_or(Client::is_closed)
    }
}

/// The client, and the task that drives its connection.
async fn connect<T>(config: &Config, tls: T) -> Result<(Client, JoinHandle<()>), Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
{
    let (client, connection) = config.connect(tls).await?;
    let driver = tokio::spawn(async move {
        // Callers that wait for an answer get the error, too.
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a PostgreSQL connection ended");
        }
    });
    Ok((client, driver))
}

impl Drop for Wire {
    /// Closes the connection properly, within a time limit.
    fn drop(&mut self) {
        self.client = None;
        let driver = &mut self.driver;
        let ended = self
            .runtime
            .block_on(async { timeout(CLOSE_TIMEOUT, driver).await });
        if ended.is_err() {
            tracing::debug!("a PostgreSQL connection was cut");
        }
    }
}

const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
