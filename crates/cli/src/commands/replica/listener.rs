//! A stream of news for `replica watch`.

use std::{path::Path, time::Duration};

use driftline_replica::{
    Backoff, Client, NewsStream, Random, Replica, ReplicaError, ReplicaStatus, Retries, jittered,
};
use tokio::time::{Instant, sleep, sleep_until};

use super::round::random;

/// Listens to the server's events about a replica's libraries, if the server has such.
#[derive(Debug, Default)]
pub struct Listener {
    open: Option<Open>,
    /// The waits after streams that ended early.
    backoff: Backoff,
}

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
        if self.open.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let opened = client.news(libraries.iter().map(String::as_str)).await;
        self.open = match opened {
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
    /// `earliest`. Without a stream it waits for `every`, and no longer if the stream does not cover all libraries. After the end
    /// of a stream it waits for 1, 2, 4 … 60 s, but not beyond `every` after its beginning. May be dropped at any time.
    pub async fn wait(&mut self, folder: &Path, every: Duration, earliest: Instant) {
        let mut look_at = Instant::now() + jittered(every, random());
        let Some(open) = &mut self.open else {
            return sleep_until(look_at.max(earliest)).await;
        };
        let mut random = random;
        // All news that comes meanwhile is fetched by one round.
        sleep_until(earliest).await;
        loop {
            tokio::select! {
                is_news = open.stream.next() => {
                    if !is_news {
                        let age = open.since.elapsed();
                        self.open = None;
                        sleep(wait_after(age, every, &mut self.backoff, &mut random)).await;
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

/// The wait after the end of a stream of this age. One that is cut again and again is no better than none.
fn wait_after(
    age: Duration,
    every: Duration,
    backoff: &mut Backoff,
    random: &mut Random<'_>,
) -> Duration {
    if age >= GOOD_AGE {
        backoff.succeed();
    }
    backoff.fail(random).min(every.saturating_sub(age))
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

/// True if another command, or the last round, has left nothing to sync or to index.
fn is_quiet(status: &ReplicaStatus) -> bool {
    let mut subscriptions = status.subscriptions.iter();
    let is_copied = subscriptions.all(|of| of.is_gone || of.is_complete);
    let is_sent = status.dirty == 0 && !status.is_push_pending;
    is_sent && status.is_complete && is_copied && status.unindexed == 0
}

/// A stream that lasted so long was not cut at once.
const GOOD_AGE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_ends_is_soon_opened_again_but_not_if_it_ends_at_once_each_time() {
        let mut backoff = Backoff::new();
        let mut waits = |every_s, ages_s: &[u64]| -> Vec<u64> {
            let ages = ages_s.iter().copied().map(Duration::from_secs);
            let every = Duration::from_secs(every_s);
            ages.map(|age| wait_after(age, every, &mut backoff, &mut || 250_u128).as_secs())
                .collect()
        };
        let hour = waits(3_600, &[600, 0, 0, 5, 0, 0, 0, 0, 600, 600]);
        assert_eq!(hour, [1, 2, 4, 8, 16, 32, 60, 60, 1, 1]);
        // Never later than without a stream.
        assert_eq!(waits(10, &[600, 0, 0, 5, 9]), [0, 2, 4, 5, 1]);
    }
}
