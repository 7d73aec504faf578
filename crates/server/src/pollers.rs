//! The pollers: a session for each source that this process holds.

use std::{collections::HashMap, sync::Arc, time::Duration};

use driftline_core::timeline::Machine;
use driftline_store::{
    Root, SourceId, Store, StoreError, lease,
    source::{self, Source},
};
use tokio::{
    sync::{Mutex, mpsc, oneshot, watch},
    task::JoinHandle,
    time::{Instant, sleep_until},
};

use crate::{
    access::Access,
    clock::now_ms,
    session::{Done, Session, SessionError},
};

/// How the pollers hold their sources.
#[derive(Debug, Clone)]
pub struct PollersOptions {
    /// This process's name on its leases: unique among the processes that
    /// share a store.
    pub holder: String,
    /// How long a lease lasts without renewal; another process takes a dead
    /// one's sources over after this long.
    pub lease: Duration,
    /// How often sources are looked for that are free, new, paused or removed.
    pub scan: Duration,
}

impl PollersOptions {
    /// The usual times, for a process of that name.
    pub fn new(holder: impl Into<String>) -> Self {
        Self {
            holder: holder.into(),
            lease: Duration::from_secs(5),
            scan: Duration::from_secs(1),
        }
    }
}

/// How a source stands while it is read.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The source.
    pub source: Arc<Source>,
    /// Its machine.
    pub machine: Arc<Machine>,
}

/// The sessions of this process. Clones are handles to the same ones.
#[derive(Clone)]
pub struct Pollers {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    access: Access,
    options: PollersOptions,
    running: Mutex<HashMap<SourceId, Running>>,
    stop: watch::Sender<bool>,
    scanner: Mutex<Option<JoinHandle<()>>>,
}

struct Running {
    source: Source,
    stop: watch::Sender<bool>,
    wishes: mpsc::Sender<Wish>,
    progress: watch::Receiver<Progress>,
    task: JoinHandle<()>,
}

struct Wish {
    low: driftline_core::upstream_id::UpstreamId,
    answer: oneshot::Sender<bool>,
}

impl Pollers {
    /// Begins to read every source of the store that no other process holds.
    pub fn start(store: Store, access: Access, options: PollersOptions) -> Self {
        let (stop, _) = watch::channel(false);
        let pollers = Self {
            shared: Arc::new(Shared {
                store,
                access,
                options,
                running: Mutex::new(HashMap::new()),
                stop,
                scanner: Mutex::new(None),
            }),
        };
        let scanner = tokio::spawn(scan(Arc::clone(&pollers.shared)));
        if let Ok(mut slot) = pollers.shared.scanner.try_lock() {
            *slot = Some(scanner);
        }
        pollers
    }

    /// How the sources of this process stand.
    pub async fn progress(&self) -> Vec<Progress> {
        let running = self.shared.running.lock().await;
        let mut all: Vec<Progress> = running
            .values()
            .map(|running| running.progress.borrow().clone())
            .collect();
        all.sort_by_key(|progress| progress.source.id);
        all
    }

    /// Whether this process refreshes stored posts besides.
    pub fn refreshes(&self) -> bool {
        self.shared.access.refreshes
    }

    /// Asks a source of this process to fill an open gap, named by its lowest
    /// ID. `None` if this process does not read the source.
    pub async fn fill(
        &self,
        source: SourceId,
        low: driftline_core::upstream_id::UpstreamId,
    ) -> Option<bool> {
        let wishes = {
            let running = self.shared.running.lock().await;
            running.get(&source)?.wishes.clone()
        };
        let (answer, answered) = oneshot::channel();
        wishes.send(Wish { low, answer }).await.ok()?;
        answered.await.ok()
    }

    /// Ends reading one source now, after the commit in hand, and gives its
    /// lease back. It begins again at the next scan unless it is paused.
    pub async fn release(&self, source: SourceId) {
        let running = self.shared.running.lock().await.remove(&source);
        if let Some(running) = running {
            running.stop.send_replace(true);
            let _ = running.task.await;
        }
    }

    /// Ends all sessions, each after the commit in hand, and gives their
    /// leases back.
    pub async fn stop(&self) {
        self.shared.stop.send_replace(true);
        if let Some(scanner) = self.shared.scanner.lock().await.take() {
            let _ = scanner.await;
        }
        let all: Vec<Running> = self
            .shared
            .running
            .lock()
            .await
            .drain()
            .map(|(_, r)| r)
            .collect();
        for running in &all {
            running.stop.send_replace(true);
        }
        for running in all {
            let _ = running.task.await;
        }
    }
}

async fn scan(shared: Arc<Shared>) {
    let mut stop = shared.stop.subscribe();
    let mut renewed = Instant::now();
    while !*stop.borrow() {
        if let Err(error) = scan_once(&shared, &mut renewed).await {
            tracing::warn!(%error, "the store cannot be read; trying again");
        }
        tokio::select! {
            _ = stop.changed() => {}
            () = tokio::time::sleep(shared.options.scan) => {}
        }
    }
}

async fn scan_once(shared: &Arc<Shared>, renewed: &mut Instant) -> Result<(), StoreError> {
    if renewed.elapsed() >= shared.options.lease / 3 {
        let (holder, ttl_ms) = (shared.options.holder.clone(), ttl_ms(shared));
        shared
            .store
            .write(Root::none(), move |tx| {
                lease::renew_all(tx, &holder, ttl_ms)
            })
            .await?;
        *renewed = Instant::now();
    }
    let (sources, free) = shared
        .store
        .read(|tx| Ok::<_, StoreError>((source::list(tx)?, lease::free(tx)?)))
        .await?;
    let mut running = shared.running.lock().await;
    end_sessions(&mut running, &sources).await;
    for source in sources {
        let is_read = source.timeline != source::TRACKED;
        if !is_read || !free.contains(&source.id) || running.contains_key(&source.id) {
            continue;
        }
        let (id, holder, ttl_ms) = (source.id, shared.options.holder.clone(), ttl_ms(shared));
        let lease = shared
            .store
            .write(source::root(id), move |tx| {
                lease::claim(tx, id, &holder, ttl_ms)
            })
            .await?;
        let Some(lease) = lease else { continue };
        match Session::open(
            shared.store.clone(),
            &shared.access,
            source.clone(),
            Some(lease.fence),
        )
        .await
        {
            Ok(session) => {
                tracing::info!(source = %source.name, fence = lease.fence, "reading");
                running.insert(id, begin(shared, session, source, lease));
            }
            Err(error) => {
                tracing::warn!(source = %source.name, %error, "cannot be read");
                give_back(shared, lease).await;
            }
        }
    }
    Ok(())
}

/// Ends the sessions of sources that are gone, paused or changed, and forgets
/// those that ended by themselves.
async fn end_sessions(running: &mut HashMap<SourceId, Running>, sources: &[Source]) {
    let by_id: HashMap<SourceId, &Source> =
        sources.iter().map(|source| (source.id, source)).collect();
    let ended: Vec<SourceId> = running
        .iter()
        .filter(|(id, running)| {
            running.task.is_finished()
                || by_id.get(id).is_none_or(|source| {
                    source.paused
                        || source.settings != running.source.settings
                        || source.token != running.source.token
                })
        })
        .map(|(id, _)| *id)
        .collect();
    for id in ended {
        if let Some(running) = running.remove(&id) {
            running.stop.send_replace(true);
            let _ = running.task.await;
        }
    }
}

fn begin(shared: &Arc<Shared>, session: Session, source: Source, lease: lease::Lease) -> Running {
    let (stop, stopped) = watch::channel(false);
    let (wishes, wished) = mpsc::channel(16);
    let (tell, progress) = watch::channel(progress_of(&session));
    let shared = Arc::clone(shared);
    let task = tokio::spawn(async move {
        let name = session.source().name.clone();
        let mut following = session.follow();
        if let Err(error) = read(session, stopped, wished, tell).await {
            tracing::warn!(source = %name, %error, "stopped reading");
        }
        following.end().await;
        give_back(&shared, lease).await;
    });
    Running {
        source,
        stop,
        wishes,
        progress,
        task,
    }
}

async fn read(
    mut session: Session,
    mut stop: watch::Receiver<bool>,
    mut wishes: mpsc::Receiver<Wish>,
    tell: watch::Sender<Progress>,
) -> Result<(), SessionError> {
    while !*stop.borrow() {
        // A request in flight may be dropped; a commit finishes by itself.
        let done = tokio::select! {
            done = session.step(false) => done?,
            _ = stop.changed() => break,
        };
        tell.send_replace(progress_of(&session));
        let Done::Wait { until_ms } = done else {
            continue;
        };
        let wait_ms = u64::try_from(until_ms.saturating_sub(now_ms()))
            .unwrap_or(0)
            .min(60_000);
        tokio::select! {
            () = sleep_until(Instant::now() + Duration::from_millis(wait_ms)) => {}
            Some(wish) = wishes.recv() => {
                let _ = wish.answer.send(session.want(&wish.low).await?);
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

async fn give_back(shared: &Arc<Shared>, lease: lease::Lease) {
    let id = lease.source;
    let given = shared
        .store
        .write(source::root(id), move |tx| lease::release(tx, &lease))
        .await;
    if let Err(error) = given
        && error != StoreError::NoSource
    {
        tracing::warn!(%error, "a lease was not given back; it ends by itself");
    }
}

fn ttl_ms(shared: &Shared) -> i64 {
    i64::try_from(shared.options.lease.as_millis()).unwrap_or(i64::MAX)
}
