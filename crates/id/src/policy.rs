/// What a generator does while the clock does not allow another ID: it is behind the last ID's
/// time, before the window's beginning, or past the window's end.
///
/// Whichever it is, the generator's state stays untouched, and no ID has a time that the clock
/// has not reached.
///
/// Two waits are no policy's: for the next tick, where a tick has no IDs left, and for a window
/// that begins in the very next tick. A clock that is behind the last ID's tick is refused, or
/// waited for, as the policy says, even by less than a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockPolicy {
    /// Refuses at once.
    Refuse,
    /// Waits, unless the clock has to catch up by more than this.
    ///
    /// After a crash a window begins up to its length ahead, and after several in a row up to
    /// about two lengths: allow that much.
    Wait {
        /// The longest wait of one call, in ms.
        at_most_ms: u32,
    },
}

/// Where the sequence of a tick starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceStart {
    /// At 0, in every tick.
    Zero,
    /// At a different count in every tick, so that IDs made slowly do not all end alike (which
    /// puts them all on one shard). The tick's IDs run from there to the last of the sequence and
    /// do not wrap, so that they keep rising; a tick has up to `below` - 1 fewer of them.
    Scattered {
        /// Random bits, drawn by the caller.
        seed: u64,
        /// The starting points: 0 up to `below` - 1, within the sequence. 0 and 1 mean none but 0.
        below: u64,
    },
}

impl SequenceStart {
    /// The start in that tick, at most `max`.
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
