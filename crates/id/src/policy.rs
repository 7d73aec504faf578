/// The behaviour of a generator while the clock does not allow another ID. The clock is then behind
/// the last ID's time, before the window's beginning, or past the window's end.
///
/// In each case the generator's state stays unchanged, and no ID has a time that the clock has not
/// reached.
///
/// Two waits happen under every policy: for the next tick when a tick has no IDs left, and for a
/// window that begins in the very next tick. If the clock is behind the last ID's tick, even by
/// less than a tick, the policy decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockPolicy {
    /// Refuses at once.
    Refuse,
    /// Waits, unless the clock must catch up by more than the limit.
    ///
    /// After a crash a window begins up to its length ahead, and after several consecutive crashes
    /// up to about two lengths. The limit should allow that.
    Wait {
        /// The longest wait of one call, in ms.
        at_most_ms: u32,
    },
}

/// The first sequence of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceStart {
    /// At 0, in every tick.
    Zero,
    /// A different count in every tick, so that slowly made IDs do not all end alike and land on
    /// one shard. The IDs of a tick run from there to the last sequence and do not wrap, so they
    /// keep rising. A tick has up to `below` - 1 fewer IDs.
    Scattered {
        /// Random bits from the caller.
        seed: u64,
        /// The number of starting points, which are 0 up to `below` - 1 within the sequence. With 0
        /// or 1 every tick starts at 0.
        below: u64,
    },
}

impl SequenceStart {
    /// The first sequence of `tick`, at most `max`.
    pub(crate) fn at(self, tick: u64, max: u64) -> u64 {
        match self {
            Self::Zero | Self::Scattered { below: 0, .. } => 0,
            Self::Scattered { seed, below } => mix(seed ^ mix(tick)) % below.min(max + 1),
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood, 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
