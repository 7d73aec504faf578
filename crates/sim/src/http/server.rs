//! The server's life.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use driftline_core::{post::Counts, upstream_id::UpstreamId};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle, time::timeout};

use super::{
    clock::Clock,
    config::ServerConfig,
    routes::router,
    sim::{Sim, lock},
    timeline::Timeline,
};
use crate::{faults_config::FaultsConfig, truth::Truth, upstream::Traffic, world::World};

/// A simulated upstream that answers on a loopback port until it is shut
/// down or dropped.
pub struct SimServer {
    address: SocketAddr,
    sim: Arc<Sim>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<io::Result<()>>,
}

impl SimServer {
    /// Listens on a free loopback port; publishing starts now, or
    /// `history_ms` ago. A [`crate::WorldConfig`] alone will do.
    ///
    /// # Errors
    /// If no loopback port is available.
    pub async fn start(
        config: impl Into<ServerConfig>,
        seed: u64,
        clock: Clock,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (stop, stopping) = watch::channel(false);
        let sim = Arc::new(Sim::new(config.into(), seed, clock, stopping.clone()));
        let serving = tokio::spawn(
            axum::serve(listener, router(Arc::clone(&sim)))
                .with_graceful_shutdown(stopped(stopping))
                .into_future(),
        );
        Ok(Self {
            address,
            sim,
            stop,
            serving,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A timeline's world; `None` for a list that does not exist. Whoever
    /// holds its lock holds up the server.
    pub fn world(&self, timeline: &Timeline) -> Option<Arc<Mutex<World>>> {
        self.sim.world(timeline)
    }

    /// Every post of a timeline that was ever visible up to now; `None` for a
    /// list that does not exist.
    pub fn truth(&self, timeline: &Timeline) -> Option<Truth> {
        let world = self.sim.world(timeline)?;
        let truth = lock(&world).truth(self.sim.clock.now_ms());
        Some(truth)
    }

    /// Ends the posts of a timeline; `false` for a list that does not exist. Edits, deletions and counts go on.
    pub fn fall_silent(&self, timeline: &Timeline) -> bool {
        let world = self.sim.world(timeline);
        let Some(world) = world else { return false };
        lock(&world).fall_silent(self.sim.clock.now_ms());
        true
    }

    /// What is truly counted on a post at a time, Unix ms (see
    /// [`World::counts_at`]), of any timeline that has been read.
    pub fn counts_at(&self, now_ms: i64, id: &UpstreamId) -> Option<Counts> {
        self.sim.counts_at(now_ms, id)
    }

    /// Changes what goes wrong from now on.
    pub fn change_faults(&self, change: impl FnOnce(&mut FaultsConfig)) {
        lock(&self.sim.faults).change(change);
    }

    /// How many streams are open.
    pub fn open_streams(&self) -> usize {
        self.sim.breaks.receiver_count()
    }

    /// Breaks all streams that are open.
    pub fn drop_streams(&self) {
        self.sim.breaks.send_replace(());
    }

    /// What all clients asked and were given.
    pub fn traffic(&self) -> Traffic {
        *lock(&self.sim.traffic)
    }

    /// Ends stalls, lets answers in hand go out, and stops: within two
    /// seconds, whatever clients do.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        if timeout(TIMEOUT, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
    }
}

impl Drop for SimServer {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// A dropped sender stops the server too.
async fn stopped(mut stopping: watch::Receiver<bool>) {
    let _ = stopping.wait_for(|&stopping| stopping).await;
}

const TIMEOUT: Duration = Duration::from_secs(2);
