//! Probes whether the store can be read and written.

use std::{sync::Arc, time::Duration};

use driftline_store::{Root, Store, StoreError, nonce, touch};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// Probes a store with a read and a write, at most once a second and once at a time, however many
/// callers there are. Clones share the results.
#[derive(Clone)]
pub struct StoreProbe {
    store: Store,
    state: Arc<Mutex<State>>,
}

/// Why a store is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// It cannot be read.
    #[error("The store cannot be read: {0}")]
    Read(StoreError),
    /// It can be read, and not written.
    #[error("The store cannot be written: {0}")]
    Write(StoreError),
    /// It has not answered for a while.
    #[error("The store does not answer")]
    Silent,
}

#[derive(Default)]
struct State {
    /// The last answer and its time.
    last: Option<(Instant, Result<(), ProbeError>)>,
    running: Option<RunningProbe>,
}

struct RunningProbe {
    since: Instant,
    /// Closed with the answer.
    ended: watch::Receiver<()>,
}

impl StoreProbe {
    /// A probe of this store, which has not been probed yet.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            state: Arc::default(),
        }
    }

    /// Whether the store can be read and written, within a second.
    ///
    /// A slower store keeps its last answer for a while: a large commit or a checkpoint is no outage.
    pub async fn check(&self) -> Result<(), ProbeError> {
        if let Some(mut ended) = self.ask() {
            let _ = timeout(MAX_WAIT, async { while ended.changed().await.is_ok() {} }).await;
        }
        let state = self.state.lock();
        let is_silent = state
            .running
            .as_ref()
            .is_some_and(|running| running.since.elapsed() >= SILENCE);
        match &state.last {
            Some((_, last)) if !is_silent => last.clone(),
            _ => Err(ProbeError::Silent),
        }
    }

    /// Starts a probe unless the last answer is fresh. Returns the end of the running probe.
    fn ask(&self) -> Option<watch::Receiver<()>> {
        let mut state = self.state.lock();
        if let Some(running) = &state.running {
            return Some(running.ended.clone());
        }
        if matches!(&state.last, Some((at, _)) if at.elapsed() < FRESH) {
            return None;
        }
        let (end, ended) = watch::channel(());
        state.running = Some(RunningProbe {
            since: Instant::now(),
            ended: ended.clone(),
        });
        let probe = self.clone();
        tokio::spawn(async move {
            let answer = read_and_write(&probe.store).await;
            let mut state = probe.state.lock();
            state.last = Some((Instant::now(), answer));
            state.running = None;
            drop(end);
        });
        Some(ended)
    }
}

async fn read_and_write(store: &Store) -> Result<(), ProbeError> {
    store.read(nonce).await.map_err(ProbeError::Read)?;
    let touched = store.write(Root::none(), touch).await;
    touched.map_err(ProbeError::Write)
}

/// How long an answer is valid.
const FRESH: Duration = Duration::from_secs(1);
/// Readiness checks usually time out after a second.
const MAX_WAIT: Duration = Duration::from_millis(900);
/// A store that has not answered for so long is out.
const SILENCE: Duration = Duration::from_secs(3);
