use serde::{Deserialize, Serialize};

use crate::answer::Throttle;

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Requests, as reported by headers.
    Requests,
    /// Posts read, which some upstreams limit per month.
    Posts,
}

/// A limit and its remaining quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The unit.
    pub unit: Unit,
    /// The quota of a whole window.
    pub limit: u32,
    /// The remaining quota. Within a window it only falls.
    pub remaining: u32,
    /// The end of the window in Unix ms.
    pub reset_at_ms: i64,
    /// The time by which it may end earlier, in ms: the clock's error in the answer that reported
    /// it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error_ms: i64,
    /// The known length of windows in ms.
    pub length_ms: i64,
    /// The known use of this window by others.
    pub others: u32,
    /// True if it was begun here after the previous one ended, and no answer has reported it yet.
    pub assumed: bool,
    /// The number of ended windows with some use since an answer last reported it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreported: i64,
    /// True if only pages are known to count against it, because no answer to a look-up has
    /// reported it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pages_only: bool,
    /// The amount that was taken so late that it may count against the next window.
    #[serde(default)]
    pub late: u32,
    /// The requests of windows that began and ended here without an answer in between. Their ends
    /// are guesses, so the window of the next answer may include these requests. At most a whole
    /// window.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub earlier: u32,
}

impl Window {
    /// A window of which nothing else is known yet.
    pub(super) fn new(unit: Unit, reported: Throttle, length_ms: i64, pages_only: bool) -> Self {
        Self {
            unit,
            limit: reported.limit,
            remaining: reported.remaining,
            reset_at_ms: reported.reset_at_ms,
            error_ms: reported.error_ms,
            length_ms,
            others: 0,
            assumed: false,
            unreported: 0,
            pages_only,
            late: 0,
            earlier: 0,
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
        let is_used = self.remaining < self.limit;
        self.earlier = match self.assumed {
            true => {
                let taken = self.limit.saturating_sub(self.remaining);
                self.earlier.saturating_add(taken).min(self.limit)
            }
            false => 0,
        };
        self.remaining = self.limit.saturating_sub(late);
        self.late = 0;
        self.others = 0;
        self.assumed = true;
        self.unreported = self.unreported.saturating_add(i64::from(is_used));
    }

    /// Begins the next window if an answer reports it. Given the clock's error, this one may have
    /// ended already.
    pub(super) fn roll_for(&mut self, throttle: &Throttle, now_ms: i64) {
        let is_later = throttle.reset_at_ms > self.reset_at_ms;
        let may_have_ended = self.may_have_ended(throttle, now_ms);
        if self.counts_as(throttle) && !self.assumed && may_have_ended && is_later {
            self.roll(self.reset_at_ms);
        }
    }

    /// True if it is the window that an answer reports: it has the same limit, and the same end
    /// within the clocks' error.
    pub(super) fn is_of(&self, throttle: &Throttle) -> bool {
        self.counts_as(throttle) && self.agrees(self.reset_at_ms, throttle)
    }

    /// True if an answer reports the window before it. That window has not ended yet, and this one
    /// was begun too early.
    pub(super) fn is_after(&self, throttle: &Throttle) -> bool {
        let before_ms = self.reset_at_ms.saturating_sub(self.length_ms);
        self.assumed && self.counts_as(throttle) && self.agrees(before_ms, throttle)
    }

    /// Returns true if it may have ended by now, given the errors of the clocks of its reports and
    /// of this process.
    pub(super) fn may_have_ended(&self, throttle: &Throttle, now_ms: i64) -> bool {
        self.reset_at_ms <= now_ms.saturating_add(self.tolerance_ms(throttle))
    }

    fn counts_as(&self, throttle: &Throttle) -> bool {
        self.unit == Unit::Requests && self.limit == throttle.limit
    }

    /// True if an end of this window and a reported one differ by at most the clock's error.
    fn agrees(&self, ends_ms: i64, throttle: &Throttle) -> bool {
        let difference_ms = ends_ms.saturating_sub(throttle.reset_at_ms);
        difference_ms.saturating_abs() <= self.tolerance_ms(throttle)
    }

    fn tolerance_ms(&self, throttle: &Throttle) -> i64 {
        let error_ms = self.error_ms.max(throttle.error_ms);
        SAME_WINDOW_MS.saturating_add(error_ms.clamp(0, (self.length_ms / 2).max(0)))
    }

    /// Adopts the end in a report that was computed with less error, or is the first for this
    /// window.
    pub(super) fn correct_end(&mut self, throttle: &Throttle) {
        if self.assumed || throttle.error_ms < self.error_ms {
            self.reset_at_ms = throttle.reset_at_ms;
            self.error_ms = throttle.error_ms;
        } else if throttle.error_ms == self.error_ms {
            self.reset_at_ms = self.reset_at_ms.max(throttle.reset_at_ms);
        }
    }

    /// The amount that may be taken above a reserve. `kept` is the reserve, as a share of the quota
    /// that the rest of the window would provide at an even pace.
    pub(super) fn free(&self, kept: f64, now_ms: i64) -> u32 {
        let line = self.even() * kept * self.left_ms(now_ms) as f64;
        let line = line.round().clamp(0.0, f64::from(u32::MAX)) as u32;
        self.remaining.saturating_sub(line)
    }

    /// The time at which `cost` will be free, in Unix ms.
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

    /// Subtracts the use by others. `remaining` is the number that an answer reports.
    pub(super) fn report(&mut self, remaining: u32) {
        let missing = self.remaining.saturating_sub(remaining);
        let by_others = missing.saturating_sub(std::mem::take(&mut self.earlier));
        self.others = self.others.saturating_add(by_others);
        self.remaining = self.remaining.min(remaining);
    }

    /// Merges another window that turned out to be this one.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.remaining = self.remaining.min(other.remaining);
        self.others = self.others.max(other.others);
        self.late = self.late.max(other.late);
        self.earlier = self.earlier.max(other.earlier);
        self.length_ms = self.length_ms.max(other.length_ms);
        self.assumed &= other.assumed;
        self.unreported = self.unreported.min(other.unreported);
        if other.error_ms < self.error_ms {
            self.reset_at_ms = other.reset_at_ms;
            self.error_ms = other.error_ms;
        }
    }

    /// The quota per ms at an even pace.
    fn even(&self) -> f64 {
        f64::from(self.limit) / self.length_ms.max(1) as f64
    }

    pub(super) fn left_ms(&self, now_ms: i64) -> i64 {
        self.reset_at_ms.saturating_sub(now_ms).max(0)
    }
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The largest difference between the ends in two reports of one window that were computed without
/// error, in ms.
pub(super) const SAME_WINDOW_MS: i64 = 2_000;
/// A request that is sent this close to a window's end may arrive after it.
pub const WINDOW_EDGE_MS: i64 = 3_000;
