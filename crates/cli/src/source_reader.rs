//! Reads one source in this process, under a lease, until a condition is met.

use std::time::Duration;

use driftline_core::timeline::{RequestPurpose, Step};
use driftline_mirror::{Done, Following, Session, SessionError, UpstreamAccess};
use driftline_runtime::{StoreFault, now_ms};
use driftline_store::{
    Store, StoreError,
    source::{self, Source},
    source_lease::{self, Lease},
};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use crate::{duration::duration, error::CliError};

/// Reads one source.
pub struct SourceReader {
    store: Store,
    session: Session,
    following: Following,
    lease: Lease,
    renewing: JoinHandle<()>,
    /// A step was abandoned: the stored machine may be newer than ours.
    abandoned: bool,
    /// A poll that began after the end has succeeded: what is settled then is all there was, not
    /// only all that was known.
    polled: bool,
}

/// The conditions under which reading ends; besides, an error that only the operator can cure ends
/// it before anything was fetched.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadUntil {
    /// When to stop waiting for news, Unix ms; never if not set.
    pub at_ms: Option<i64>,
    /// How many rungs must then have covered everything before; `None` ends at once.
    pub settle_rungs: Option<usize>,
    /// How long settling may take, ms; then reading ends whatever it waits for.
    pub settle_ms: i64,
}

impl SourceReader {
    /// Claims a source and opens it, waiting for a dead process's lease.
    ///
    /// # Errors
    /// [`CliError`] if a living process holds it, or it cannot be opened.
    pub async fn open(
        store: Store,
        access: &UpstreamAccess,
        source: Source,
        holder: &str,
    ) -> Result<Self, CliError> {
        let lease = claim(&store, &source, holder).await?;
        let mut session = Session::open(store.clone(), access, source, Some(lease.fence)).await?;
        session.retry_soon();
        let renewing = tokio::spawn(renew(store.clone(), access.store_fault.clone(), lease));
        Ok(Self {
            following: session.follow(),
            store,
            session,
            lease,
            renewing,
            abandoned: false,
            polled: false,
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Whether a poll that began after the end has succeeded.
    pub fn has_polled(&self) -> bool {
        self.polled
    }

    /// Reads until the end or the stop signal, and calls `progress` after each step.
    ///
    /// # Errors
    /// [`CliError`] if the store failed or the lease was lost.
    pub async fn run(
        &mut self,
        until: ReadUntil,
        stop: &mut watch::Receiver<bool>,
        progress: impl FnMut(&Session, bool),
    ) -> Result<(), SessionError> {
        let Some(at_ms) = until.at_ms else {
            return self.read(until, stop, progress).await;
        };
        let settle_ms = until.settle_rungs.map_or(0, |_| until.settle_ms);
        let left_ms = at_ms.saturating_add(settle_ms).saturating_sub(now_ms());
        let left = duration(left_ms.saturating_add(MAX_LAST_STEP_MS));
        match timeout(left, self.read(until, stop, progress)).await {
            Ok(read) => read,
            // An upstream or a store that does not answer holds up no end.
            Err(_) => {
                self.abandoned = true;
                Ok(())
            }
        }
    }

    async fn read(
        &mut self,
        until: ReadUntil,
        stop: &mut watch::Receiver<bool>,
        mut progress: impl FnMut(&Session, bool),
    ) -> Result<(), SessionError> {
        let mut is_settling = false;
        while !*stop.borrow() {
            let now = now_ms();
            let over = until.at_ms.is_some_and(|at_ms| now >= at_ms);
            if over && self.is_settled(until, now) {
                break;
            }
            if over && !is_settling {
                is_settling = true;
                // The last poll is to prove all that the stream has shown, however rare polls are.
                self.following.end().await;
                self.session.retry_soon();
            }
            let polls = over && !self.polled && self.polls_next(now);
            let done = tokio::select! {
                done = self.session.step(over) => done?,
                _ = stop.changed() => {
                    self.abandoned = true;
                    break;
                }
            };
            self.polled |= polls && matches!(done, Done::Read(_));
            progress(&self.session, over);
            if is_hopeless(&self.session, &done) {
                break;
            }
            if let Done::Wait { until_ms } = done {
                let until_ms = match until.at_ms {
                    Some(at_ms) if !over => until_ms.min(at_ms),
                    _ => until_ms,
                };
                let wait_ms = until_ms.saturating_sub(now_ms()).clamp(0, MAX_WAIT_MS);
                tokio::select! {
                    () = sleep(duration(wait_ms)) => {}
                    () = self.session.stream_changed() => {}
                    _ = stop.changed() => break,
                }
            }
        }
        Ok(())
    }

    /// Keeps what was learned and gives the lease back.
    ///
    /// # Errors
    /// [`CliError`] if the store failed or the lease was lost.
    pub async fn close(mut self) -> Result<(), CliError> {
        self.following.end().await;
        let closed = match self.abandoned {
            true => self.session.release().await,
            false => self.session.close().await,
        };
        self.renewing.abort();
        let lease = self.lease;
        let released = self
            .store
            .write(source::root(lease.source), move |tx| {
                source_lease::release(tx, &lease)
            })
            .await;
        closed?;
        released?;
        Ok(())
    }

    fn is_settled(&self, until: ReadUntil, now_ms: i64) -> bool {
        let (Some(at_ms), Some(rungs)) = (until.at_ms, until.settle_rungs) else {
            return true;
        };
        let (machine, settings) = (self.session.machine(), &self.session.source().settings);
        let counters = machine.counters();
        let never_answered = counters.requests == counters.failures && counters.failures > 0;
        never_answered
            || (self.polled && machine.is_settled(settings, at_ms, rungs))
            || now_ms >= at_ms + until.settle_ms
    }

    fn polls_next(&self, now_ms: i64) -> bool {
        let settings = &self.session.source().settings;
        let mut machine = self.session.machine().clone();
        let step = machine.next(settings, self.session.abilities(), now_ms, true);
        // A backlog is read to its end before the next poll.
        let is_poll = matches!(step, Step::Fetch(fetch) if fetch.purpose == RequestPurpose::Poll);
        is_poll && !machine.is_catching_up()
    }
}

/// Whether nothing was ever fetched and only the operator can change that.
fn is_hopeless(session: &Session, done: &Done) -> bool {
    use driftline_core::answer::FailureKind::{NotFound, PrivateAddress, Unauthorized};
    let counters = session.machine().counters();
    matches!(done, Done::Failed(PrivateAddress | Unauthorized | NotFound))
        && counters.requests == counters.failures
}

async fn claim(store: &Store, source: &Source, holder: &str) -> Result<Lease, CliError> {
    let deadline = Instant::now() + 2 * LEASE;
    loop {
        let (key, holder) = (source.key(), holder.to_owned());
        let lease = store
            .write(source::root(key), move |tx| {
                source_lease::claim(tx, key, &holder, LEASE_MS)
            })
            .await?;
        if let Some(lease) = lease {
            return Ok(lease);
        }
        if Instant::now() >= deadline {
            return Err(CliError::failed(format!(
                "another process reads the source {:?}; stop it first, or use its server",
                source.name
            )));
        }
        sleep(LEASE / 20).await;
    }
}

async fn renew(store: Store, store_fault: StoreFault, lease: Lease) {
    loop {
        sleep(LEASE / 5).await;
        let renewed = store
            .write(source::root(lease.source), move |tx| {
                source_lease::renew(tx, &lease, LEASE_MS)
            })
            .await;
        match renewed {
            Ok(Some(_)) => {}
            // The next commit finds out.
            Ok(None) | Err(StoreError::NoSource) => return,
            Err(error) => store_fault.failed(&error),
        }
    }
}

const LEASE: Duration = Duration::from_secs(5);
const LEASE_MS: i64 = 5_000;
const MAX_WAIT_MS: i64 = 60_000;
/// The last step may take so long beyond the end.
const MAX_LAST_STEP_MS: i64 = 500;
