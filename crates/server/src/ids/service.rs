//! The service from its start to its end.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use driftline_id::{ClockPolicy, StartError, clock::Clock as _};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{
    HoldError, Issuer, NodeChoice, SanityError, SharedClock, holding::Holding, peers::Peers,
    sanity, status::Offsets, watcher,
};

/// How the service is run.
#[derive(Clone)]
pub struct Settings {
    /// Whose node it is.
    pub node: NodeChoice,
    /// What to do while the clock does not allow an ID.
    pub policy: ClockPolicy,
    /// Services of the same layout and datacenter that are asked about their nodes and clocks,
    /// each as `HOST:PORT`.
    pub peers: Vec<String>,
    /// Whether IDs are given out without having asked them.
    pub skip_sanity_check: bool,
}

/// A running service: its node is held, and IDs can be had from its [`Issuer`].
pub struct Service {
    issuer: Arc<Issuer>,
    offsets: Arc<Offsets>,
    holding: Arc<Mutex<Option<Holding>>>,
    stop: watch::Sender<bool>,
    lost: watch::Receiver<bool>,
    watching: JoinHandle<()>,
}

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// There is no node for it.
    #[error("{0}")]
    Hold(#[from] HoldError),
    /// The clock shows no time that the layout has.
    #[error("{0}")]
    Start(#[from] StartError),
    /// It does not go together with its peers.
    #[error("{0}")]
    Sanity(#[from] SanityError),
    /// It was told to stop before it had started.
    #[error("the service was stopped before it had started")]
    Stopped,
    /// A thread died.
    #[error("a thread of the service died")]
    Died,
}

impl Service {
    /// Takes the node, asks the peers, and waits until the node's window has begun.
    ///
    /// A peer that cannot be reached is warned of and not counted: where all services start at
    /// once, each would wait for the others.
    ///
    /// # Errors
    /// [`ServiceError`]. The node is given back.
    pub async fn start(
        settings: Settings,
        clock: SharedClock,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<Self, ServiceError> {
        let Settings {
            node,
            policy,
            peers,
            skip_sanity_check,
        } = settings;
        // Before anything is recorded: an epoch of the wrong size would be recorded too.
        let now_ms = clock.exact_us().div_euclid(1_000);
        let expressible = node.layout().checked_smallest_at(now_ms);
        expressible.map_err(StartError::Time)?;
        let of_thread = clock.clone();
        let (holding, window) = blocking(move || node.take(&of_thread)).await??;
        let from_us = window.from_us();
        let issuer = Arc::new(Issuer::new(window, clock, policy)?);
        let offsets = Arc::new(Offsets::new(&issuer));
        let holding = Arc::new(Mutex::new(Some(holding)));
        let peers = Peers::new(peers);
        let ready = async {
            if !skip_sanity_check {
                let reached = peers.ask(&issuer).await;
                sanity::check(&issuer, &reached)?;
                offsets.set(sanity::mean_offset_ms(&reached));
            }
            wait_for_window(&issuer, from_us).await;
            Ok::<(), ServiceError>(())
        };
        let outcome = tokio::select! {
            outcome = ready => outcome,
            // Nobody can tell it any more: then nobody does.
            Ok(_) = stopped.wait_for(|stop| *stop) => Err(ServiceError::Stopped),
        };
        if let Err(error) = outcome {
            give_back(&issuer, &holding).await;
            return Err(error);
        }
        let (stop, told) = watch::channel(false);
        let (notify_lost, lost) = watch::channel(false);
        let watching = tokio::spawn(watcher::watch(
            Arc::clone(&issuer),
            Arc::clone(&offsets),
            Arc::clone(&holding),
            peers,
            watcher::Ends {
                stopped: told,
                lost: notify_lost,
            },
        ));
        Ok(Self {
            issuer,
            offsets,
            holding,
            stop,
            lost,
            watching,
        })
    }

    /// Where IDs come from.
    pub const fn issuer(&self) -> &Arc<Issuer> {
        &self.issuer
    }

    /// Waits until the node is somebody else's, and IDs are refused for good; usually for ever.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// How far off the clock is.
    pub(super) const fn offsets(&self) -> &Arc<Offsets> {
        &self.offsets
    }

    /// Stops giving out IDs, and gives the node back as used up to the last of them.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if self.watching.await.is_err() {
            tracing::error!("the watch over the clock and the window panicked");
        }
        give_back(&self.issuer, &self.holding).await;
    }
}

async fn wait_for_window(issuer: &Issuer, from_us: i64) {
    loop {
        let ahead_us = from_us.saturating_sub(issuer.now_us());
        if ahead_us <= 0 {
            return;
        }
        tracing::info!(
            ahead_ms = ahead_us / 1_000,
            "waiting until times that the node's last holder may have used are over"
        );
        let pause = Duration::from_micros(ahead_us.unsigned_abs());
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
    }
}

async fn give_back(issuer: &Issuer, holding: &Mutex<Option<Holding>>) {
    let held = holding
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let (Some(retired), Some(held)) = (issuer.retire(), held) else {
        return;
    };
    let given = timeout(MAX_GIVING, blocking(move || held.give_back(retired)));
    let error = match given.await {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(error))) => error,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the store did not answer in time".to_owned(),
    };
    tracing::warn!(
        %error,
        "the node was not given back: its next holder may have to wait some seconds"
    );
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServiceError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| ServiceError::Died)
}

const MAX_GIVING: Duration = Duration::from_secs(5);
/// Clocks step.
const MAX_PAUSE: Duration = Duration::from_millis(250);
