//! Every throttle that an upstream has reported, obeyed at once.

use serde::{Deserialize, Serialize};

use crate::answer::Throttle;

/// The throttles in force, each until its window ends.
///
/// An upstream reports only its tightest throttle; one that it reported
/// before stays in force here until its own reset, counted down by our own
/// requests. Within a window `remaining` only falls: a late answer never
/// raises it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Throttles(Vec<Throttle>);

impl Throttles {
    /// Applies a report.
    pub fn report(&mut self, throttle: Throttle, now_ms: i64) {
        self.0.retain(|known| known.reset_at_ms > now_ms);
        if throttle.reset_at_ms <= now_ms {
            return;
        }
        let same_window = |known: &&mut Throttle| {
            known.limit == throttle.limit
                && known.reset_at_ms.abs_diff(throttle.reset_at_ms) <= SAME_WINDOW_MS
        };
        if let Some(known) = self.0.iter_mut().find(same_window) {
            known.remaining = known.remaining.min(throttle.remaining);
            known.reset_at_ms = known.reset_at_ms.max(throttle.reset_at_ms);
            return;
        }
        if self.0.len() == MAX_THROTTLES {
            // The window that ends first matters least.
            self.0.sort_by_key(|known| known.reset_at_ms);
            self.0.remove(0);
        }
        self.0.push(throttle);
    }

    /// Counts a request that is about to be sent.
    pub fn spend(&mut self) {
        for throttle in &mut self.0 {
            throttle.remaining = throttle.remaining.saturating_sub(1);
        }
    }

    /// How long to leave between two requests so that what is left lasts to
    /// the end of every window, ms.
    pub fn spacing_ms(&self, now_ms: i64) -> i64 {
        self.in_force(now_ms)
            .filter(|throttle| throttle.remaining > 0)
            .map(|throttle| (throttle.reset_at_ms - now_ms) / i64::from(throttle.remaining))
            .max()
            .unwrap_or(0)
    }

    /// When the next request may be sent, if a throttle is used up, Unix ms.
    pub fn blocked_until_ms(&self, now_ms: i64) -> Option<i64> {
        self.in_force(now_ms)
            .filter(|throttle| throttle.remaining == 0)
            .map(|throttle| throttle.reset_at_ms)
            .max()
    }

    /// Requests left in the tightest window and when it ends, for reports.
    pub fn tightest(&self, now_ms: i64) -> Option<Throttle> {
        self.in_force(now_ms)
            .max_by_key(|throttle| {
                (throttle.reset_at_ms - now_ms) / i64::from(throttle.remaining.max(1))
            })
            .copied()
    }

    fn in_force(&self, now_ms: i64) -> impl Iterator<Item = &Throttle> {
        self.0
            .iter()
            .filter(move |throttle| throttle.reset_at_ms > now_ms)
    }
}

/// Reports whose windows end this close together are of one window.
/// Next windows end later by a whole window, however short.
const SAME_WINDOW_MS: u64 = 2_000;
/// More windows than any server is known to have at once.
const MAX_THROTTLES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn throttle(limit: u32, remaining: u32, reset_at_ms: i64) -> Throttle {
        Throttle {
            limit,
            remaining,
            reset_at_ms,
        }
    }

    #[test]
    fn both_windows_bind_until_each_ends() {
        let mut throttles = Throttles::default();
        throttles.report(throttle(300, 300, 900_000), 0);
        throttles.report(throttle(300, 10, 300_000), 0);
        assert_eq!(throttles.spacing_ms(0), 30_000, "the short one is tighter");
        assert_eq!(
            throttles.spacing_ms(300_000),
            2_000,
            "the long one is still in force"
        );
        assert_eq!(throttles.spacing_ms(900_000), 0);
    }

    #[test]
    fn remaining_only_falls_within_a_window() {
        let mut throttles = Throttles::default();
        throttles.report(throttle(300, 5, 60_000), 0);
        throttles.spend();
        throttles.report(throttle(300, 200, 60_500), 0);
        assert_eq!(throttles.tightest(0).map(|t| t.remaining), Some(4));
    }

    #[test]
    fn the_next_window_starts_fresh_however_short_windows_are() {
        let mut throttles = Throttles::default();
        throttles.report(throttle(60, 0, 10_000), 5_000);
        throttles.report(throttle(60, 59, 20_000), 9_999);
        assert_eq!(throttles.blocked_until_ms(9_999), Some(10_000));
        assert_eq!(throttles.blocked_until_ms(10_000), None);
    }

    #[test]
    fn a_used_up_window_blocks_until_its_reset() {
        let mut throttles = Throttles::default();
        throttles.report(throttle(300, 1, 60_000), 0);
        assert_eq!(throttles.blocked_until_ms(0), None);
        throttles.spend();
        assert_eq!(throttles.blocked_until_ms(0), Some(60_000));
        assert_eq!(throttles.blocked_until_ms(60_000), None);
    }

    #[test]
    fn a_past_report_changes_nothing() {
        let mut throttles = Throttles::default();
        throttles.report(throttle(300, 0, 1_000), 2_000);
        assert_eq!(throttles, Throttles::default());
    }
}
