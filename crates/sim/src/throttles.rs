//! Rate limits in fixed windows.

use std::collections::HashMap;

use driftline_core::answer::Throttle;

use crate::quota::{RequestKind, ThrottleRule, Windows};

/// The requests counted so far in each rule's current window, per budget.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttles {
    rules: Vec<ThrottleRule>,
    start_ms: i64,
    counts: HashMap<String, Vec<Window>>,
}

/// A window that has begun; one that ended long ago to begin with.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    from_ms: i64,
    /// Excluded.
    until_ms: i64,
    requests: u32,
}

impl Window {
    fn at(self, now_ms: i64, rule: &ThrottleRule) -> Self {
        if (self.from_ms..self.until_ms).contains(&now_ms) {
            return self;
        }
        let from_ms = match rule.windows {
            Windows::Aligned => now_ms.div_euclid(rule.window_ms) * rule.window_ms,
            Windows::FromFirst => now_ms,
        };
        Self {
            from_ms,
            until_ms: from_ms + rule.window_ms,
            requests: 0,
        }
    }

    /// Requests so far, those of others included.
    fn used(self, now_ms: i64, rule: &ThrottleRule) -> u32 {
        let into_ms = (now_ms - self.from_ms).clamp(0, rule.window_ms);
        let others = i128::from(rule.others) * i128::from(into_ms) / i128::from(rule.window_ms);
        self.requests
            .saturating_add(u32::try_from(others).unwrap_or(u32::MAX))
    }
}

/// What the throttles say to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) refused: bool,
    /// The tightest throttle that counted the request.
    pub(crate) tightest: Option<Throttle>,
}

impl Throttles {
    /// `start_ms` is what cuts are timed from, Unix ms.
    pub(crate) fn new(rules: &[ThrottleRule], start_ms: i64) -> Self {
        let mut rules = rules.to_vec();
        rules.retain(|rule| rule.window_ms > 0);
        Self {
            rules,
            start_ms,
            counts: HashMap::new(),
        }
    }

    /// Sets other rules; what was counted under a rule of the same position
    /// still counts.
    pub(crate) fn change(&mut self, rules: &[ThrottleRule]) {
        let counts = std::mem::take(&mut self.counts);
        *self = Self::new(rules, self.start_ms);
        self.counts = counts;
    }

    /// Counts a request against a budget at a true time; refused requests
    /// count too.
    pub(crate) fn count(&mut self, now_ms: i64, budget: &str, asked: RequestKind) -> Ruling {
        let mut ruling = Ruling {
            refused: false,
            tightest: None,
        };
        let windows = self.counts.entry(budget.to_owned()).or_default();
        windows.resize(self.rules.len(), Window::default());
        for (rule, window) in self.rules.iter().zip(windows) {
            if !rule.counts.includes(asked) {
                continue;
            }
            *window = window.at(now_ms, rule);
            window.requests = window.requests.saturating_add(1);
            let limit = rule.limit_at(now_ms - self.start_ms);
            let used = window.used(now_ms, rule);
            ruling.refused |= used > limit;
            let throttle = Throttle {
                limit,
                remaining: limit.saturating_sub(used),
                reset_at_ms: window.until_ms,
                error_ms: 0,
            };
            // Of two that are used up, the one that lasts longer.
            let tightness = |throttle: &Throttle| (throttle.remaining, -throttle.reset_at_ms);
            let both = ruling.tightest.into_iter().chain([throttle]);
            ruling.tightest = both.min_by_key(tightness);
        }
        ruling
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::{Endpoint, QuotaCut};

    const PLAIN: RequestKind = RequestKind::plain(Endpoint::Home);
    const PAGED: RequestKind = RequestKind {
        endpoint: Endpoint::Home,
        paged: true,
    };

    #[test]
    fn the_tightest_of_several_throttles_is_reported() {
        let mut throttles = Throttles::new(
            &[ThrottleRule::all(10, 1_000), ThrottleRule::paged(3, 60_000)],
            0,
        );
        let first = throttles.count(500, "a", PLAIN);
        assert_eq!(
            first.tightest.map(|t| (t.limit, t.remaining)),
            Some((10, 9))
        );
        for remaining in (0..3).rev() {
            let ruling = throttles.count(500, "a", PAGED);
            assert!(!ruling.refused);
            let tightest = ruling.tightest.expect("a throttle");
            assert_eq!((tightest.limit, tightest.remaining), (3, remaining));
            assert_eq!(tightest.reset_at_ms, 60_000);
        }
        assert!(throttles.count(500, "a", PAGED).refused);
        assert!(!throttles.count(500, "a", PLAIN).refused);
        assert!(
            !throttles.count(500, "b", PAGED).refused,
            "a budget of its own"
        );
        assert!(!throttles.count(60_000, "a", PAGED).refused, "a new window");
    }

    #[test]
    fn of_two_used_up_throttles_the_longer_is_reported() {
        for rules in [
            [ThrottleRule::all(0, 1_000), ThrottleRule::all(0, 60_000)],
            [ThrottleRule::all(0, 60_000), ThrottleRule::all(0, 1_000)],
        ] {
            let tightest = Throttles::new(&rules, 0).count(500, "a", PAGED).tightest;
            assert_eq!(tightest.map(|t| t.reset_at_ms), Some(60_000));
        }
    }

    #[test]
    fn windows_from_the_first_request_last_their_length() {
        let mut throttles = Throttles::new(&[ThrottleRule::endpoint(Endpoint::LookUps, 2)], 0);
        let look_ups = RequestKind::plain(Endpoint::LookUps);
        for (at_ms, remaining, refused) in [
            (1_234, 1, false),
            (500_000, 0, false),
            (901_233, 0, true),
            (901_234, 1, false),
        ] {
            let ruling = throttles.count(at_ms, "a", look_ups);
            let tightest = ruling.tightest.expect("a throttle");
            assert_eq!((tightest.remaining, ruling.refused), (remaining, refused));
        }
        assert_eq!(throttles.count(0, "a", PLAIN).tightest, None, "not counted");
    }

    #[test]
    fn others_use_a_budget_up_over_its_window() {
        let rule = ThrottleRule {
            others: 80,
            ..ThrottleRule::all(100, 1_000)
        };
        let remaining = |at_ms| {
            let ruling = Throttles::new(&[rule], 0).count(at_ms, "a", PLAIN);
            ruling.tightest.map(|throttle| throttle.remaining)
        };
        assert_eq!(remaining(5_000), Some(99));
        assert_eq!(remaining(5_500), Some(59));
        assert_eq!(remaining(5_999), Some(20));
    }

    #[test]
    fn a_cut_lowers_the_limit_in_the_middle_of_a_window() {
        let rule = ThrottleRule {
            cut: Some(QuotaCut {
                after_ms: 500,
                limit: 3,
            }),
            ..ThrottleRule::all(10, 60_000)
        };
        let mut throttles = Throttles::new(&[rule], 60_000);
        for _ in 0..4 {
            assert!(!throttles.count(60_499, "a", PLAIN).refused);
        }
        let ruling = throttles.count(60_500, "a", PLAIN);
        assert!(ruling.refused);
        assert_eq!(
            ruling.tightest.map(|t| (t.limit, t.remaining)),
            Some((3, 0))
        );
    }

    #[test]
    fn changed_rules_keep_what_was_counted() {
        let mut throttles = Throttles::new(&[ThrottleRule::all(10, 60_000)], 0);
        throttles.count(1, "a", PLAIN);
        throttles.change(&[ThrottleRule::all(5, 60_000), ThrottleRule::all(9, 1_000)]);
        let tightest = throttles.count(2, "a", PLAIN).tightest;
        assert_eq!(tightest.map(|t| (t.limit, t.remaining)), Some((5, 3)));
    }
}
