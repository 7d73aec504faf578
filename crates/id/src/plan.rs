use crate::clock::Clock;
use crate::grant::Grant;
use crate::layout::Layout;
use crate::node::Node;
use crate::run::Run;
use crate::span::TimeError;

/// A layout's arithmetic in 64 bits.
///
/// A **count** packs tick and sequence without the node: `tick << sequence_bits | sequence`.
/// Counts rise by one from ID to ID, across the end of a tick too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) epoch_us: i64,
    epoch_ms: i64,
    pub(crate) unit_us: u64,
    pub(crate) sequence_bits: u32,
    sequence_shift: u32,
    time_shift: u32,
    max_tick: u64,
    check_mask: u64,
    placed_node: u64,
    layout: Layout,
}

impl Plan {
    /// The plan for a node, whose layout has been checked to be fit.
    pub(crate) fn new(node: &Node) -> Self {
        let layout = *node.layout();
        let is_sequence = |field: &crate::Field| field.kind() == crate::FieldKind::Sequence;
        let (sequence_bits, sequence_shift) = layout
            .placed_fields()
            .find(|(field, _)| is_sequence(field))
            .map_or((0, 0), |(field, shift)| (field.bits(), shift));
        Self {
            epoch_us: layout.life_us().map_or(0, |(epoch_us, _)| epoch_us),
            epoch_ms: layout.epoch_ms(),
            unit_us: u64::from(layout.unit().us()),
            sequence_bits: u32::from(sequence_bits),
            sequence_shift: u32::from(sequence_shift),
            time_shift: u32::from(layout.time_shift()),
            max_tick: layout.max_ticks() as u64,
            check_mask: (1_u64 << sequence_bits).wrapping_sub(1) & (CHECK_EVERY - 1),
            placed_node: node.placed,
            layout,
        }
    }

    /// The tick at that Unix µs.
    pub(crate) fn tick_at(&self, unix_us: i64) -> Result<u64, TimeError> {
        let tick = unix_us.abs_diff(self.epoch_us) / self.unit_us;
        if unix_us >= self.epoch_us && tick <= self.max_tick {
            return Ok(tick);
        }
        let ticks = self.layout.ticks_at(i128::from(unix_us))?;
        Ok(ticks as u64)
    }

    /// True if the tick lasts according to the clock's cheap time. A shared generator calls it
    /// between two exchanges of its state, so it is short: a tick of 1 ms is compared without
    /// arithmetic.
    #[inline]
    pub(crate) fn is_within(&self, tick: u64, clock: &impl Clock) -> bool {
        if self.unit_us == 1_000 {
            return clock.now_ms().wrapping_sub(self.epoch_ms) as u64 == tick;
        }
        let since_us = clock.now_us().wrapping_sub(self.tick_start_us(tick)) as u64;
        since_us < self.unit_us
    }

    /// The first tick that begins at that Unix µs or later; 0 before the epoch.
    pub(crate) fn tick_from(&self, unix_us: i64) -> u64 {
        let since_us = i128::from(unix_us) - i128::from(self.epoch_us);
        let since_us = since_us.max(0) as u128;
        let tick = since_us.div_ceil(u128::from(self.unit_us));
        tick.min(u128::from(self.max_tick) + 1) as u64
    }

    /// The Unix µs at which a tick begins. Wraps for ticks far past the layout's end.
    #[inline]
    pub(crate) fn tick_start_us(&self, tick: u64) -> i64 {
        self.epoch_us
            .wrapping_add(tick.wrapping_mul(self.unit_us) as i64)
    }

    /// The tick of a count. Without a sequence the shift may be 0, never 64.
    #[inline]
    pub(crate) fn tick_of(&self, count: u64) -> u64 {
        count >> self.sequence_bits
    }

    /// The sequence of a count.
    #[inline]
    pub(crate) fn sequence_of(&self, count: u64) -> u64 {
        count & self.max_sequence()
    }

    #[inline]
    pub(crate) fn max_sequence(&self) -> u64 {
        (1 << self.sequence_bits) - 1
    }

    #[inline]
    pub(crate) fn count(&self, tick: u64, sequence: u64) -> u64 {
        tick << self.sequence_bits | sequence
    }

    /// The ID of a count.
    #[inline]
    pub(crate) fn raw(&self, count: u64) -> u64 {
        self.tick_of(count) << self.time_shift
            | self.placed_node
            | self.sequence_of(count) << self.sequence_shift
    }

    /// The IDs of a grant after its first.
    pub(crate) fn run_after(&self, grant: &Grant) -> Run {
        let (first_raw, step) = (self.raw(grant.first), self.step());
        Run {
            next_raw: first_raw.wrapping_add(step),
            stop_raw: first_raw.wrapping_add(step.wrapping_mul(grant.length)),
            step,
            tick_start_us: self.tick_start_us(self.tick_of(grant.first)),
            unit_us: self.unit_us,
        }
    }

    /// The difference of two consecutive IDs of a tick.
    #[inline]
    pub(crate) fn step(&self) -> u64 {
        1 << self.sequence_shift
    }

    /// True if a clock that may have stopped must be read again before this count. That is so at
    /// the sequence 0, at each power of two up to [`CHECK_EVERY`], and near its multiples. A
    /// stopped clock is noticed at once if IDs are made slowly, and the reading costs little if
    /// they are made fast.
    #[inline]
    pub(crate) fn is_check(&self, count: u64) -> bool {
        count & count.wrapping_sub(1) & self.check_mask == 0
    }

    /// The number of counts between two IDs of one tick.
    #[inline]
    pub(crate) fn distance(&self, from_raw: u64, to_raw: u64) -> u64 {
        to_raw.wrapping_sub(from_raw) >> self.sequence_shift
    }
}

/// The next sequence at which the clock must be checked, for generators that step.
pub(crate) fn next_check(sequence: u64) -> u64 {
    if sequence < CHECK_EVERY {
        (sequence + 1).next_power_of_two()
    } else {
        (sequence / CHECK_EVERY + 1) * CHECK_EVERY
    }
}

const CHECK_EVERY: u64 = 1_024;
