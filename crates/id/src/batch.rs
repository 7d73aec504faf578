use core::iter::FusedIterator;

use crate::origin::Origin;

/// IDs of one tick, taken and not yet handed out. Those not used are lost, which does no harm.
///
/// In a process forked while the batch is held, the batch is empty: its IDs are the parent's.
#[must_use = "IDs taken and not used are lost"]
#[derive(Debug)]
pub struct Batch {
    next_raw: u64,
    left: usize,
    step: u64,
    origin: Origin,
}

impl Batch {
    pub(crate) fn new(first_raw: u64, length: usize, step: u64, origin: Origin) -> Self {
        Self {
            next_raw: first_raw,
            left: length,
            step,
            origin,
        }
    }
}

impl Iterator for Batch {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 || self.origin.is_elsewhere() {
            return None;
        }
        let raw = self.next_raw;
        self.next_raw = raw.wrapping_add(self.step);
        self.left -= 1;
        Some(raw)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = if self.origin.is_elsewhere() {
            0
        } else {
            self.left
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batch {}
impl FusedIterator for Batch {}
