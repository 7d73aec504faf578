use serde::{Deserialize, Serialize};

/// The value that a refresh must reach to be made: the price at which demand just uses up the quota.
///
/// It rises while more posts are due than the quota carries and falls while quota goes unused,
/// by the shortage and the time that passed and never by more than [`MAX_STEP`] at once. Time
/// without quota does not move it: an outage leaves it unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct QuotaPrice {
    level: f64,
    least: f64,
    most: f64,
}

/// The use of the quota over a period.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuotaUse {
    /// How long it was, ms.
    pub elapsed_ms: i64,
    /// How many refreshes the quota carried in it.
    pub offered: f64,
    /// How many posts that were due were refreshed, without those that filled batches up.
    pub due: f64,
    /// How many of these were due as probes ([`crate::refresh::Cause::Probe`]).
    pub probes: f64,
    /// How many of these were due because no post waits longer ([`crate::refresh::Cause::Bound`]).
    pub bounds: f64,
    /// How many due posts still wait.
    pub overdue: f64,
}

impl QuotaUse {
    /// The input for the price of a [`super::ValuePolicy`]: posts due by their value, against the
    /// quota that probes and bounds leave, at least a quarter. The price does not affect probes and
    /// bounds, so it must not follow them.
    #[must_use]
    pub fn of_value(&self) -> Self {
        let forced = self.probes + self.bounds;
        let offered = (self.offered - forced).max(self.offered * MIN_SHARE);
        self.part(self.due - forced, offered)
    }

    /// The input for the stretch of a [`super::ValuePolicy`]: posts due by their bounds, against
    /// the quarter of the quota that is theirs.
    #[must_use]
    pub fn of_bounds(&self) -> Self {
        self.part(self.bounds, self.offered * MIN_SHARE)
    }

    /// The use by `due` posts and a proportional part of the overdue ones.
    fn part(&self, due: f64, offered: f64) -> Self {
        let share = if self.due > 0.0 { due / self.due } else { 0.0 };
        Self {
            offered,
            due,
            overdue: self.overdue * share.clamp(0.0, 1.0),
            ..*self
        }
    }
}

impl QuotaPrice {
    /// The price of a refresh in count-hours, for a [`super::ValuePolicy`].
    pub fn of_refresh() -> Self {
        Self::new(1.0, 1e-6, 1e6)
    }

    /// The factor that lengthens the configured intervals while the quota is short, from 1 to 1,000.
    pub fn of_stretch() -> Self {
        Self::new(1.0, 1.0, 1e3)
    }

    /// A price that starts at a level and stays between two bounds, all above zero, in either order.
    pub fn new(level: f64, least: f64, most: f64) -> Self {
        let sound = |figure: f64, default: f64| {
            let figure = if figure.is_nan() { default } else { figure };
            figure.clamp(LEAST, MOST)
        };
        let (least, most) = (sound(least, LEAST), sound(most, MOST));
        let (least, most) = (least.min(most), least.max(most));
        Self {
            level: sound(level, 1.0).clamp(least, most),
            least,
            most,
        }
    }

    /// The price now.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// The price after this use of the quota.
    #[must_use]
    pub fn after(self, used: &QuotaUse) -> Self {
        let elapsed_ms = used.elapsed_ms.clamp(0, MAX_ELAPSED_MS) as f64;
        let is_known = used.due.is_finite() && used.overdue.is_finite();
        if !is_known || !used.offered.is_finite() || used.offered <= 0.0 {
            return self;
        }
        let backlog = used.overdue.max(0.0) * (elapsed_ms / DRAIN_MS).min(1.0);
        let demand = (used.due.max(0.0) + backlog) / used.offered;
        let shortage = ((demand - TARGET_SHARE) / TARGET_SHARE).clamp(-1.0, 1.0);
        let step = (shortage * elapsed_ms / ANSWER_MS).clamp(-MAX_STEP, MAX_STEP);
        Self {
            level: (self.level * step.exp()).clamp(self.least, self.most),
            ..self
        }
    }
}

impl From<[f64; 3]> for QuotaPrice {
    fn from([level, least, most]: [f64; 3]) -> Self {
        Self::new(level, least, most)
    }
}

impl From<QuotaPrice> for [f64; 3] {
    fn from(price: QuotaPrice) -> Self {
        [price.level, price.least, price.most]
    }
}

/// The most that the logarithm of the price changes at once.
pub const MAX_STEP: f64 = 0.25;

const LEAST: f64 = 1e-9;
const MOST: f64 = 1e9;
/// The share of the quota that due posts should take; the rest fills batches up and absorbs
/// bursts.
const TARGET_SHARE: f64 = 0.9;
/// The least share of the quota for posts due by value and, where needed, for posts due by bounds.
const MIN_SHARE: f64 = 0.25;
/// The time in which a backlog should be worked off.
const DRAIN_MS: f64 = 2.0 * HOUR_MS;
/// The time in which the price changes by a factor of e if demand is twice the quota or zero.
const ANSWER_MS: f64 = 3.0 * HOUR_MS;
/// Longer stretches count as this long.
const MAX_ELAPSED_MS: i64 = 3_600_000;
const HOUR_MS: f64 = 3_600_000.0;
