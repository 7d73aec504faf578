use serde::{Deserialize, Serialize};

/// What a refresh must be worth to be made: the price at which the quota is used up and not more.
///
/// It rises while more posts are due than the quota carries and falls while quota goes unused,
/// by the shortage and the time that passed and never by more than [`MAX_STEP`] at once. Time
/// without quota does not move it: after an outage it stands where it stood.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct QuotaPrice {
    level: f64,
    least: f64,
    most: f64,
}

/// How a stretch of time's quota was used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct QuotaUse {
    /// How long it was, ms.
    pub elapsed_ms: i64,
    /// How many refreshes the quota carried in it.
    pub offered: f64,
    /// How many posts that were due were refreshed, without those that filled batches up.
    pub due: f64,
    /// How many of these were due as probes ([`super::Cause::Probe`]).
    pub probes: f64,
    /// How many of these were due because no post waits longer ([`super::Cause::Bound`]).
    pub bounds: f64,
    /// How many posts are due and wait still.
    pub overdue: f64,
}

impl QuotaUse {
    /// What the price of a [`super::ValuePolicy`] follows: what was due by its worth, beside what
    /// probes and bounds leave of the quota, a quarter of it at least. The price does not move
    /// those, so it must not chase them.
    #[must_use]
    pub fn of_value(&self) -> Self {
        let forced = self.probes + self.bounds;
        let offered = (self.offered - forced).max(self.offered * MIN_SHARE);
        self.part(self.due - forced, offered)
    }

    /// What the stretch of a [`super::ValuePolicy`] follows: what was due by its bounds, beside
    /// the quarter of the quota that is theirs.
    #[must_use]
    pub fn of_bounds(&self) -> Self {
        self.part(self.bounds, self.offered * MIN_SHARE)
    }

    /// So many of those due, and as large a part of those that wait.
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

    /// How much longer intervals are than configured while the quota does not carry them: never
    /// shorter, and a thousand times at most.
    pub fn of_stretch() -> Self {
        Self::new(1.0, 1.0, 1e3)
    }

    /// A price that starts at a level and stays between two bounds, all above zero; swapped ones
    /// are put right.
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

    /// The price after such a use of the quota.
    #[must_use]
    pub fn after(self, used: &QuotaUse) -> Self {
        let elapsed_ms = used.elapsed_ms.clamp(0, MAX_ELAPSED_MS) as f64;
        let is_known = used.due.is_finite() && used.overdue.is_finite();
        if !is_known || !used.offered.is_finite() || used.offered <= 0.0 {
            return self;
        }
        let backlog = used.overdue.max(0.0) * (elapsed_ms / DRAIN_MS).min(1.0);
        let demand = (used.due.max(0.0) + backlog) / used.offered;
        let shortage = ((demand - WANTED) / WANTED).clamp(-1.0, 1.0);
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
/// The share of the quota that due posts should take; the rest fills batches up and absorbs what
/// comes suddenly.
const WANTED: f64 = 0.9;
/// What is left of the quota to worth and, where they need it, to bounds.
const MIN_SHARE: f64 = 0.25;
/// In which time a backlog should be worked off.
const DRAIN_MS: f64 = 2.0 * HOUR_MS;
/// In which time the price changes by a factor of e, if demand is twice the quota or nothing.
const ANSWER_MS: f64 = 3.0 * HOUR_MS;
/// Longer stretches count as this long.
const MAX_ELAPSED_MS: i64 = 3_600_000;
const HOUR_MS: f64 = 3_600_000.0;
