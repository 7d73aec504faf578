//! What the server's handlers share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use tokio::sync::watch;

use super::{
    clock::Clock,
    config::ServerConfig,
    timeline::{MAX_LISTS, Timeline},
};
use crate::{
    chance::{hash_text, mix},
    config::WorldConfig,
    faults::{Faults, Verdict},
    status::Status,
    truth::Truth,
    upstream::Traffic,
    world::World,
};

pub(crate) struct Sim {
    pub(crate) clock: Clock,
    config: ServerConfig,
    seed: u64,
    worlds: Mutex<HashMap<Timeline, Arc<Mutex<World>>>>,
    faults: Mutex<Faults>,
    traffic: Mutex<Traffic>,
    stopping: watch::Receiver<bool>,
}

impl Sim {
    pub(crate) fn new(
        mut config: ServerConfig,
        seed: u64,
        clock: Clock,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        let now_ms = clock.now_ms();
        config.world.start_ms = now_ms - config.history_ms.max(0);
        // Faults are timed from the server's start, not from that of history.
        let faults = Faults::new(config.world.faults.clone(), seed, now_ms);
        Self {
            clock,
            config,
            seed,
            worlds: Mutex::default(),
            faults: Mutex::new(faults),
            traffic: Mutex::default(),
            stopping,
        }
    }

    pub(crate) fn world_config(&self) -> &WorldConfig {
        &self.config.world
    }

    /// The timeline's world, made when it is first asked for: what it
    /// publishes does not depend on when that is.
    pub(crate) fn world(&self, timeline: &Timeline) -> Option<Arc<Mutex<World>>> {
        if let Timeline::List(number) = timeline {
            let exists = (1..=self.config.lists.min(MAX_LISTS)).contains(number);
            exists.then_some(())?;
        }
        let mut worlds = lock(&self.worlds);
        if let Some(world) = worlds.get(timeline) {
            return Some(Arc::clone(world));
        }
        let mut config = self.config.world.clone();
        config.lane = timeline.lane();
        if timeline.public_only() {
            config.non_public_share = 0.0;
        }
        if let Timeline::Account(number) = timeline {
            config.only_author = Some(*number);
        }
        let seed = mix(self.seed, hash_text(&timeline.to_string()));
        let world = Arc::new(Mutex::new(World::new(config, seed)));
        worlds.insert(timeline.clone(), Arc::clone(&world));
        Some(world)
    }

    pub(crate) fn page(&self, timeline: &Timeline, request: &PageRequest) -> Option<Vec<Status>> {
        let world = self.world(timeline)?;
        let statuses = lock(&world).page(self.clock.now_ms(), request);
        lock(&self.traffic).posts_served += statuses.len() as u64;
        Some(statuses)
    }

    /// Looks through every timeline that has been read.
    pub(crate) fn look_up(&self, id: &UpstreamId) -> Option<Status> {
        let worlds: Vec<_> = lock(&self.worlds).values().cloned().collect();
        let now_ms = self.clock.now_ms();
        worlds
            .iter()
            .find_map(|world| lock(world).look_up(now_ms, id))
    }

    pub(crate) fn truth(&self, timeline: &Timeline) -> Option<Truth> {
        let world = self.world(timeline)?;
        let truth = lock(&world).truth(self.clock.now_ms());
        Some(truth)
    }

    pub(crate) fn verdict(&self, token: &str, paged: bool) -> Verdict {
        lock(&self.faults).verdict(self.clock.now_ms(), token, paged)
    }

    pub(crate) fn date_ms(&self) -> Option<i64> {
        lock(&self.faults).date_ms(self.clock.now_ms())
    }

    pub(crate) fn traffic(&self) -> Traffic {
        *lock(&self.traffic)
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut Traffic)) {
        add(&mut lock(&self.traffic));
    }

    /// Waits, but not longer than the server lives.
    pub(crate) async fn hold(&self, hold_ms: i64) {
        let hold = Duration::from_millis(u64::try_from(hold_ms).unwrap_or(0));
        let mut stopping = self.stopping.clone();
        tokio::select! {
            () = tokio::time::sleep(hold) => {}
            _ = stopping.wait_for(|&stopping| stopping) => {}
        }
    }
}

/// A panic in a handler leaves no half-made world: nothing there panics
/// between two writes that belong together.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
