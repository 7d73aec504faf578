//! Spans of time that durations are drawn from.

use crate::rng::Rng;

/// A span that a duration is drawn from, ms, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanMs {
    /// The shortest, ms.
    pub min: i64,
    /// The longest, ms.
    pub max: i64,
}

impl SpanMs {
    /// From `min` to `max` ms.
    pub const fn new(min: i64, max: i64) -> Self {
        Self { min, max }
    }

    /// A span of this range.
    pub(crate) fn draw(self, rng: &mut Rng) -> i64 {
        rng.between(self.min, self.max)
    }
}
