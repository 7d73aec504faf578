use serde::{Deserialize, Serialize};

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
    /// How much others used of this window, as far as was noticed.
    pub others: u32,
    /// Whether it was begun here, after the one before it ended, and no answer has told of it yet.
    pub assumed: bool,
    /// Whether only pages count against it, as far as is known: no answer to a look-up has told of
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pages_only: bool,
    /// How much was taken so late that it may be counted against the next window.
    #[serde(default)]
    pub late: u32,
}

impl Window {
    /// Begins the window anew if its time is over.
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

    /// What of it may be taken when `kept` of what is left is kept back, as a share of what the
    /// rest of the window would bring at an even pace.
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

    /// Takes what is to be spent.
    pub(super) fn spend(&mut self, amount: u32, now_ms: i64) {
        self.remaining = self.remaining.saturating_sub(amount);
        if self.unit == Unit::Requests && self.left_ms(now_ms) <= WINDOW_EDGE_MS {
            self.late = self.late.saturating_add(amount);
        }
    }

    /// Takes what others used: `told` is what an answer says is left.
    pub(super) fn tell(&mut self, told: u32) {
        self.others = self
            .others
            .saturating_add(self.remaining.saturating_sub(told));
        self.remaining = self.remaining.min(told);
    }

    /// How much a ms brings at an even pace.
    fn even(&self) -> f64 {
        f64::from(self.limit) / self.length_ms.max(1) as f64
    }

    fn left_ms(&self, now_ms: i64) -> i64 {
        self.reset_at_ms.saturating_sub(now_ms).max(0)
    }
}

/// A request that is sent this close before a window's end may arrive after it.
pub const WINDOW_EDGE_MS: i64 = 3_000;
