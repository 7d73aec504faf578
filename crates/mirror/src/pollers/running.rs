//! The running sessions.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use driftline_runtime::now_ms;
use driftline_store::{
    Root, SourceId, StoreError,
    source::Source,
    source_lease::{self, Lease},
};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::shared::{FillRequest, Progress, Shared};
use crate::{
    session::{Done, Session, SessionError},
    source_health::SourceFault,
};

/// The sessions of this process, by source. A stopping session stays until it has ended.
#[derive(Default)]
pub(super) struct RunningSet(Mutex<HashMap<SourceId, Running>>);

/// Whether a session is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    /// It goes on.
    No,
    /// When its current request is answered and committed, for which it has some time.
    AtBoundary,
    /// Now: a request in flight is dropped, and a commit finishes by itself.
    Now,
}

struct Running {
    source: Source,
    lease: Lease,
    stop: watch::Sender<Stop>,
    /// Whether its lease is being given back.
    releases: Arc<AtomicBool>,
    fill_requests: mpsc::Sender<FillRequest>,
    progress: watch::Receiver<Progress>,
    /// Closed when the session has ended, however it did.
    ended: watch::Receiver<()>,
}

impl RunningSet {
    /// Runs a session under its lease.
    pub(super) fn begin(&self, shared: &Arc<Shared>, session: Session, lease: Lease) {
        let source = session.source().clone();
        let (stop, stopped) = watch::channel(Stop::No);
        let releases = Arc::new(AtomicBool::new(false));
        let (fill_requests, fill_requests_received) = mpsc::channel(16);
        let (progress_sender, progress) = watch::channel(progress_of(&session));
        let (end, ended) = watch::channel(());
        shared.health.begun(source.id);
        let running = Running {
            source,
            lease,
            stop,
            releases: Arc::clone(&releases),
            fill_requests,
            progress,
            ended,
        };
        self.0.lock().insert(lease.source.id, running);
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let ran = run(
                Arc::clone(&shared),
                session,
                (lease, releases),
                stopped,
                fill_requests_received,
                progress_sender,
            );
            if let Err(error) = tokio::spawn(ran).await {
                // A panic, which is a bug of this program.
                shared.halted_by(lease.source.id, SourceFault::new("bug", &error));
                release(&shared, lease).await;
            }
            drop(end);
            // A look that came before still saw the session.
            shared.sharing.look_now();
        });
    }

    /// Whether a source has a session, also a stopping one.
    pub(super) fn has(&self, source: SourceId) -> bool {
        self.0.lock().contains_key(&source)
    }

    /// The leases of the sessions that have not ended.
    pub(super) fn leases(&self) -> Vec<Lease> {
        let all = self.0.lock();
        let running = all
            .values()
            .filter(|running| !running.has_ended() && !running.releases.load(Ordering::SeqCst));
        running.map(|running| running.lease).collect()
    }

    /// Lets sessions end when their current requests are committed. Returns how many went on.
    pub(super) fn give_back(&self, is_given_back: impl Fn(SourceId) -> bool) -> usize {
        let all = self.0.lock();
        let given = all.iter().filter(|(id, running)| {
            is_given_back(**id) && !running.has_ended() && *running.stop.borrow() == Stop::No
        });
        let given = given.inspect(|(_, running)| running.signal(Stop::AtBoundary));
        given.count()
    }

    /// Lets all sessions end.
    pub(super) fn signal_all(&self, stop: Stop) {
        for running in self.0.lock().values() {
            running.signal(stop);
        }
    }

    pub(super) fn progress(&self) -> Vec<Progress> {
        let all = self.0.lock();
        let mut progress: Vec<Progress> = all
            .values()
            .map(|running| running.progress.borrow().clone())
            .collect();
        progress.sort_by_key(|progress| progress.source.id);
        progress
    }

    pub(super) fn fill_requests(&self, source: SourceId) -> Option<mpsc::Sender<FillRequest>> {
        Some(self.0.lock().get(&source)?.fill_requests.clone())
    }

    /// Stops sessions whose sources are removed, paused or changed, and removes those that have ended.
    pub(super) fn stop_obsolete(&self, sources: &[Source]) {
        let by_id: HashMap<SourceId, &Source> =
            sources.iter().map(|source| (source.id, source)).collect();
        self.0.lock().retain(|id, running| {
            match by_id.get(id) {
                None => running.signal(Stop::Now),
                Some(source) if source.paused => running.signal(Stop::Now),
                Some(source) => {
                    let before = &running.source;
                    let has_changed = source.settings != before.settings
                        || source.token != before.token
                        || source.allow_private != before.allow_private
                        || source.refreshing != before.refreshing
                        || source.name != before.name;
                    if has_changed {
                        running.signal(Stop::AtBoundary);
                    }
                    running.check_lease(source);
                }
            }
            !running.has_ended()
        });
    }

    /// Ends a source's session and waits for it.
    pub(super) async fn end(&self, source: SourceId) {
        let ended = {
            let all = self.0.lock();
            let Some(running) = all.get(&source) else {
                return;
            };
            running.signal(Stop::Now);
            running.ended.clone()
        };
        end_of(ended).await;
        let mut all = self.0.lock();
        if all.get(&source).is_some_and(Running::has_ended) {
            all.remove(&source);
        }
    }

    /// Ends all sessions and waits for them.
    pub(super) async fn end_all(&self) {
        self.signal_all(Stop::Now);
        let ended: Vec<_> = {
            let all = self.0.lock();
            all.values().map(|running| running.ended.clone()).collect()
        };
        for ended in ended {
            end_of(ended).await;
        }
        self.0.lock().retain(|_, running| !running.has_ended());
    }
}

impl Running {
    /// A session that is to end now never goes on to a boundary.
    fn signal(&self, stop: Stop) {
        self.stop.send_if_modified(|before| {
            let is_more = stop > *before;
            *before = stop.max(*before);
            is_more
        });
    }

    /// Stops the session of a lost lease. What was read may be older than the lease.
    fn check_lease(&self, source: &Source) {
        let holding = source.holding.as_ref();
        let is_lost = holding.is_some_and(|holding| holding.fence > self.lease.fence);
        if is_lost && !self.has_ended() {
            tracing::info!(source = %source.name, "another process took the source over");
            self.signal(Stop::Now);
        }
    }

    fn has_ended(&self) -> bool {
        self.ended.has_changed().is_err()
    }
}

async fn end_of(mut ended: watch::Receiver<()>) {
    while ended.changed().await.is_ok() {}
}

async fn run(
    shared: Arc<Shared>,
    session: Session,
    (lease, releases): (Lease, Arc<AtomicBool>),
    stop: watch::Receiver<Stop>,
    fill_requests: mpsc::Receiver<FillRequest>,
    progress_sender: watch::Sender<Progress>,
) {
    let name = session.source().name.clone();
    let mut following = session.follow();
    let read = read(&shared, session, stop, fill_requests, progress_sender).await;
    following.end().await;
    match read {
        Ok(()) => shared.health.ended(lease.source.id, now_ms()),
        Err(error) => {
            tracing::info!(source = %name, %error, "reading stopped");
            shared.halted(lease.source.id, &error);
        }
    }
    releases.store(true, Ordering::SeqCst);
    release(&shared, lease).await;
}

async fn read(
    shared: &Shared,
    mut session: Session,
    mut stop: watch::Receiver<Stop>,
    mut fill_requests: mpsc::Receiver<FillRequest>,
    progress_sender: watch::Sender<Progress>,
) -> Result<(), SessionError> {
    let source = session.source().id;
    while *stop.borrow() == Stop::No {
        shared.health.step_begins(source, now_ms());
        // Dropping a request in flight is safe; a commit finishes by itself.
        let done = tokio::select! {
            done = session.step(false) => done?,
            () = must_drop(&mut stop) => break,
        };
        if shared.retries.lock().succeeded(source) {
            shared.publish_refusals();
        }
        let now = now_ms();
        shared
            .health
            .step_ended(source, session.machine(), &done, now);
        progress_sender.send_replace(progress_of(&session));
        let Done::Wait { until_ms } = done else {
            continue;
        };
        let wait_ms = u64::try_from(until_ms.saturating_sub(now))
            .unwrap_or(0)
            .min(MAX_WAIT_MS);
        tokio::select! {
            () = sleep_until(Instant::now() + Duration::from_millis(wait_ms)) => {}
            Some(fill_request) = fill_requests.recv() => {
                let _ = fill_request.answer.send(session.request_fill(&fill_request.low).await?);
            }
            () = session.stream_changed() => {}
            () = must_stop(&mut stop) => break,
        }
    }
    session.close().await
}

fn progress_of(session: &Session) -> Progress {
    Progress {
        source: Arc::new(session.source().clone()),
        machine: Arc::new(session.machine().clone()),
    }
}

/// Waits until the session is to end. It may have been told while a request was in flight.
async fn must_stop(stop: &mut watch::Receiver<Stop>) {
    // The sender is kept until the session has ended.
    let _ = stop.wait_for(|stop| *stop != Stop::No).await;
}

/// Waits until a request in flight is to be dropped.
async fn must_drop(stop: &mut watch::Receiver<Stop>) {
    must_stop(stop).await;
    let is_now = stop.wait_for(|stop| *stop == Stop::Now);
    let _ = tokio::time::timeout(BOUNDARY_TIMEOUT, is_now).await;
}

/// Releases a lease, together with others that are to be released. If that fails, the lease is not
/// renewed, and the scanner releases it.
pub(super) async fn release(shared: &Shared, lease: Lease) {
    shared.releases.waiting.lock().push(lease);
    let _turn = shared.releases.turn.lock().await;
    let mut leases = std::mem::take(&mut *shared.releases.waiting.lock());
    if leases.is_empty() {
        // Another session's turn has released it.
        return;
    }
    leases.sort_by_key(|lease| lease.source);
    let released = shared
        .store
        .write(Root::none(), move |tx| {
            source_lease::release_all(tx, &leases)
        })
        .await;
    if let Err(error) = released
        && error != StoreError::NoSource
    {
        tracing::info!(%error, "leases were not released; they will expire");
    }
}

const MAX_WAIT_MS: u64 = 60_000;
/// How long a request may take whose source is to be given back.
const BOUNDARY_TIMEOUT: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn an_end_that_comes_during_a_request_is_noticed_after_it() {
        let (sender, mut stop) = watch::channel(Stop::No);
        sender.send_replace(Stop::AtBoundary);
        // The request's answer comes before it must be dropped.
        let dropped = timeout(Duration::from_millis(1), must_drop(&mut stop));
        assert!(dropped.await.is_err());
        let stopped = timeout(Duration::from_secs(20), must_stop(&mut stop));
        stopped.await.unwrap();
    }
}
