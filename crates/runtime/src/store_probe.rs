//! Probes of the store's ability to read and write.

use std::{sync::Arc, time::Duration};

use driftline_store::{Root, Store, StoreError, nonce, touch};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

/// Probes a store with a read and a write, at most once a second and only once at a time. Clones
/// share the results.
#[derive(Clone)]
pub struct StoreProbe {
    store: Store,
    state: Arc<Mutex<State>>,
}

/// The reason why a store is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProbeError {
    /// The store cannot be read.
    #[error("The store cannot be read: {0}")]
    Read(StoreError),
    /// The store can be read but not written.
    #[error("The store cannot be written: {0}")]
    Write(StoreError),
    /// The store has not answered for some time.
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
    /// Closed when the answer exists.
    ended: watch::Receiver<()>,
}

impl StoreProbe {
    /// A probe for a store that has not been probed yet.
    pub fn new(store: Store) -> Self {
        Self {
            store,
            state: Arc::default(),
        }
    }

    /// Checks within a second that the store can be read and written.
    ///
    /// A slower store keeps its last answer for some time, because a large commit or a checkpoint
    /// is not an outage.
    ///
    /// # Errors
    /// [`ProbeError`] if the last probe failed, or the store has not answered for some time.
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

    /// Starts a probe unless the last answer is fresh. Returns a receiver for the end of the
    /// running probe.
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

/// The time for which an answer is valid.
const FRESH: Duration = Duration::from_secs(1);
/// Readiness checks usually time out after a second.
const MAX_WAIT: Duration = Duration::from_millis(900);
/// A store that does not answer for this time is out.
const SILENCE: Duration = Duration::from_secs(3);
