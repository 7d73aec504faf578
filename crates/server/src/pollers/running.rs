//! The sessions that run, and how one is run.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use driftline_store::{
    SourceId, StoreError,
    lease::{self, Lease},
    source::{self, Source},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{FillRequest, Progress, Shared};
use crate::{
    clock::now_ms,
    session::{Done, Session, SessionError},
};

/// The sessions of this process, by source. One that is told to end stays until it has.
#[derive(Default)]
pub(super) struct RunningSet {
    all: Mutex<HashMap<SourceId, Running>>,
}

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
        let (tell, progress) = watch::channel(progress_of(&session));
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
        self.lock().insert(lease.source, running);
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            let ran = run(
                Arc::clone(&shared),
                session,
                lease,
                stopped,
                fill_requests_received,
                tell,
            );
            if let Err(error) = tokio::spawn(ran).await {
                shared.halted_by_bug(lease.source, &error);
                give_back(&shared, lease).await;
            }
            drop(end);
        });
    }

    /// Whether a source has a session, also one that is ending.
    pub(super) fn has(&self, source: SourceId) -> bool {
        self.lock().contains_key(&source)
    }

    /// The leases of the sessions that have not ended.
    pub(super) fn leases(&self) -> Vec<Lease> {
        let all = self.lock();
        let running = all.values().filter(|running| !running.has_ended());
        running.map(|running| running.lease).collect()
    }

    pub(super) fn progress(&self) -> Vec<Progress> {
        let all = self.lock();
        let mut progress: Vec<Progress> = all
            .values()
            .map(|running| running.progress.borrow().clone())
            .collect();
        progress.sort_by_key(|progress| progress.source.id);
        progress
    }

    pub(super) fn fill_requests(&self, source: SourceId) -> Option<mpsc::Sender<FillRequest>> {
        Some(self.lock().get(&source)?.fill_requests.clone())
    }

    /// Tells sessions to end whose sources are gone, paused or changed, and forgets those that have
    /// ended.
    pub(super) fn sort_out(&self, sources: &[Source]) {
        let by_id: HashMap<SourceId, &Source> =
            sources.iter().map(|source| (source.id, source)).collect();
        self.lock().retain(|id, running| {
            let is_over = by_id.get(id).is_none_or(|source| {
                source.paused
                    || source.settings != running.source.settings
                    || source.token != running.source.token
            });
            if is_over {
                running.stop.send_replace(true);
            }
            !running.has_ended()
        });
    }

    /// Tells a session to end whose lease is somebody else's.
    pub(super) fn lost(&self, lease: &Lease) {
        let all = self.lock();
        let Some(running) = all.get(&lease.source) else {
            return;
        };
        if running.lease.fence == lease.fence && !running.has_ended() {
            tracing::info!(source = %running.source.name, "another process took it over");
            running.stop.send_replace(true);
        }
    }

    /// Ends a source's session and waits for it.
    pub(super) async fn end(&self, source: SourceId) {
        let ended = {
            let all = self.lock();
            let Some(running) = all.get(&source) else {
                return;
            };
            running.stop.send_replace(true);
            running.ended.clone()
        };
        end_of(ended).await;
        let mut all = self.lock();
        if all.get(&source).is_some_and(Running::has_ended) {
            all.remove(&source);
        }
    }

    /// Ends all sessions and waits for them.
    pub(super) async fn end_all(&self) {
        let ended: Vec<_> = {
            let all = self.lock();
            for running in all.values() {
                running.stop.send_replace(true);
            }
            all.values().map(|running| running.ended.clone()).collect()
        };
        for ended in ended {
            end_of(ended).await;
        }
        self.lock().retain(|_, running| !running.has_ended());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SourceId, Running>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
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
    tell: watch::Sender<Progress>,
) {
    let name = session.source().name.clone();
    let mut following = session.follow();
    let read = read(&shared, session, stop, fill_requests, tell).await;
    following.end().await;
    match read {
        Ok(()) => shared.health.ended(lease.source, now_ms()),
        Err(error) => {
            tracing::info!(source = %name, %error, "stopped reading");
            shared.halted(lease.source, &error);
        }
    }
    give_back(&shared, lease).await;
}

async fn read(
    shared: &Shared,
    mut session: Session,
    mut stop: watch::Receiver<bool>,
    mut fill_requests: mpsc::Receiver<FillRequest>,
    tell: watch::Sender<Progress>,
) -> Result<(), SessionError> {
    let source = session.source().id;
    while !*stop.borrow() {
        shared.health.step_begins(source, now_ms());
        // A request in flight may be dropped; a commit finishes by itself.
        let done = tokio::select! {
            done = session.step(false) => done?,
            _ = stop.changed() => break,
        };
        let now = now_ms();
        shared
            .health
            .step_ended(source, session.machine(), &done, now);
        tell.send_replace(progress_of(&session));
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

/// Gives a lease back. Where that fails it is not renewed, and the scanner takes it back.
pub(super) async fn give_back(shared: &Shared, lease: Lease) {
    let id = lease.source;
    let given = shared
        .store
        .write(source::root(id), move |tx| lease::release(tx, &lease))
        .await;
    if let Err(error) = given
        && error != StoreError::NoSource
    {
        tracing::info!(source = %id, %error, "a lease was not given back; it ends by itself");
    }
}

const MAX_WAIT_MS: u64 = 60_000;
