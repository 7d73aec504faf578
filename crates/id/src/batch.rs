use core::iter::FusedIterator;

use crate::origin::Origin;

/// IDs of one tick, taken and not yet handed out. Unused IDs are lost, which does no harm.
///
/// In a process forked while the batch exists, the batch is empty: its IDs belong to the parent.
#[must_use = "IDs taken and not used are lost"]
#[derive(Debug)]
pub struct Batch {
    pub(crate) next_raw: u64,
    pub(crate) left: usize,
    pub(crate) step: u64,
    pub(crate) origin: Origin,
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
        let left = match self.origin.is_elsewhere() {
            true => 0,
            false => self.left,
        };
        (left, Some(left))
    }
}

impl ExactSizeIterator for Batch {}
impl FusedIterator for Batch {}
