//! The events that one connection gets.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::watch;

use super::channel::{Channel, StreamParams};
use crate::{
    http::{refusal::Refusal, sim::Sim},
    rng::{Rng, hash_text, mix},
    streams_config::StreamsConfig,
    world::Happening,
};

/// One connection: its channel, and what is still to be sent on it.
pub(super) struct Feed {
    sim: Arc<Sim>,
    token: String,
    /// How many connections were opened before it.
    number: u64,
    /// Changes when its owner breaks the streams that are open.
    breaks: watch::Receiver<()>,
    channel: Channel,
    /// What happened until then is taken.
    until_ms: i64,
    /// By the time when it is sent, by the server's clock.
    pending: BTreeMap<(i64, u64), Event>,
    taken: u64,
    sent: u64,
}

/// An event as it is sent.
#[derive(Debug, Clone)]
pub(super) struct Event {
    /// Its name and parameter.
    pub(super) channel: Vec<String>,
    pub(super) name: &'static str,
    pub(super) payload: String,
}

/// What a connection sends next, and whether it breaks then.
pub(super) struct Due {
    /// There may be none.
    pub(super) events: Vec<Event>,
    pub(super) breaks: bool,
}

impl Feed {
    /// Starts now: what happened before is not sent.
    ///
    /// # Errors
    /// Why a connection gets no stream.
    pub(super) fn open(
        sim: Arc<Sim>,
        token: String,
        stream: &str,
        params: &StreamParams,
    ) -> Result<Self, Refusal> {
        if sim.faults_config().streams.refused {
            return Err(Refusal::NotNow);
        }
        if sim.is_revoked(&token) {
            return Err(Refusal::Unauthorized);
        }
        let channel = Channel::of(stream, params)
            .filter(|channel| sim.world(&channel.timeline).is_some())
            .ok_or(Refusal::NotFound)?;
        if channel.is_private() && token.is_empty() {
            return Err(Refusal::Unauthorized);
        }
        let now_ms = sim.clock.now_ms();
        Ok(Self {
            number: sim.opened.fetch_add(1, Ordering::SeqCst),
            breaks: sim.breaks.subscribe(),
            token,
            channel,
            until_ms: now_ms,
            pending: BTreeMap::new(),
            taken: 0,
            sent: 0,
            sim,
        })
    }

    /// What is due; waits a moment first, so that callers can loop.
    pub(super) async fn next(&mut self) -> Due {
        self.sim.hold(POLL_MS).await;
        let now_ms = self.sim.clock.now_ms();
        let config = self.sim.faults_config().streams;
        self.take(now_ms, &config);
        let later = self.pending.split_off(&(now_ms.saturating_add(1), 0));
        let due = std::mem::replace(&mut self.pending, later);
        let mut due: Vec<Event> = due.into_values().collect();
        let left = config
            .drop_after_events
            .map_or(u64::MAX, |most| most.saturating_sub(self.sent));
        let full = due.len() as u64 >= left;
        due.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        self.sent += due.len() as u64;
        self.sim.count(|traffic| traffic.events += due.len() as u64);
        Due {
            events: due,
            breaks: full
                || self.breaks.has_changed().unwrap_or(true)
                || self.sim.is_revoked(&self.token),
        }
    }

    /// Whether the server is shutting down.
    pub(super) fn is_over(&self) -> bool {
        *self.sim.stopping.borrow()
    }

    /// From one heartbeat to the next.
    pub(super) fn heartbeat(&self) -> Duration {
        let ms = self.sim.faults_config().streams.heartbeat_ms;
        Duration::from_millis(u64::try_from(ms).unwrap_or(0).max(1))
    }

    /// Takes what happened since the last time.
    fn take(&mut self, now_ms: i64, config: &StreamsConfig) {
        let until_ms = now_ms.max(self.until_ms);
        let after_ms = std::mem::replace(&mut self.until_ms, until_ms);
        let happened = self.sim.events(&self.channel.timeline, after_ms, now_ms);
        for event in happened {
            let (name, id, payload) = match event.happening {
                Happening::Deleted(id) => ("delete", id.clone(), id.to_string()),
                Happening::Appeared(status) | Happening::Edited(status)
                    if !self.channel.shows(&status)
                        || self.sim.hides(event.at_ms, &self.token, &status.id) =>
                {
                    continue;
                }
                Happening::Appeared(status) => ("update", status.id.clone(), status.to_json()),
                Happening::Edited(status) => ("status.update", status.id.clone(), status.to_json()),
            };
            let own = mix(hash_text(id.as_str()), hash_text(name));
            let seed = mix(mix(self.sim.seed, self.number), own);
            let sent = Event {
                channel: self.channel.name.clone(),
                name,
                payload,
            };
            let rng = &mut Rng::stream(seed, STREAM);
            self.plan(event.at_ms, &sent, config, rng);
        }
    }

    /// Puts an event where it is due: never, once or twice.
    fn plan(&mut self, at_ms: i64, event: &Event, config: &StreamsConfig, rng: &mut Rng) {
        let lost = rng.happens(config.lost_share);
        let repeated = rng.happens(config.repeated_share);
        let times = match (lost, repeated) {
            (true, _) => 0,
            (false, true) => 2,
            (false, false) => 1,
        };
        for _ in 0..times {
            let delay_ms = config.delay_ms.draw(rng);
            let due_ms = at_ms.saturating_add(delay_ms.max(0));
            self.pending.insert((due_ms, self.taken), event.clone());
            self.taken += 1;
        }
    }
}

/// How often a connection looks for events, in real time.
const POLL_MS: i64 = 10;
/// The random stream of a connection and an event.
const STREAM: u64 = 9;
