//! Sets of an instance's buckets.

use super::SHARDS;

/// A set of shards of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shards(u64);

impl Shards {
    /// No shards.
    pub const NONE: Shards = Shards(0);
    /// All shards.
    pub const ALL: Shards = Shards((1 << SHARDS) - 1);

    /// Adds a shard, counted from 0.
    pub fn insert(&mut self, shard: u8) {
        self.0 |= 1 << shard;
    }

    /// The shards, in order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..SHARDS as u8).filter(move |shard| self.0 & (1 << shard) != 0)
    }

    /// True if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The buckets of an instance's shards, which begin at `base`.
    pub(crate) fn buckets(self, base: i64) -> impl Iterator<Item = i64> {
        self.iter().map(move |shard| base + i64::from(shard))
    }

    pub(crate) fn contains(self, shard: i64) -> bool {
        self.0 & (1 << shard) != 0
    }
}
