//! A stream next to the polls.

use std::collections::BTreeMap;

use driftline_core::answer::Event;
use driftline_sim::{Happening, Upstream};
use driftline_store::ReceivedEvent;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{answers::Access, settings::Drawn};

/// What happens at the upstream, some of it lost, some reported twice, each event
/// with a delay of its own.
#[derive(Debug)]
pub(crate) struct Feed {
    lost_share: f64,
    repeated_share: f64,
    longest_delay_ms: i64,
    read_until_ms: i64,
    /// By the time when it arrives.
    pending: BTreeMap<(i64, u64), Event>,
    number: u64,
    /// When it is opened, or opened again, Unix ms; `None` while it is open.
    opens_at_ms: Option<i64>,
    /// Failures in a row.
    failures: u32,
    rng: ChaCha8Rng,
    access: Access,
}

impl Feed {
    pub(crate) fn new(drawn: &Drawn, now_ms: i64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(drawn.seed);
        rng.set_stream(1);
        Self {
            lost_share: rng.random_range(0.0..0.9),
            repeated_share: rng.random_range(0.0..0.3),
            longest_delay_ms: [0, 2_000, 30_000, 900_000][rng.random_range(0..4)],
            read_until_ms: now_ms,
            pending: BTreeMap::new(),
            number: 0,
            opens_at_ms: Some(now_ms),
            failures: 0,
            access: drawn.access,
            rng,
        }
    }

    /// Opens it if it is closed and it is time to. `true` if it was opened now.
    pub(crate) fn open(&mut self, now_ms: i64) -> bool {
        if self.opens_at_ms.is_none_or(|at_ms| now_ms < at_ms) {
            return false;
        }
        self.opens_at_ms = None;
        self.read_until_ms = now_ms;
        true
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opens_at_ms.is_none()
    }

    /// What arrives up to a time, in batches.
    pub(crate) fn arrive(
        &mut self,
        upstream: &mut Upstream,
        now_ms: i64,
    ) -> Vec<Vec<ReceivedEvent>> {
        let world = upstream.world();
        let happenings = world.events(self.read_until_ms, now_ms);
        let quirks = &world.config().quirks;
        for happened in happenings {
            if let Happening::Appeared(status) | Happening::Edited(status) = &happened.happening
                && quirks.is_unreadable(status.first_id().as_str())
            {
                continue;
            }
            let event = match happened.happening {
                Happening::Appeared(status) => Event::Posted(Box::new(self.access.event(&status))),
                Happening::Edited(status) => Event::Edited(Box::new(self.access.event(&status))),
                Happening::Deleted(id) => Event::Deleted(id),
            };
            if self.rng.random_bool(self.lost_share) {
                continue;
            }
            for _ in 0..1 + u32::from(self.rng.random_bool(self.repeated_share)) {
                let due_ms = happened.at_ms + self.rng.random_range(0..=self.longest_delay_ms);
                self.number += 1;
                self.pending.insert((due_ms, self.number), event.clone());
            }
        }
        self.read_until_ms = self.read_until_ms.max(now_ms);
        let later = self.pending.split_off(&(now_ms + 1, 0));
        let due = std::mem::replace(&mut self.pending, later);
        let arrived: Vec<ReceivedEvent> = due
            .into_iter()
            .map(|((received_at_ms, _), event)| ReceivedEvent {
                event,
                received_at_ms,
            })
            .collect();
        let size = self.rng.random_range(1..6);
        arrived.chunks(size).map(<[_]>::to_vec).collect()
    }

    /// Its events are stored.
    pub(crate) fn stored(&mut self) {
        self.failures = 0;
    }

    /// The connection broke: what was on its way is gone. It is tried again
    /// later, as the server does.
    pub(crate) fn break_off(&mut self, now_ms: i64) {
        self.pending.clear();
        self.failures += 1;
        let wait_ms = driftline_core::timeline::backoff_ms(1_000, self.failures, self.rng.random());
        self.opens_at_ms = Some(now_ms + wait_ms);
    }
}
