use crate::layout::Layout;

/// A time that a layout cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The time is before the layout's epoch.
    #[error(
        "Unix ms {unix_ms} is before the epoch of {layout}, {epoch_ms}; \
         give a time from then on, or a layout with an earlier epoch"
    )]
    BeforeEpoch {
        /// The time asked for, in Unix ms.
        unix_ms: i64,
        /// The layout's epoch, in Unix ms.
        epoch_ms: i64,
        /// The layout's name.
        layout: &'static str,
    },
    /// The time is past the last that the layout can express.
    #[error(
        "Unix ms {unix_ms} is past the end of {layout}, {end_of_life_ms}; \
         give a time up to then, in ms"
    )]
    PastEnd {
        /// The time asked for, in Unix ms.
        unix_ms: i64,
        /// The last Unix ms that the layout can express.
        end_of_life_ms: i64,
        /// The layout's name.
        layout: &'static str,
    },
}

impl Layout {
    /// The ID's time in Unix ms, rounded down.
    pub fn time_ms(&self, raw: u128) -> i64 {
        saturating_i64(self.wide_time_us(raw).div_euclid(1_000))
    }

    /// The ID's time in Unix µs. Finer than [`time_ms`](Self::time_ms) only if the layout's unit
    /// is.
    pub fn time_us(&self, raw: u128) -> i64 {
        saturating_i64(self.wide_time_us(raw))
    }

    /// The smallest ID that can have been made in the given Unix ms: 0 before the epoch, the
    /// layout's maximum past its end.
    ///
    /// If the unit is longer than 1 ms, this is the smallest ID of the unit that contains the ms.
    pub fn smallest_at(&self, unix_ms: i64) -> u128 {
        self.saturated(self.checked_smallest_at(unix_ms))
    }

    /// The largest ID that can have been made in the given Unix ms: 0 before the epoch, the
    /// layout's maximum past its end.
    pub fn largest_at(&self, unix_ms: i64) -> u128 {
        self.saturated(self.checked_largest_at(unix_ms))
    }

    /// [`smallest_at`](Self::smallest_at) that rejects times outside the layout's life.
    ///
    /// # Errors
    /// [`TimeError`] if the time is before the layout's epoch or past its end.
    pub fn checked_smallest_at(&self, unix_ms: i64) -> Result<u128, TimeError> {
        let ticks = self.ticks_at(i128::from(unix_ms) * 1_000)?;
        Ok(self.fill(ticks, false))
    }

    /// [`largest_at`](Self::largest_at) that rejects times outside the layout's life.
    ///
    /// # Errors
    /// [`TimeError`] if the time is before the layout's epoch or past its end.
    pub fn checked_largest_at(&self, unix_ms: i64) -> Result<u128, TimeError> {
        let first_us = i128::from(unix_ms) * 1_000;
        self.ticks_at(first_us)?;
        let last = self.ticks_at(first_us + 999).unwrap_or(self.max_ticks());
        Ok(self.fill(last, true))
    }

    /// The last Unix ms that the layout can express.
    pub fn end_of_life_ms(&self) -> i64 {
        let life_us = (1_i128 << self.time_bits()) * i128::from(self.unit().us());
        saturating_i64((self.epoch_us() + life_us - 1).div_euclid(1_000))
    }

    /// The first Unix ms at which IDs pass 2^63 - 1, the largest signed 64-bit integer. `None` if
    /// the sign bit is unused, and for layouts of 128 bits.
    pub fn signed_limit_ms(&self) -> Option<i64> {
        let reaches = self.width_bits() == 64 && !self.sign_bit_unused();
        reaches.then(|| self.time_ms(1 << 63))
    }

    /// The number of units between the layout's epoch and the given Unix µs.
    pub(crate) fn ticks_at(&self, unix_us: i128) -> Result<u128, TimeError> {
        let since_epoch = (unix_us - self.epoch_us()).div_euclid(i128::from(self.unit().us()));
        let unix_ms = saturating_i64(unix_us.div_euclid(1_000));
        let layout = self.name();
        match u128::try_from(since_epoch) {
            Err(_) => Err(TimeError::BeforeEpoch {
                unix_ms,
                epoch_ms: self.epoch_ms(),
                layout,
            }),
            Ok(ticks) if ticks > self.max_ticks() => Err(TimeError::PastEnd {
                unix_ms,
                end_of_life_ms: self.end_of_life_ms(),
                layout,
            }),
            Ok(ticks) => Ok(ticks),
        }
    }

    fn saturated(&self, checked: Result<u128, TimeError>) -> u128 {
        match checked {
            Ok(raw) => raw,
            Err(TimeError::BeforeEpoch { .. }) => 0,
            Err(TimeError::PastEnd { .. }) => self.max(),
        }
    }

    fn wide_time_us(&self, raw: u128) -> i128 {
        let ticks = (self.within_width(raw) >> self.time_shift()) as i128;
        self.epoch_us() + ticks * i128::from(self.unit().us())
    }

    fn epoch_us(&self) -> i128 {
        i128::from(self.epoch_ms()) * 1_000
    }
}

fn saturating_i64(value: i128) -> i64 {
    value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}
