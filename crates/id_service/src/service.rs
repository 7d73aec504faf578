//! Starts and stops the ID service.

use std::{sync::Arc, time::Duration};

use driftline_id::{ClockPolicy, StartError, clock::Clock as _};
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use super::{
    Issuer, NodeChoice, ServiceError, SharedClock, blocking::blocking, held_node::HeldNode,
    issuer_status::ClockOffsets, peers::Peers, sanity, watcher,
};

/// The settings of the service.
#[derive(Clone)]
pub struct Settings {
    /// Where the node comes from.
    pub node: NodeChoice,
    /// What to do while the clock allows no ID.
    pub policy: ClockPolicy,
    /// Services of the same layout and datacenter whose nodes and clocks are checked, each as
    /// `HOST:PORT`.
    pub peers: Vec<String>,
    /// Whether to issue IDs without the sanity check of the peers.
    pub skip_sanity_check: bool,
}

/// A running service. It holds its node, and its [`Issuer`] issues IDs.
pub struct Service {
    issuer: Arc<Issuer>,
    offsets: Arc<ClockOffsets>,
    held_node: Arc<Mutex<Option<HeldNode>>>,
    stop: watch::Sender<bool>,
    lost: watch::Receiver<bool>,
    watching: JoinHandle<()>,
}

impl Service {
    /// Leases the node, checks the peers, and waits until the node's window has begun.
    ///
    /// Unreachable peers only cause a warning: if all services start at once, each would wait for the
    /// others.
    ///
    /// # Errors
    /// [`ServiceError`]. The node is released.
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
        let (held_node, window) = blocking(move || node.take(&of_thread)).await??;
        let from_us = window.from_us();
        let issuer = Arc::new(Issuer::new(window, clock, policy)?);
        let offsets = Arc::new(ClockOffsets::new(&issuer));
        let held_node = Arc::new(Mutex::new(Some(held_node)));
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
            // A dropped sender is no stop.
            Ok(_) = stopped.wait_for(|stop| *stop) => Err(ServiceError::Stopped),
        };
        if let Err(error) = outcome {
            release(&issuer, &held_node).await;
            return Err(error);
        }
        let (stop, watcher_stopped) = watch::channel(false);
        let (notify_lost, lost) = watch::channel(false);
        let watching = tokio::spawn(watcher::watch(
            Arc::clone(&issuer),
            Arc::clone(&offsets),
            Arc::clone(&held_node),
            peers,
            watcher_stopped,
            notify_lost,
        ));
        Ok(Self {
            issuer,
            offsets,
            held_node,
            stop,
            lost,
            watching,
        })
    }

    /// The issuer.
    pub const fn issuer(&self) -> &Arc<Issuer> {
        &self.issuer
    }

    /// Waits until another process holds the node and IDs are refused for good; normally for ever.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        if lost.wait_for(|lost| *lost).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// How far the clock is off.
    pub(super) const fn offsets(&self) -> &Arc<ClockOffsets> {
        &self.offsets
    }

    /// Stops issuing IDs, and releases the node with its last used time.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if self.watching.await.is_err() {
            tracing::error!("the watcher of the clock and the window panicked");
        }
        release(&self.issuer, &self.held_node).await;
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
            "waiting for the end of the times that the node's last holder may have used"
        );
        let pause = Duration::from_micros(ahead_us.unsigned_abs());
        tokio::time::sleep(pause.min(MAX_PAUSE)).await;
    }
}

async fn release(issuer: &Issuer, held_node: &Mutex<Option<HeldNode>>) {
    let held = held_node.lock().take();
    let (Some(retired), Some(held)) = (issuer.retire(), held) else {
        return;
    };
    let released = timeout(MAX_RELEASE, blocking(move || held.release(retired)));
    let error = match released.await {
        Ok(Ok(Ok(()))) => return,
        Ok(Ok(Err(error))) => error,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the store did not answer in time".to_owned(),
    };
    tracing::warn!(
        %error,
        "the node was not released: its next holder may have to wait some seconds"
    );
}

const MAX_RELEASE: Duration = Duration::from_secs(5);
/// Clocks step.
const MAX_PAUSE: Duration = Duration::from_millis(250);
