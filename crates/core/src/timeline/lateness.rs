//! How late posts become visible, as polling can know it.

use serde::{Deserialize, Serialize};

use super::histogram::Histogram;

/// The measured lateness of a source's posts.
///
/// Polling knows a post's lateness only as an interval: it was not there at
/// the read before (the lower bound) and is there now (the upper bound).
/// Posts that only rescans find are counted with what the earlier reads of
/// their range say, or the overlap would confirm itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Lower bounds, ms; bounds below zero count as zero.
    pub at_least: Histogram,
    /// Upper bounds, ms; bounds below zero count as zero.
    pub at_most: Histogram,
    /// The overlap that each post would have needed to be read by the poll
    /// after it became visible, ms.
    pub needed: Histogram,
    /// Posts whose lateness is surely below zero: their ID was ahead of the
    /// server's time when they were read.
    pub ahead: u64,
    /// The largest lower bound seen, ms.
    pub longest_ms: i64,
    /// The largest lower bound, ms, of posts that were surely less late than
    /// [`Lateness::SOON_MS`]: what a second look can wait for. Later ones, such
    /// as backdated federated posts, are for the rungs above it.
    pub longest_soon_ms: i64,
    /// The newest ID's time less the server's time at the last read that
    /// brought one, ms.
    pub newest_ahead_ms: i64,
}

impl Lateness {
    /// The latest that a second look may come, ms.
    pub const SOON_MS: i64 = 120_000;

    /// Takes one post in: the interval of its lateness and the overlap that
    /// it needed, all in ms, signed.
    pub fn add(&mut self, at_least_ms: i64, at_most_ms: i64, needed_ms: i64) {
        self.at_least.add(at_least_ms);
        self.at_most.add(at_most_ms);
        self.needed.add(needed_ms);
        if at_most_ms < 0 {
            self.ahead += 1;
        }
        self.longest_ms = self.longest_ms.max(at_least_ms);
        if at_most_ms <= Self::SOON_MS {
            self.longest_soon_ms = self.longest_soon_ms.max(at_least_ms);
        }
    }
}
