/// IDs of one tick that are taken, and handed out one by one.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The next ID, if there is one.
    pub(crate) next_raw: u64,
    pub(crate) stop_raw: u64,
    pub(crate) step: u64,
    pub(crate) tick_start_us: i64,
    pub(crate) unit_us: u64,
}

impl Run {
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
}
