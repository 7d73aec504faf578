use serde::{Deserialize, Serialize};

use crate::answer::Throttle;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Requests, as headers report them.
    Requests,
    /// Posts read, which some upstreams cap by the month.
    Posts,
}

/// One limit and how much of it is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// What it counts.
    pub unit: Unit,
    /// How much a whole window holds.
    pub limit: u32,
    /// How much is left. Within a window it only falls.
    pub remaining: u32,
    /// When the window ends, Unix ms.
    pub reset_at_ms: i64,
    /// How long windows last, ms, as far as is known.
    pub length_ms: i64,
    /// How much of this window others used, as far as is known.
    pub others: u32,
    /// Whether it was begun here after the previous one ended and no answer has reported it yet.
    pub assumed: bool,
    /// Whether only pages count against it, as far as is known: no answer to a look-up has reported
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pages_only: bool,
    /// How much was taken so late that it may count against the next window.
    #[serde(default)]
    pub late: u32,
}

impl Window {
    /// A window of which answers have shown nothing else yet.
    pub(super) fn new(unit: Unit, reported: Throttle, length_ms: i64, pages_only: bool) -> Self {
        Self {
            unit,
            limit: reported.limit,
            remaining: reported.remaining,
            reset_at_ms: reported.reset_at_ms,
            length_ms,
            others: 0,
            assumed: false,
            pages_only,
            late: 0,
        }
    }

    /// Begins the next window if this one has ended.
    pub(super) fn roll(&mut self, now_ms: i64) {
        if now_ms < self.reset_at_ms {
            return;
        }
        let length_ms = self.length_ms.max(1);
        let passed = now_ms.saturating_sub(self.reset_at_ms) / length_ms + 1;
        self.reset_at_ms = self
            .reset_at_ms
            .saturating_add(passed.saturating_mul(length_ms));
        let late = if passed == 1 { self.late } else { 0 };
        self.remaining = self.limit.saturating_sub(late);
        self.late = 0;
        self.others = 0;
        self.assumed = true;
    }

    /// How much may be taken while a reserve stays: `kept` is the reserve as a share of the quota
    /// that the rest of the window would bring at an even pace.
    pub(super) fn free(&self, kept: f64, now_ms: i64) -> u32 {
        let line = self.even() * kept * self.left_ms(now_ms) as f64;
        let line = line.round().clamp(0.0, f64::from(u32::MAX)) as u32;
        self.remaining.saturating_sub(line)
    }

    /// When `cost` of it will be free, Unix ms.
    pub(super) fn free_at_ms(&self, cost: u32, kept: f64, now_ms: i64) -> i64 {
        let spare = f64::from(self.remaining) - f64::from(cost);
        let pace = self.even() * kept;
        if spare < 0.0 {
            return self.reset_at_ms;
        }
        if pace <= 0.0 {
            return now_ms;
        }
        let left_ms = (spare / pace).min(self.left_ms(now_ms) as f64) as i64;
        self.reset_at_ms.saturating_sub(left_ms).max(now_ms)
    }

    /// Subtracts an amount that is about to be spent.
    pub(super) fn spend(&mut self, amount: u32, now_ms: i64) {
        self.remaining = self.remaining.saturating_sub(amount);
        if self.unit == Unit::Requests && self.left_ms(now_ms) <= WINDOW_EDGE_MS {
            self.late = self.late.saturating_add(amount);
        }
    }

    /// Subtracts the use by others: `remaining` is the figure that an answer reports.
    pub(super) fn report(&mut self, remaining: u32) {
        self.others = self
            .others
            .saturating_add(self.remaining.saturating_sub(remaining));
        self.remaining = self.remaining.min(remaining);
    }

    /// How much a ms brings at an even pace.
    fn even(&self) -> f64 {
        f64::from(self.limit) / self.length_ms.max(1) as f64
    }

    pub(super) fn left_ms(&self, now_ms: i64) -> i64 {
        self.reset_at_ms.saturating_sub(now_ms).max(0)
    }
}

/// A request that is sent this close before a window's end may arrive after it.
pub const WINDOW_EDGE_MS: i64 = 3_000;
