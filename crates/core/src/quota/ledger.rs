use serde::{Deserialize, Serialize};

use super::window::{SAME_WINDOW_MS, Unit, Window};
use crate::{
    answer::Throttle,
    clock::{ClockReading, MIN_STEP_MS},
    timeline::backoff_ms,
};

/// A credential's remaining quota at one upstream, in one scope of its limits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct QuotaLedger {
    windows: Vec<Window>,
    /// The wall clock at the last storage of the ledger, in Unix ms. Its times are by that clock.
    #[serde(default)]
    as_of_ms: i64,
    /// The time before which no request may be sent, in Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocked_until_ms: Option<i64>,
    /// The cap of another month, to which a clock that steps back returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    other_cap: Option<Window>,
    /// Consecutive refusals without a `Retry-After` or a reset.
    #[serde(default)]
    refusals: u32,
    /// The number of requests granted so far.
    #[serde(default)]
    granted: u64,
    /// The number of running requests that were granted before any limit was known.
    #[serde(default)]
    blind: u32,
}

/// The purpose of a request.
///
/// Some upstreams have a further limit for pages with bounds. Each answer reports the tightest
/// limit that counts its request. A limit that only answers to polls report is assumed to count
/// only polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuotaPurpose {
    /// Reads of timelines, including look-ups for them. They have priority.
    Poll,
    /// Look-ups that refresh posts.
    Refresh,
}

/// The quota that remains for reading a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaView {
    /// The interval between requests at which the quota lasts until the end of every window, in ms;
    /// 0 while no limit is known.
    pub spacing_ms: i64,
    /// The tightest window that an answer has reported.
    pub tightest: Option<Throttle>,
}

/// The ledger's decision on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// This number of requests may be sent, at least one.
    Requests(u32),
    /// No request may be sent before this time, in Unix ms.
    Until(i64),
}

/// The process's memory of a ledger that it read or stored. It determines the ledger's age, even if
/// the wall clock is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerAge {
    /// The time at which the ledger was stored, in Unix ms.
    as_of_ms: i64,
    /// The age of the ledger at that time, in ms.
    age_ms: i64,
    /// The process's monotonic clock at that time, in ms.
    steady_ms: i64,
}

impl QuotaLedger {
    /// Adjusts the times of a ledger from the store to the present wall clock. Windows and blocks
    /// then end as if the clock had never been set, and last at most for their length. `last` is
    /// this process's memory of the ledger. Without it, a clock that was set forward counts as
    /// elapsed time.
    ///
    /// Returns the new memory, which [`QuotaLedger::stored`] replaces once the ledger is stored
    /// again.
    pub fn sync(&mut self, clocks: ClockReading, last: Option<LedgerAge>) -> LedgerAge {
        let (now_ms, as_of_ms) = (clocks.wall_ms, self.as_of_ms);
        let shown_ms = now_ms.saturating_sub(as_of_ms);
        let age_ms = match last {
            None => shown_ms.max(0),
            Some(last) => {
                let passed_ms = clocks.steady_ms.saturating_sub(last.steady_ms).max(0);
                match last.as_of_ms == as_of_ms {
                    true => last.age_ms.saturating_add(passed_ms),
                    // The ledger was stored since then, by this process or another one.
                    false => shown_ms.clamp(0, passed_ms),
                }
            }
        };
        let step_ms = match shown_ms.saturating_sub(age_ms) {
            step_ms if as_of_ms > 0 && step_ms.saturating_abs() > MIN_STEP_MS => step_ms,
            _ => 0,
        };
        self.as_of_ms = now_ms;
        let moved = |at_ms: i64, max_ms: i64| {
            let at_ms = at_ms.saturating_add(step_ms);
            at_ms.min(now_ms.saturating_add(max_ms))
        };
        let windows = self.windows.iter_mut();
        for window in windows.filter(|window| window.unit == Unit::Requests) {
            let max_ms = window.length_ms.saturating_add(SAME_WINDOW_MS);
            window.reset_at_ms = moved(window.reset_at_ms, max_ms);
        }
        let blocked_until_ms = self.blocked_until_ms;
        self.blocked_until_ms = blocked_until_ms.map(|until_ms| moved(until_ms, MAX_WAIT_MS));
        LedgerAge {
            as_of_ms,
            age_ms,
            steady_ms: clocks.steady_ms,
        }
    }

    /// True if the ledger was stored by a clock that showed a later time. It must then be stored
    /// again after [`QuotaLedger::sync`]. Otherwise each new process would count its waits from its
    /// own start.
    pub fn is_ahead(&self, now_ms: i64) -> bool {
        self.as_of_ms > now_ms.saturating_add(MIN_STEP_MS)
    }

    /// The memory of a ledger that is stored just after [`QuotaLedger::sync`], at these times.
    pub fn stored(&self, clocks: ClockReading) -> LedgerAge {
        LedgerAge {
            as_of_ms: self.as_of_ms,
            age_ms: 0,
            steady_ms: clocks.steady_ms,
        }
    }

    /// Takes up to `max` requests that read up to `posts` posts each.
    ///
    /// Refreshing leaves a reserve to polling: the share `polling_share`, 0 to 1, of the quota that
    /// the rest of the window would provide at an even pace. The reserve shrinks with the window,
    /// so that nothing is left unused at its end.
    ///
    /// Until an answer reports the current window, it grants one request at a time.
    pub fn take(
        &mut self,
        max: u32,
        posts: u32,
        purpose: QuotaPurpose,
        polling_share: f64,
        now_ms: i64,
    ) -> Grant {
        if let Some(until_ms) = self.blocked_until_ms.filter(|&until_ms| until_ms > now_ms) {
            return Grant::Until(until_ms);
        }
        for window in &mut self.windows {
            window.roll(now_ms);
        }
        let cost = |unit| match unit {
            Unit::Requests => 1,
            Unit::Posts => posts,
        };
        let applies = |window: &Window| purpose == QuotaPurpose::Poll || !window.pages_only;
        let mut requests = self
            .windows
            .iter()
            .filter(|window| window.unit == Unit::Requests && applies(window))
            .peekable();
        let knows_requests = requests.peek().is_some();
        let is_known = knows_requests && requests.all(|window| !window.assumed);
        let mut granted = if is_known { max.max(1) } else { 1 };
        let mut until_ms = now_ms;
        for window in self.windows.iter().filter(|window| applies(window)) {
            let (kept, cost) = (kept(purpose, polling_share, window.unit), cost(window.unit));
            let free = window.free(kept, now_ms);
            granted = granted.min(free.checked_div(cost).unwrap_or(granted));
            if free < cost {
                let free_at_ms = window.free_at_ms(cost, kept, now_ms);
                until_ms = until_ms.max(free_at_ms.max(now_ms + 1));
            }
        }
        if granted == 0 {
            return Grant::Until(until_ms);
        }
        for window in self.windows.iter_mut().filter(|window| applies(window)) {
            window.spend(cost(window.unit).saturating_mul(granted), now_ms);
        }
        if !knows_requests {
            self.blind = self.blind.saturating_add(granted);
        }
        self.granted = self.granted.saturating_add(u64::from(granted));
        Grant::Requests(granted)
    }

    /// True if an answer's headers would change the ledger.
    pub fn is_news(&self, purpose: QuotaPurpose, throttle: Option<&Throttle>, now_ms: i64) -> bool {
        let mut after = self.clone();
        after.answered(purpose, throttle, now_ms);
        after != *self
    }

    /// Applies an answer's headers. A late answer never raises the remaining quota.
    pub fn answered(&mut self, purpose: QuotaPurpose, throttle: Option<&Throttle>, now_ms: i64) {
        // An answer to a request that was sent before a refusal does not end the block.
        if self
            .blocked_until_ms
            .is_none_or(|until_ms| until_ms <= now_ms)
        {
            self.refusals = 0;
            self.blocked_until_ms = None;
        }
        self.blind = self.blind.saturating_sub(1);
        if let Some(throttle) = throttle {
            self.reported(purpose, throttle, now_ms);
        }
    }

    /// Records that a request ended without an answer that reports limits.
    pub fn unanswered(&mut self) {
        self.blind = self.blind.saturating_sub(1);
    }

    /// Applies a refusal (429). Others must have used the quota that the ledger counted as
    /// remaining.
    pub fn refused(
        &mut self,
        purpose: QuotaPurpose,
        throttle: Option<&Throttle>,
        retry_after_ms: Option<i64>,
        random: u64,
        now_ms: i64,
    ) {
        let throttle = throttle.filter(|throttle| throttle.reset_at_ms > now_ms);
        if let Some(throttle) = throttle {
            self.reported(purpose, throttle, now_ms);
        }
        if let Some(throttle) = throttle {
            match self.reported_window(purpose, throttle) {
                Some(window) if window.is_of(throttle) => window.report(0),
                // The window is about to end.
                _ => self.blocked_until_ms = self.blocked_until_ms.max(Some(throttle.reset_at_ms)),
            }
        }
        self.refusals = self.refusals.saturating_add(1);
        let wait_ms = match (retry_after_ms, throttle) {
            (Some(wait_ms), _) => wait_ms.clamp(MIN_WAIT_MS, MAX_WAIT_MS),
            (None, Some(_)) => return,
            (None, None) => backoff_ms(BASE_WAIT_MS, self.refusals, random),
        };
        let until_ms = now_ms.saturating_add(wait_ms);
        self.blocked_until_ms = self.blocked_until_ms.max(Some(until_ms));
    }

    /// Sets a cap on posts read in a period that ends at `ends_at_ms`, in Unix ms, and lasts
    /// `length_ms`. Posts already used in that period stay used, even if a stepping clock has shown
    /// another period meanwhile.
    pub fn set_cap(&mut self, posts: u32, ends_at_ms: i64, length_ms: i64) {
        let is_it =
            |cap: &Window| cap.reset_at_ms.abs_diff(ends_at_ms) <= SAME_WINDOW_MS.unsigned_abs();
        let last = self.cap().copied();
        self.windows.retain(|window| window.unit != Unit::Posts);
        let before = match last {
            Some(last) if !is_it(&last) => self.other_cap.replace(last),
            last => last,
        };
        let used = before
            .filter(is_it)
            .map_or(0, |cap| cap.limit.saturating_sub(cap.remaining));
        let cap = Throttle {
            limit: posts,
            remaining: posts.saturating_sub(used),
            reset_at_ms: ends_at_ms,
            error_ms: 0,
        };
        self.windows
            .push(Window::new(Unit::Posts, cap, length_ms, false));
    }

    /// Replaces the number of taken posts by the number of read posts.
    pub fn settle(&mut self, taken: u32, read: u32) {
        for cap in self.windows.iter_mut().filter(|w| w.unit == Unit::Posts) {
            let left = cap.remaining.saturating_add(taken).saturating_sub(read);
            cap.remaining = left.min(cap.limit);
        }
    }

    /// The quota that remains for reading a timeline.
    pub fn view(&self, now_ms: i64) -> QuotaView {
        let reported = |window: &&Window| {
            window.unit == Unit::Requests && !window.assumed && window.reset_at_ms > now_ms
        };
        let spacing_ms =
            |window: &&Window| window.left_ms(now_ms) / i64::from(window.remaining.max(1));
        let in_force = || self.windows.iter().filter(reported);
        let usable = in_force().filter(|window| window.remaining > 0);
        QuotaView {
            spacing_ms: usable.map(|window| spacing_ms(&window)).max().unwrap_or(0),
            tightest: in_force().max_by_key(spacing_ms).map(|window| Throttle {
                limit: window.limit,
                remaining: window.remaining,
                reset_at_ms: window.reset_at_ms,
                error_ms: 0,
            }),
        }
    }

    /// The cap on posts read, if there is one.
    pub fn cap(&self) -> Option<&Window> {
        self.windows.iter().find(|w| w.unit == Unit::Posts)
    }

    /// The known limits.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The number of requests granted so far.
    pub fn granted(&self) -> u64 {
        self.granted
    }

    /// The end of a block by the upstream, Unix ms.
    pub fn blocked_until_ms(&self) -> Option<i64> {
        self.blocked_until_ms
    }

    fn reported(&mut self, purpose: QuotaPurpose, throttle: &Throttle, now_ms: i64) {
        for window in &mut self.windows {
            window.roll(now_ms);
        }
        if throttle.reset_at_ms <= now_ms {
            return;
        }
        let throttle = &Throttle {
            reset_at_ms: throttle.reset_at_ms.min(now_ms.saturating_add(MAX_WAIT_MS)),
            ..*throttle
        };
        let is_known = self.windows.iter().any(|window| window.is_of(throttle));
        let ends_ms = throttle.reset_at_ms.saturating_sub(throttle.error_ms);
        if !is_known && ends_ms <= now_ms {
            // A late answer. Its window may have ended already, and it does not describe the next
            // one.
            return;
        }
        if !is_known {
            for window in &mut self.windows {
                window.roll_for(throttle, now_ms);
            }
        }
        if purpose == QuotaPurpose::Refresh {
            self.set_apart(throttle, now_ms);
        }
        let Some(window) = self.reported_window(purpose, throttle) else {
            return self.add(purpose, throttle, now_ms);
        };
        window.unreported = 0;
        if !window.is_of(throttle) && window.is_after(throttle) {
            window.reset_at_ms = throttle.reset_at_ms;
            window.error_ms = throttle.error_ms;
            window.remaining = window.remaining.min(throttle.remaining);
            window.assumed = false;
            window.earlier = 0;
        } else if !window.is_of(throttle) {
            // It was begun here with a guessed length, which the answer corrects.
            window.report(throttle.remaining);
            window.assumed = false;
            let began_ms = window.reset_at_ms.saturating_sub(window.length_ms);
            window.reset_at_ms = throttle.reset_at_ms;
            window.error_ms = throttle.error_ms;
            window.length_ms = throttle.reset_at_ms.saturating_sub(began_ms).max(1);
            return;
        } else {
            window.report(throttle.remaining);
            window.correct_end(throttle);
            window.assumed = false;
        }
        if window.pages_only && purpose == QuotaPurpose::Refresh {
            self.share(throttle);
        }
        self.merge(throttle);
    }

    /// Merges windows that were assumed to be separate but are the one that an answer reports.
    /// Drops windows that no answer has reported for long, because they would only delay requests.
    fn merge(&mut self, throttle: &Throttle) {
        let mut merged: Vec<Window> = Vec::with_capacity(self.windows.len());
        for window in self.windows.drain(..) {
            let same = merged.iter_mut().find(|other| {
                window.is_of(throttle)
                    && other.is_of(throttle)
                    && other.pages_only == window.pages_only
            });
            match same {
                Some(other) => other.absorb(&window),
                None if window.unit == Unit::Requests && window.unreported > MAX_UNREPORTED => {}
                None => merged.push(window),
            }
        }
        self.windows = merged;
    }

    /// The window that an answer reports. If two windows end together, pages may report either of
    /// them, and look-ups only the one that counts them. If no window matches, a window that was
    /// begun here with a guessed length.
    fn reported_window(
        &mut self,
        purpose: QuotaPurpose,
        throttle: &Throttle,
    ) -> Option<&mut Window> {
        let is_page = purpose == QuotaPurpose::Poll;
        let reported = self.windows.iter_mut().filter(|window| {
            let is_guessed = window.unit == Unit::Requests
                && window.limit == throttle.limit
                && window.assumed
                && (is_page || !window.pages_only);
            window.is_of(throttle) || is_guessed
        });
        reported.min_by_key(|window| {
            let is_other = window.pages_only != is_page;
            (
                !window.is_of(throttle),
                !window.is_after(throttle),
                is_other,
            )
        })
    }

    /// Marks windows as counting pages only. An answer reports the tightest limit, so a window that
    /// is far tighter than the one that a look-up reported does not count look-ups. This
    /// distinguishes two windows of the same size that once ended together. A window that may have
    /// ended, given the clock's error, was not considered by the answer.
    fn set_apart(&mut self, throttle: &Throttle, now_ms: i64) {
        for window in &mut self.windows {
            let is_tighter = window.remaining.saturating_add(UNDER_WAY) < throttle.remaining;
            let is_other = window.unit == Unit::Requests && !window.is_of(throttle);
            let is_under_way = !window.assumed && !window.may_have_ended(throttle, now_ms);
            window.pages_only |= is_other && is_tighter && is_under_way;
        }
    }

    /// Marks a window that was assumed to count only pages as counting look-ups. Running look-ups
    /// were not subtracted from it.
    fn share(&mut self, throttle: &Throttle) {
        let under_way = self.drop_assumed(QuotaPurpose::Refresh);
        if let Some(window) = self.reported_window(QuotaPurpose::Refresh, throttle) {
            window.pages_only = false;
            window.remaining = window.remaining.saturating_sub(under_way);
        }
    }

    /// Drops the windows that no answer has confirmed: a limit that is not reported again was
    /// lowered or raised. Returns the number of grants since then that may still be running.
    fn drop_assumed(&mut self, purpose: QuotaPurpose) -> u32 {
        let is_page = purpose == QuotaPurpose::Poll;
        let mut under_way = if is_page {
            self.blind
        } else {
            std::mem::take(&mut self.blind)
        };
        let is_dropped =
            |w: &Window| w.unit == Unit::Requests && w.assumed && w.pages_only == is_page;
        for window in self.windows.iter().filter(|w| is_dropped(w)) {
            let taken = window.limit.saturating_sub(window.remaining);
            under_way = under_way.saturating_add(taken.saturating_sub(1));
        }
        self.windows.retain(|w| !is_dropped(w));
        under_way
    }

    fn add(&mut self, purpose: QuotaPurpose, throttle: &Throttle, now_ms: i64) {
        let under_way = self.drop_assumed(purpose);
        let requests = |w: &Window| w.unit == Unit::Requests;
        if self.windows.iter().filter(|w| requests(w)).count() >= MAX_WINDOWS {
            let first = self.windows.iter().position(requests);
            if let Some(first) = first {
                self.windows.remove(first);
            }
        }
        let reported = Throttle {
            remaining: throttle.remaining.saturating_sub(under_way),
            ..*throttle
        };
        let length_ms = throttle.reset_at_ms.saturating_sub(now_ms).max(1);
        let is_page = purpose == QuotaPurpose::Poll;
        self.windows
            .push(Window::new(Unit::Requests, reported, length_ms, is_page));
    }
}

/// The reserve that a request leaves in a window, as a share.
fn kept(purpose: QuotaPurpose, polling_share: f64, unit: Unit) -> f64 {
    match (purpose, unit) {
        (QuotaPurpose::Poll, _) => 0.0,
        // A month's cap is spent evenly. A burst at its beginning would leave nothing for its end.
        (QuotaPurpose::Refresh, Unit::Posts) => EVEN,
        (QuotaPurpose::Refresh, Unit::Requests) => polling_share.clamp(0.0, 1.0),
    }
}

const EVEN: f64 = 0.98;
const MAX_WINDOWS: usize = 8;
/// A window that stays unreported while this number of windows was used was never the tightest, or
/// does not exist.
const MAX_UNREPORTED: i64 = 2;
/// More requests than all processes have taken and not sent, or sent without an answer.
const UNDER_WAY: u32 = 64;
const BASE_WAIT_MS: i64 = 15_000;
const MIN_WAIT_MS: i64 = 1_000;
/// The longest block, and the longest reported window that is accepted, in ms.
const MAX_WAIT_MS: i64 = 24 * 3_600_000;
