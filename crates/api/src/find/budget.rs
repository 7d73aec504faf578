//! The limits of a search.

use std::time::Duration;

/// The parts of at most 2,000 places each, and the time of reading, that a search has left. It checks
/// this after each part, so that it always gets on, and takes a part longer at most. A search whose
/// budget is spent goes on from [`Stretch::rest`](driftline_store::timeline::Stretch::rest).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchBudget {
    /// The number of parts.
    pub parts: u32,
    /// The time of reading. Waiting for a connection is not counted.
    pub time: Duration,
}

impl SearchBudget {
    /// The budget of one request over HTTP.
    pub const REQUEST: SearchBudget = SearchBudget {
        parts: 50,
        time: Duration::from_secs(2),
    };
    /// The budget of one answer to a command, which asks again for the rest and meanwhile can show how
    /// far it is.
    pub const PORTION: SearchBudget = SearchBudget {
        parts: u32::MAX,
        time: Duration::from_millis(200),
    };

    /// Takes off what a part took.
    pub fn spend(&mut self, time: Duration) {
        self.parts = self.parts.saturating_sub(1);
        self.time = self.time.saturating_sub(time);
    }

    /// True if nothing is left.
    pub const fn is_spent(&self) -> bool {
        self.parts == 0 || self.time.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_with_its_parts_and_with_its_time() {
        let ms = Duration::from_millis;
        let budget = SearchBudget {
            parts: 3,
            time: ms(100),
        };
        let spent_after = |part_ms: &[u64]| {
            let mut left = budget;
            part_ms.iter().position(|took| {
                left.spend(ms(*took));
                left.is_spent()
            })
        };
        assert_eq!(spent_after(&[0, 0, 0]), Some(2));
        assert_eq!(spent_after(&[99, 1]), Some(1));
        assert_eq!(spent_after(&[1_000]), Some(0));
        assert_eq!(spent_after(&[40, 59]), None);
    }
}
