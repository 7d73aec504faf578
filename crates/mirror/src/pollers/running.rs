//! The running sessions.

use std::{collections::HashMap, sync::Arc, time::Duration};

use driftline_runtime::now_ms;
use driftline_store::{
    SourceId, StoreError,
    source::{self, Source},
    source_lease::{self, Lease},
};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{FillRequest, Progress, Shared};
use crate::{
    session::{Done, Session, SessionError},
    source_health::SourceFault,
};

/// The sessions of this process, by source. A stopping session stays until it has ended.
#[derive(Default)]
pub(super) struct RunningSet(Mutex<HashMap<SourceId, Running>>);

struct Running {
    source: Source,
    lease: Lease,
    stop: watch::Sender<bool>,
    fill_requests: mpsc::Sender<FillRequest>,
    progress: watch::Receiver<Progress>,
    /// Closed when the session has ended, however it did.
    ended: watch::Receiver<()>,
}

impl RunningSet {
    /// Runs a session under its lease.
    pub(super) fn begin(&self, shared: &Arc<Shared>, session: Session, lease: Lease) {
        let source = session.source().clone();
        let (stop, stopped) = watch::channel(false);
        let (fill_requests, fill_requests_received) = mpsc::channel(16);
        let (progress_sender, progress) = watch::channel(progress_of(&session));
        let (end, ended) = watch::channel(());
        shared.health.begun(source.id);
        let running = Running {
            source,
            lease,
            stop,
            fill_requests,
            progress,
            ended,
        };
        self.0.lock().insert(lease.source, running);
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let ran = run(
                Arc::clone(&shared),
                session,
                lease,
                stopped,
                fill_requests_received,
                progress_sender,
            );
            if let Err(error) = tokio::spawn(ran).await {
                // A panic, which is a bug of this program.
                shared.halted_by(lease.source, SourceFault::new("bug", &error));
                release(&shared, lease).await;
            }
            drop(end);
        });
    }

    /// Whether a source has a session, also a stopping one.
    pub(super) fn has(&self, source: SourceId) -> bool {
        self.0.lock().contains_key(&source)
    }

    /// The leases of the sessions that have not ended.
    pub(super) fn leases(&self) -> Vec<Lease> {
        let all = self.0.lock();
        let running = all.values().filter(|running| !running.has_ended());
        running.map(|running| running.lease).collect()
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
            let is_obsolete = by_id.get(id).is_none_or(|source| {
                source.paused
                    || source.settings != running.source.settings
                    || source.token != running.source.token
            });
            if is_obsolete {
                running.stop.send_replace(true);
            }
            !running.has_ended()
        });
    }

    /// Stops the session of a lost lease.
    pub(super) fn lost(&self, lease: &Lease) {
        let all = self.0.lock();
        let Some(running) = all.get(&lease.source) else {
            return;
        };
        if running.lease.fence == lease.fence && !running.has_ended() {
            tracing::info!(source = %running.source.name, "another process took the source over");
            running.stop.send_replace(true);
        }
    }

    /// Ends a source's session and waits for it.
    pub(super) async fn end(&self, source: SourceId) {
        let ended = {
            let all = self.0.lock();
            let Some(running) = all.get(&source) else {
                return;
            };
            running.stop.send_replace(true);
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
        let ended: Vec<_> = {
            let all = self.0.lock();
            for running in all.values() {
                running.stop.send_replace(true);
            }
            all.values().map(|running| running.ended.clone()).collect()
        };
        for ended in ended {
            end_of(ended).await;
        }
        self.0.lock().retain(|_, running| !running.has_ended());
    }
}

impl Running {
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
    lease: Lease,
    stop: watch::Receiver<bool>,
    fill_requests: mpsc::Receiver<FillRequest>,
    progress_sender: watch::Sender<Progress>,
) {
    let name = session.source().name.clone();
    let mut following = session.follow();
    let read = read(&shared, session, stop, fill_requests, progress_sender).await;
    following.end().await;
    match read {
        Ok(()) => shared.health.ended(lease.source, now_ms()),
        Err(error) => {
            tracing::info!(source = %name, %error, "reading stopped");
            shared.halted(lease.source, &error);
        }
    }
    release(&shared, lease).await;
}

async fn read(
    shared: &Shared,
    mut session: Session,
    mut stop: watch::Receiver<bool>,
    mut fill_requests: mpsc::Receiver<FillRequest>,
    progress_sender: watch::Sender<Progress>,
) -> Result<(), SessionError> {
    let source = session.source().id;
    while !*stop.borrow() {
        shared.health.step_begins(source, now_ms());
        // Dropping a request in flight is safe; a commit finishes by itself.
        let done = tokio::select! {
            done = session.step(false) => done?,
            _ = stop.changed() => break,
        };
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
            _ = stop.changed() => break,
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

/// Releases a lease. If that fails, the lease is not renewed, and the scanner releases it.
pub(super) async fn release(shared: &Shared, lease: Lease) {
    let id = lease.source;
    let released = shared
        .store
        .write(source::root(id), move |tx| {
            source_lease::release(tx, &lease)
        })
        .await;
    if let Err(error) = released
        && error != StoreError::NoSource
    {
        tracing::info!(source = %id, %error, "a lease was not released; it will expire");
    }
}

const MAX_WAIT_MS: u64 = 60_000;
