use crate::batch::Batch;
use crate::grant::Grant;
use crate::origin::Origin;
use crate::plan::Plan;
use crate::policy::{ClockPolicy, SequenceStart};
use crate::refusal::{NotNow, Refusal, StartError, Wait};
use crate::window::{Retired, Window};

/// Decides the next IDs. The generators differ only in the place of their state.
///
/// The state is the next count. IDs of smaller counts may have been made; IDs from there on have
/// not. At the end of a tick it is the first count of the next tick.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) plan: Plan,
    /// The process of the window. A generator made in a forked process has its parent's times.
    pub(crate) origin: Origin,
    pub(crate) policy: ClockPolicy,
    pub(crate) start: SequenceStart,
    pub(crate) window: Window,
    /// The state before the first ID.
    pub(crate) first_count: u64,
}

/// The state of a retired generator. No ID has this count: the last ID of a layout that fills 64
/// bits is never made.
pub(crate) const RETIRED: u64 = u64::MAX;

impl Rules {
    pub(crate) fn new(
        window: Window,
        now_us: i64,
        policy: ClockPolicy,
    ) -> Result<Self, StartError> {
        let plan = Plan::new(window.node());
        let origin = window.origin.clone().ok_or(StartError::ForkGuard)?;
        plan.tick_at(now_us).map_err(StartError::Time)?;
        let first_tick = plan.tick_from(window.from_us());
        Ok(Self {
            first_count: u128::from(first_tick)
                .checked_shl(plan.sequence_bits)
                .map_or(RETIRED, |count| u64::try_from(count).unwrap_or(RETIRED)),
            origin,
            start: SequenceStart::Zero,
            plan,
            policy,
            window,
        })
    }

    /// Grants the next IDs of one tick at a fresh time: at least one and at most `length`. A
    /// refusal leaves the state unchanged.
    pub(crate) fn decide(&self, next: u64, now_us: i64, length: u64) -> Result<Grant, NotNow> {
        if self.origin.is_elsewhere() {
            return Err(Refusal::Forked.into());
        }
        if next == RETIRED {
            return Err(Refusal::Retired.into());
        }
        let plan = &self.plan;
        let tick = plan.tick_at(now_us).map_err(Refusal::Time)?;
        let tick_start_us = plan.tick_start_us(tick);
        if plan.tick_of(next) > tick {
            return Err(self.not_yet(next, tick, now_us));
        }
        let until_us = self.window.until_us();
        if tick_start_us >= until_us {
            let reason = Refusal::WindowEnded { until_us };
            return Err(self.wait(ENDED_WINDOW_US, reason));
        }
        let entered = plan.tick_of(next) == tick && plan.sequence_of(next) > 0;
        let first = if entered {
            next
        } else {
            plan.count(tick, self.start.at(tick, plan.max_sequence()))
        };
        let left = plan.max_sequence() - plan.sequence_of(first) + 1;
        let length = length.clamp(1, left).min(RETIRED - first);
        if length == 0 {
            return Err(Refusal::Retired.into());
        }
        Ok(Grant { first, length })
    }

    /// The IDs of a grant, for the window's process.
    pub(crate) fn batch(&self, grant: &Grant) -> Batch {
        Batch {
            next_raw: self.plan.raw(grant.first),
            left: grant.length as usize,
            step: self.plan.step(),
            origin: self.origin.clone(),
        }
    }

    /// Proof that no ID follows the state `next`. It is valid in this process only: in a forked
    /// process it proves nothing.
    pub(crate) fn retired(&self, next: u64) -> Retired {
        if self.origin.is_elsewhere() {
            return self.window.retired(i64::MAX);
        }
        let used_until_tick = match next.checked_sub(1) {
            Some(last) if next > self.first_count => self.plan.tick_of(last) + 1,
            _ => self.plan.tick_of(next),
        };
        self.window
            .retired(self.plan.tick_start_us(used_until_tick))
    }

    /// The clock shows an earlier tick than the state's.
    fn not_yet(&self, next: u64, tick: u64, now_us: i64) -> NotNow {
        let until = |tick| self.plan.tick_start_us(tick).abs_diff(now_us);
        let us = until(self.plan.tick_of(next));
        let is_next_tick = self.plan.tick_of(next) == tick + 1;
        if next <= self.first_count {
            let behind_ms = us.div_ceil(1_000);
            let reason = Refusal::WindowAhead { behind_ms };
            return match is_next_tick {
                true => NotNow::Wait(Wait { us, reason }),
                false => self.wait(us, reason),
            };
        }
        let last_tick = self.plan.tick_of(next - 1);
        if last_tick == tick {
            return self.wait(us, Refusal::SequenceExhausted);
        }
        let behind_ms = until(last_tick).div_ceil(1_000);
        self.wait(us, Refusal::ClockBehind { behind_ms })
    }

    fn wait(&self, us: u64, reason: Refusal) -> NotNow {
        let wait = Wait { us, reason };
        match (self.policy, wait.refusal()) {
            (ClockPolicy::Wait { at_most_ms }, _) if us <= u64::from(at_most_ms) * 1_000 => {
                NotNow::Wait(wait)
            }
            (_, Some(refusal)) => NotNow::Refused(refusal),
            (_, None) => NotNow::Wait(wait),
        }
    }
}

/// The interval between checks for an extended window.
const ENDED_WINDOW_US: u64 = 1_000;
