/// IDs of one tick that are taken and handed out by stepping.
#[derive(Debug)]
pub(crate) struct Run {
    next_raw: u64,
    stop_raw: u64,
    step: u64,
    tick_start_us: i64,
    unit_us: u64,
}

impl Run {
    pub(crate) fn new(
        first_raw: u64,
        length: u64,
        step: u64,
        tick_start_us: i64,
        unit_us: u64,
    ) -> Self {
        Self {
            next_raw: first_raw,
            stop_raw: first_raw.wrapping_add(step.wrapping_mul(length)),
            step,
            tick_start_us,
            unit_us,
        }
    }

    /// A run without IDs.
    pub(crate) fn empty() -> Self {
        Self::new(0, 0, 0, 0, 0)
    }

    /// The next ID, while the run has one and its tick lasts.
    #[inline]
    pub(crate) fn next(&mut self, now_us: i64) -> Option<u64> {
        let since_us = now_us.wrapping_sub(self.tick_start_us) as u64;
        if self.next_raw == self.stop_raw || since_us >= self.unit_us {
            return None;
        }
        let raw = self.next_raw;
        self.next_raw = raw.wrapping_add(self.step);
        Some(raw)
    }

    /// The next ID, if there is one.
    pub(crate) fn next_raw(&self) -> u64 {
        self.next_raw
    }
}
