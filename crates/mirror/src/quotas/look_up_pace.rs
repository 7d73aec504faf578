//! The pace of single look-ups at an upstream that announces no limit.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::block::Scope;

/// When the next look-up of each scope may be sent.
#[derive(Default)]
pub(super) struct LookUpPace(HashMap<Scope, Instant>);

impl LookUpPace {
    /// Takes the next place in a scope's row. Returns when the look-up may be sent.
    pub(super) fn next(&mut self, scope: Scope, now: Instant) -> Instant {
        let place = self.0.get(&scope).map_or(now, |free| now.max(*free));
        self.0.insert(scope, place + LOOK_UP_SPACING);
        place
    }
}

/// Servers that announce no limit are often small ones.
pub(super) const LOOK_UP_SPACING: Duration = Duration::from_millis(100);
