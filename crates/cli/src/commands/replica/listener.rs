//! A stream of news for `replica watch`.

use std::{path::Path, time::Duration};

use driftline_replica::{
    Client, NewsStream, Replica, ReplicaError, ReplicaStatus, Retries, jittered,
};
use tokio::time::{Instant, sleep, sleep_until};

use super::round::random;

/// Listens to the server's events about a replica's libraries, if the server has such.
#[derive(Debug, Default)]
pub struct Listener(Option<Open>);

/// An open stream.
#[derive(Debug)]
struct Open {
    stream: NewsStream,
    libraries: Vec<String>,
    since: Instant,
}

impl Listener {
    /// Listens to the libraries that the replica has now. Without a stream [`Listener::wait`] only waits.
    ///
    /// # Errors
    /// [`ReplicaError`] if the replica cannot be opened.
    pub async fn renew(&mut self, folder: &Path) -> Result<(), ReplicaError> {
        let (client, status) = look(folder).await?;
        let libraries = libraries(&status);
        let is_same = |open: &Open| open.libraries == libraries;
        if self.0.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let opened = client.news(libraries.iter().map(String::as_str)).await;
        self.0 = match opened {
            Ok(stream) => Some(Open {
                stream,
                libraries,
                since: Instant::now(),
            }),
            Err(error) => {
                tracing::debug!("no stream of events: {error}");
                None
            }
        };
        Ok(())
    }

    /// Waits until the server has news, or the replica, which is checked now and then, has something to sync, but at least until
    /// `earliest`. Without a stream it waits for `every`, and no longer if the stream does not cover all libraries. May be
    /// dropped at any time.
    pub async fn wait(&mut self, folder: &Path, every: Duration, earliest: Instant) {
        let mut look_at = Instant::now() + jittered(every, random());
        let Some(open) = &mut self.0 else {
            return sleep_until(look_at.max(earliest)).await;
        };
        // All news that comes meanwhile is fetched by one round.
        sleep_until(earliest).await;
        loop {
            tokio::select! {
                is_news = open.stream.next() => {
                    if !is_news {
                        // A stream that is cut again and again is no better than none.
                        let left = every.saturating_sub(open.since.elapsed());
                        self.0 = None;
                        sleep(left).await;
                    }
                    return;
                }
                () = sleep_until(look_at) => {}
            }
            if !open.stream.names_all() {
                return;
            }
            look_at = Instant::now() + jittered(every, random());
            // An error here is one of the round, too.
            let is_quiet = look(folder).await.is_ok_and(|(_, of)| is_quiet(&of));
            if !is_quiet {
                return;
            }
        }
    }
}

/// Opens the replica and closes it.
async fn look(folder: &Path) -> Result<(Client, ReplicaStatus), ReplicaError> {
    let replica = Replica::open(folder).await?;
    let status = replica.status().await;
    let client = replica.client(Retries::none());
    replica.close().await;
    Ok((client?, status?))
}

/// The libraries of sources that are requested.
fn libraries(status: &ReplicaStatus) -> Vec<String> {
    let subscriptions = status.subscriptions.iter().filter(|of| !of.is_gone);
    subscriptions.map(|of| of.library.clone()).collect()
}

/// True if another command has left nothing to sync.
fn is_quiet(status: &ReplicaStatus) -> bool {
    let mut subscriptions = status.subscriptions.iter();
    let is_copied = subscriptions.all(|of| of.is_gone || of.is_complete);
    status.dirty == 0 && !status.is_push_pending && status.is_complete && is_copied
}
