//! Rate limits in fixed windows.

use std::collections::HashMap;

use driftline_core::answer::Throttle;

use crate::faults_config::{Counted, ThrottleRule};

/// The requests counted so far in each rule's current window, per budget.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttles {
    rules: Vec<ThrottleRule>,
    counts: HashMap<String, Vec<Window>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Window {
    number: i64,
    requests: u32,
}

/// What the throttles say to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) refused: bool,
    /// The tightest throttle that counted the request.
    pub(crate) tightest: Option<Throttle>,
}

impl Throttles {
    pub(crate) fn new(rules: &[ThrottleRule]) -> Self {
        let mut rules = rules.to_vec();
        rules.retain(|rule| rule.window_ms > 0);
        Self {
            rules,
            counts: HashMap::new(),
        }
    }

    /// Counts a request against a budget at a true time; refused requests
    /// count too.
    pub(crate) fn count(&mut self, now_ms: i64, budget: &str, paged: bool) -> Ruling {
        if !self.counts.contains_key(budget) {
            let windows = vec![Window::default(); self.rules.len()];
            self.counts.insert(budget.to_owned(), windows);
        }
        let mut ruling = Ruling {
            refused: false,
            tightest: None,
        };
        let windows = self.counts.get_mut(budget).into_iter().flatten();
        for (rule, window) in self.rules.iter().zip(windows) {
            if rule.counts == Counted::Paged && !paged {
                continue;
            }
            let number = now_ms.div_euclid(rule.window_ms);
            if window.number != number {
                *window = Window {
                    number,
                    requests: 0,
                };
            }
            window.requests = window.requests.saturating_add(1);
            ruling.refused |= window.requests > rule.limit;
            let throttle = Throttle {
                limit: rule.limit,
                remaining: rule.limit.saturating_sub(window.requests),
                reset_at_ms: (number + 1) * rule.window_ms,
            };
            // Of two that are used up, the one that lasts longer.
            let tightness = |throttle: &Throttle| (throttle.remaining, -throttle.reset_at_ms);
            if ruling
                .tightest
                .is_none_or(|tightest| tightness(&throttle) < tightness(&tightest))
            {
                ruling.tightest = Some(throttle);
            }
        }
        ruling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_of_several_throttles_is_reported() {
        let mut throttles =
            Throttles::new(&[ThrottleRule::all(10, 1_000), ThrottleRule::paged(3, 60_000)]);
        let first = throttles.count(500, "a", false);
        assert_eq!(
            first.tightest.map(|t| (t.limit, t.remaining)),
            Some((10, 9))
        );
        for remaining in (0..3).rev() {
            let ruling = throttles.count(500, "a", true);
            assert!(!ruling.refused);
            let tightest = ruling.tightest.expect("a throttle");
            assert_eq!((tightest.limit, tightest.remaining), (3, remaining));
            assert_eq!(tightest.reset_at_ms, 60_000);
        }
        assert!(throttles.count(500, "a", true).refused);
        assert!(!throttles.count(500, "a", false).refused);
        assert!(
            !throttles.count(500, "b", true).refused,
            "a budget of its own"
        );
        assert!(!throttles.count(60_000, "a", true).refused, "a new window");
    }

    #[test]
    fn of_two_used_up_throttles_the_longer_is_reported() {
        for rules in [
            [ThrottleRule::all(0, 1_000), ThrottleRule::all(0, 60_000)],
            [ThrottleRule::all(0, 60_000), ThrottleRule::all(0, 1_000)],
        ] {
            let tightest = Throttles::new(&rules).count(500, "a", true).tightest;
            assert_eq!(tightest.map(|t| t.reset_at_ms), Some(60_000));
        }
    }

    #[test]
    fn without_rules_nothing_is_refused_or_reported() {
        let ruling = Throttles::new(&[]).count(0, "a", true);
        assert!(!ruling.refused && ruling.tightest.is_none());
    }
}
