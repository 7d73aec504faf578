//! Posts that are missing from a page that should list them, until a look-up shows their state.
//!
//! A failed look-up proves nothing and delays nothing. Its post is looked up again after growing
//! delays, a few times for each rung, and is then left as *not confirmed*. While consecutive
//! look-ups fail, only the next look-up waits longer each time. After many failures each post is
//! looked up once. Otherwise all pending look-ups would take days.

use serde::{Deserialize, Serialize};

use super::{FailedRequest, LastError, Machine, Step, answers::retry_after_ms};
use crate::{
    answer::{AnswerHeaders, Failure, FailureKind},
    clock::Deadline,
    timeline::{backoff::backoff_ms, settings::Settings},
    upstream_id::{Key, UpstreamId},
};

/// The state of an absent post, by its look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookUpOutcome {
    /// The post exists.
    Found,
    /// The post is deleted.
    Gone,
    /// The post is hidden from this reader, and may be deleted.
    Hidden,
    /// The answer proves nothing.
    NotConfirmed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Suspect {
    id: UpstreamId,
    /// The rung of the look that lacked it.
    rung: usize,
    /// The number of failed look-ups.
    #[serde(default)]
    failures: u32,
    /// The wait before its look-up.
    pub(super) wait: Deadline,
    /// True if it is not looked up again, unless a later rung lacks it, too.
    #[serde(default)]
    is_settled: bool,
}

impl Suspect {
    fn new(id: &UpstreamId, rung: usize) -> Self {
        Self {
            id: id.clone(),
            rung,
            failures: 0,
            wait: Deadline::default(),
            is_settled: false,
        }
    }
}

impl Machine {
    /// Applies the answer to the look-up of an absent post.
    pub fn looked_up(&mut self, id: &UpstreamId, outcome: LookUpOutcome, headers: &AnswerHeaders) {
        self.apply_headers(headers);
        self.pace.look_up_failures = 0;
        self.errors.end(FailedRequest::LookUp);
        self.update_empty_ranges(id, outcome);
        if outcome != LookUpOutcome::NotConfirmed {
            self.end_recheck_of(id);
        }
        let index = self.suspects.iter().position(|suspect| suspect.id == *id);
        match outcome {
            LookUpOutcome::Found => self.counters.hidden += 1,
            LookUpOutcome::NotConfirmed => self.counters.not_confirmed += 1,
            LookUpOutcome::Hidden | LookUpOutcome::Gone => {
                let suspect = index.and_then(|index| self.suspects.remove(index));
                if outcome == LookUpOutcome::Hidden {
                    self.counters.hidden += 1;
                    return;
                }
                self.counters.deleted += 1;
                if let Some(Suspect { rung, .. }) = suspect {
                    self.stats_of(rung).deleted += 1;
                    let look = self.choice().and_then(|choice| choice.looks.get(rung));
                    if let Some(age_ms) = look.map(|look| look.age_ms) {
                        self.changes.insert(age_ms, headers.received_at_ms);
                    }
                }
                return;
            }
        }
        if let Some(index) = index {
            self.suspects[index].is_settled = true;
        }
    }

    /// Applies a failed look-up. `random` is any random number. It spreads the delays of sources
    /// that fail together.
    pub fn look_up_failed(
        &mut self,
        settings: &Settings,
        id: &UpstreamId,
        failure: &Failure,
        now_ms: i64,
        random: u64,
    ) {
        self.counters.failures += 1;
        self.errors.failed(FailedRequest::LookUp, failure, now_ms);
        let wait = |failures| {
            let wait_ms = backoff_ms(settings.every_ms, failures, random);
            Deadline::after(now_ms, wait_ms.max(retry_after_ms(failure)))
        };
        let is_about_the_server = matches!(
            failure.kind,
            FailureKind::Unreachable
                | FailureKind::Tls
                | FailureKind::PrivateAddress
                | FailureKind::Throttled
                | FailureKind::Capped
        );
        if is_about_the_server {
            self.pace.server_failures = self.pace.server_failures.saturating_add(1);
            self.pace.blocked = wait(self.pace.server_failures);
        }
        self.pace.look_up_failures = self.pace.look_up_failures.saturating_add(1);
        self.pace.look_ups_blocked = wait(self.pace.look_up_failures);
        let is_standing = self.no_look_up_answers();
        let Some(suspect) = self.suspects.iter_mut().find(|suspect| suspect.id == *id) else {
            return;
        };
        suspect.failures = suspect.failures.saturating_add(1);
        suspect.is_settled = suspect.failures >= MAX_TRIES || is_standing;
        let delay_ms = FIRST_RETRY_MS << (2 * suspect.failures.clamp(1, MAX_TRIES) - 2);
        suspect.wait = Deadline::after(now_ms, delay_ms);
        if suspect.is_settled {
            self.counters.not_confirmed += 1;
            self.update_empty_ranges(id, LookUpOutcome::NotConfirmed);
        }
    }

    /// True if this number of consecutive look-ups has failed that the next one is not likely to
    /// prove anything. A few are enough if this reader may look nothing up.
    pub(super) fn no_look_up_answers(&self) -> bool {
        let kind = self.errors.look_up().map(|error| error.kind);
        let standing = match kind {
            Some(FailureKind::Unauthorized) => STANDING_REFUSALS,
            _ => STANDING_FAILURES,
        };
        self.pace.look_up_failures >= standing
    }

    /// The last failure of a look-up, if one ever failed.
    pub fn look_up_error(&self) -> Option<&LastError> {
        self.errors.look_up()
    }

    /// The due look-up.
    pub(super) fn due_look_up(&self, now_ms: i64) -> Option<Step> {
        if !self.pace.look_ups_blocked.is_over(now_ms) {
            return None;
        }
        let mut pending = self.pending_suspects();
        let due = pending.find(|suspect| suspect.wait.is_over(now_ms))?;
        Some(Step::LookUp(due.id.clone()))
    }

    /// The time of the first look-up that is not due yet, in Unix ms by the local clock.
    pub(super) fn next_look_up_ms(&self, now_ms: i64) -> Option<i64> {
        let blocked_until_ms = self.pace.look_ups_blocked.until_ms();
        let due = self.pending_suspects();
        let due = due.map(|suspect| suspect.wait.until_ms().max(blocked_until_ms));
        due.filter(|due_ms| *due_ms > now_ms).min()
    }

    fn pending_suspects(&self) -> impl Iterator<Item = &Suspect> {
        self.suspects.iter().filter(|suspect| !suspect.is_settled)
    }

    /// Queues a look-up of an anchor that was not reached. It may be deleted, and an older one then
    /// replaces it.
    pub(super) fn suspect_anchor(&mut self, anchor: Option<&Key>) {
        if let (Some(scheme), Some(anchor)) = (self.scheme, anchor) {
            self.look_up_first(&scheme.id(anchor));
        }
    }

    /// Queues a look-up before all others, because other work waits for it.
    pub(super) fn look_up_first(&mut self, id: &UpstreamId) {
        let index = self.suspects.iter().position(|suspect| suspect.id == *id);
        let mut suspect = index
            .and_then(|index| self.suspects.remove(index))
            .unwrap_or_else(|| Suspect::new(id, 0));
        suspect.is_settled = false;
        self.forget_settled();
        self.suspects.push_front(suspect);
    }

    /// Queues look-ups of posts that are missing from a look's page.
    pub(super) fn suspect(&mut self, rung: usize, absent: &[UpstreamId]) {
        for id in absent {
            let mut known = self.suspects.iter_mut();
            if let Some(suspect) = known.find(|suspect| suspect.id == *id) {
                if suspect.is_settled && rung > suspect.rung {
                    *suspect = Suspect::new(id, rung);
                }
                continue;
            }
            if self.pending_suspects().count() >= MAX_SUSPECTS {
                self.counters.suspects_dropped += 1;
                continue;
            }
            self.forget_settled();
            self.suspects.push_back(Suspect::new(id, rung));
        }
    }

    /// Makes room for one more suspect.
    fn forget_settled(&mut self) {
        if self.suspects.len() >= 2 * MAX_SUSPECTS
            && let Some(oldest) = self.suspects.iter().position(|known| known.is_settled)
        {
            self.suspects.remove(oldest);
        }
    }
}

/// The largest number of posts that wait for a look-up, and of settled ones that are remembered.
const MAX_SUSPECTS: usize = 80;
/// The number of failed look-ups of one post for a rung.
const MAX_TRIES: u32 = 5;
const STANDING_REFUSALS: u32 = 3;
/// With the growing delays between them, these take at least about a quarter of an hour.
const STANDING_FAILURES: u32 = 12;
/// The delay after the first failed look-up of a post. Each further one is four times longer.
const FIRST_RETRY_MS: i64 = 5_000;
