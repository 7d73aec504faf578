//! What the server's handlers share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use driftline_core::{answer::PageRequest, api::Api, post::Counts, upstream_id::UpstreamId};
use tokio::sync::watch;

use super::{
    clock::Clock,
    config::ServerConfig,
    refusal::Refusal,
    timeline::{MAX_LISTS, Timeline},
};
use crate::{
    config::{BatchAbility, DEFAULT_PAGE_LIMIT},
    faults::Faults,
    faults_config::FaultsConfig,
    layout::IdLayout,
    rng::{hash_text, mix},
    status::Status,
    upstream::Traffic,
    world::{Cut, Found, World, WorldEvent, answer_order},
};

pub(crate) struct Sim {
    pub(crate) clock: Clock,
    pub(crate) config: ServerConfig,
    pub(crate) seed: u64,
    worlds: Mutex<HashMap<Timeline, Arc<Mutex<World>>>>,
    pub(crate) faults: Mutex<Faults>,
    pub(crate) traffic: Mutex<Traffic>,
    pub(crate) stopping: watch::Receiver<bool>,
    /// How many streams were ever opened.
    pub(crate) opened: AtomicU64,
    /// Each open stream holds a receiver, and breaks at a message.
    pub(crate) breaks: watch::Sender<()>,
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
        if config.api != Api::Mastodon {
            config.world.layout = IdLayout::Twitter;
            if config.world.page_limit == DEFAULT_PAGE_LIMIT {
                config.world.page_limit = TWITTER_PAGE_LIMIT;
            }
        }
        // Faults are timed from the server's start, not from that of history.
        let faults = Faults::new(config.world.faults.clone(), seed, now_ms)
            .with_quirks(config.world.quirks.clone());
        Self {
            clock,
            config,
            seed,
            worlds: Mutex::default(),
            faults: Mutex::new(faults),
            traffic: Mutex::default(),
            stopping,
            opened: AtomicU64::new(0),
            breaks: watch::Sender::new(()),
        }
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
        config.quirks = config.quirks.of_kind(timeline.endpoint());
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

    /// A page as a token sees it.
    pub(crate) fn cut(
        &self,
        timeline: &Timeline,
        token: &str,
        request: &PageRequest,
    ) -> Option<Cut> {
        let world = self.world(timeline)?;
        let now_ms = self.clock.now_ms();
        let mut cut = lock(&world).cut(now_ms, request);
        let faults = lock(&self.faults);
        cut.statuses
            .retain(|status| !faults.hides(now_ms, token, &status.id));
        lock(&self.traffic).posts_served += cut.statuses.len() as u64;
        Some(cut)
    }

    /// Whether several posts can be looked up at once.
    pub(crate) fn check_batches(&self) -> Result<(), Refusal> {
        match (self.config.world.batches.ability, self.config.api) {
            (BatchAbility::Served, _) => Ok(()),
            (BatchAbility::NotFound, Api::Twitter) => Err(Refusal::NoSuchPath),
            (BatchAbility::NotFound, _) => Err(Refusal::NotFound),
            (BatchAbility::MethodNotAllowed, _) => Err(Refusal::MethodNotAllowed),
        }
    }

    /// What a token sees of several posts, each once, in the order of the answer. Refused if one
    /// of them is poison.
    pub(crate) fn find_several(
        &self,
        token: &str,
        ids: &[UpstreamId],
    ) -> Result<Vec<(UpstreamId, Found)>, Refusal> {
        self.check_token(token)?;
        self.check_poison(ids)?;
        let ids = answer_order(ids, self.config.world.batches.shuffled).into_iter();
        let found: Vec<_> = ids.map(|id| (id.clone(), self.find(token, &id))).collect();
        let is_shown = |(_, found): &&(_, Found)| matches!(found, Found::Shown(_));
        let shown = found.iter().filter(is_shown).count();
        self.count(|traffic| traffic.posts_refreshed += shown as u64);
        Ok(found)
    }

    /// What a token sees of a post. Refused if it is poison.
    pub(crate) fn find_one(&self, token: &str, id: &UpstreamId) -> Result<Found, Refusal> {
        self.check_token(token)?;
        self.check_poison(std::slice::from_ref(id))?;
        Ok(self.find(token, id))
    }

    /// A post of any timeline that has been read as it was before its edit, if it was edited.
    pub(crate) fn before_edit(&self, id: &UpstreamId) -> Option<Status> {
        let now_ms = self.clock.now_ms();
        let mut worlds = self.worlds().into_iter();
        worlds.find_map(|world| lock(&world).before_edit(now_ms, id))
    }

    fn check_token(&self, token: &str) -> Result<(), Refusal> {
        match self.config.world.quirks.refuses_look_up(token) {
            true => Err(Refusal::Unauthorized),
            false => Ok(()),
        }
    }

    /// Looks through every timeline that has been read.
    fn find(&self, token: &str, id: &UpstreamId) -> Found {
        let now_ms = self.clock.now_ms();
        let worlds = self.worlds().into_iter();
        let found = worlds
            .map(|world| lock(&world).answer_look_up(now_ms, id))
            .find(|found| *found != Found::Absent);
        match found.unwrap_or(Found::Absent) {
            Found::Shown(_) if self.hides(now_ms, token, id) => Found::Hidden,
            found => found,
        }
    }

    /// What is counted on a post of any timeline that has been read.
    pub(crate) fn counts_at(&self, now_ms: i64, id: &UpstreamId) -> Option<Counts> {
        self.worlds()
            .iter()
            .find_map(|world| lock(world).counts_at(now_ms, id))
    }

    /// What happened in a timeline after a time and up to another.
    pub(crate) fn events(
        &self,
        timeline: &Timeline,
        after_ms: i64,
        until_ms: i64,
    ) -> Vec<WorldEvent> {
        let world = self.world(timeline);
        world.map_or_else(Vec::new, |world| lock(&world).events(after_ms, until_ms))
    }

    fn worlds(&self) -> Vec<Arc<Mutex<World>>> {
        lock(&self.worlds).values().cloned().collect()
    }

    fn check_poison(&self, ids: &[UpstreamId]) -> Result<(), Refusal> {
        let Some(answer) = lock(&self.faults).poisoned(ids) else {
            return Ok(());
        };
        self.count(|traffic| traffic.failures += 1);
        Err(Refusal::poison(answer))
    }

    pub(crate) fn is_revoked(&self, token: &str) -> bool {
        lock(&self.faults).is_revoked(self.clock.now_ms(), token)
    }

    /// Refuses posts above the cap.
    pub(crate) fn check_cap(&self) -> Result<(), Refusal> {
        let faults = lock(&self.faults);
        match faults.config().posts_cap {
            Some(cap) if faults.is_capped(self.clock.now_ms()) => {
                self.count(|traffic| traffic.failures += 1);
                Err(Refusal::Capped {
                    forbidden: cap.forbidden,
                })
            }
            _ => Ok(()),
        }
    }

    /// Counts posts that were given out against the cap.
    pub(crate) fn give(&self, posts: usize) {
        lock(&self.faults).give(self.clock.now_ms(), posts);
    }

    pub(crate) fn faults_config(&self) -> FaultsConfig {
        lock(&self.faults).config().clone()
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut Traffic)) {
        add(&mut lock(&self.traffic));
    }

    pub(crate) fn hides(&self, now_ms: i64, token: &str, id: &UpstreamId) -> bool {
        lock(&self.faults).hides(now_ms, token, id)
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

/// The most that Twitter puts on a page; X's version 2 knows limits of its
/// own for each endpoint.
const TWITTER_PAGE_LIMIT: u16 = 200;
