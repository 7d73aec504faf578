/// The size of the chunks that a replica asks for, so that little has to be sent again after a lost answer.
///
/// Each chunk is twice as large as the one before, so a copy of many objects takes few requests. After a lost answer, chunks
/// are small, and grow with what has come since: the next loss is at most a 25th of that, or of a megabyte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSize {
    max_bytes: u32,
    /// The size of the chunks since the last lost answer; `None` if no answer was lost.
    since_loss: Option<u32>,
}

impl ChunkSize {
    /// The first size. A full sync that was interrupted goes on as after a lost answer.
    pub(crate) const fn new(was_interrupted: bool) -> Self {
        match was_interrupted {
            true => Self::after(AFTER_LOSS_BYTES),
            false => Self {
                max_bytes: FIRST_BYTES,
                since_loss: None,
            },
        }
    }

    /// The size after a synchronization that lost an answer and left this size.
    pub(crate) const fn after(max_bytes: u32) -> Self {
        Self {
            max_bytes,
            since_loss: Some(0),
        }
    }

    /// The size that the next synchronization begins with if this one fails; `None` if no answer was lost.
    pub(crate) fn left(self) -> Option<u32> {
        self.since_loss.map(|_| self.max_bytes)
    }

    /// The largest size of the next chunk in bytes.
    pub(crate) const fn max_bytes(self) -> u32 {
        self.max_bytes
    }

    /// Notes that a chunk came. Chunks count as full: only the last one is not.
    pub(crate) fn arrive(&mut self) {
        let next = match &mut self.since_loss {
            None => self.max_bytes.saturating_mul(2),
            Some(bytes) => {
                *bytes = bytes.saturating_add(self.max_bytes);
                self.max_bytes.max(*bytes / LOSS_PART)
            }
        };
        self.max_bytes = next.min(LARGEST_BYTES);
    }

    /// Notes that an answer was lost. If none has come since the last loss, the next chunk is half as large.
    pub(crate) fn lose(&mut self) {
        let next = match self.since_loss.replace(0) {
            Some(0) => self.max_bytes / 2,
            _ => self.max_bytes.min(AFTER_LOSS_BYTES),
        };
        self.max_bytes = next.max(SMALLEST_BYTES);
    }
}

const FIRST_BYTES: u32 = 125_000;
const AFTER_LOSS_BYTES: u32 = 50_000;
/// A loss is at most this part of what came since the last one.
const LOSS_PART: u32 = 25;
/// The bounds of the protocol.
const SMALLEST_BYTES: u32 = 10_000;
const LARGEST_BYTES: u32 = 4_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::MAX_ENTRIES;

    /// The number of requests for `objects` objects of one size, without a loss.
    fn requests(objects: u32, bytes: u32) -> u32 {
        let mut size = ChunkSize::new(false);
        let (mut left, mut requests) = (objects, 0);
        while left > 0 {
            left = left.saturating_sub((size.max_bytes() / bytes).min(MAX_ENTRIES));
            size.arrive();
            requests += 1;
        }
        // The changes since the start.
        requests + 1
    }

    #[test]
    fn a_first_sync_of_20000_objects_takes_at_most_25_requests() {
        assert_eq!(
            [1_000, 1_200, 2_500].map(|bytes| requests(20_000, bytes)),
            [24, 24, 25]
        );
    }

    /// The bytes that are transferred until `all` have come, over connections that are cut after each `cut_bytes`.
    fn transferred(mut size: ChunkSize, all: u32, cut_bytes: u32) -> u32 {
        let (mut left, mut transferred, mut left_of_connection) = (all, 0, cut_bytes);
        for _ in 0..10_000 {
            let chunk = size.max_bytes().min(left);
            let passed = chunk.min(left_of_connection);
            transferred += passed;
            left_of_connection -= passed;
            if passed < chunk {
                left_of_connection = cut_bytes;
                size.lose();
                continue;
            }
            size.arrive();
            left -= chunk;
            if left == 0 {
                return transferred;
            }
        }
        panic!("it does not end");
    }

    #[test]
    fn a_cut_at_every_megabyte_costs_at_most_a_fifteenth() {
        for all in [8_000_000, 20_000_000, 100_000_000] {
            for cut_bytes in (1_001_000..1_050_000).step_by(7_000) {
                for was_interrupted in [false, true] {
                    let bytes = transferred(ChunkSize::new(was_interrupted), all, cut_bytes);
                    assert!(bytes > all, "{all} {cut_bytes}: {bytes}");
                    assert!(bytes - all <= all / 15, "{all} {cut_bytes}: {bytes}");
                }
            }
        }
    }

    #[test]
    fn a_connection_that_passes_on_few_bytes_is_enough() {
        assert!(transferred(ChunkSize::new(false), 1_000_000, 15_000) < 2_000_000);
    }

    #[test]
    fn chunks_grow_again_after_a_loss_and_are_no_smaller_than_the_protocol_allows() {
        let mut size = ChunkSize::new(false);
        for _ in 0..10 {
            size.lose();
        }
        assert_eq!(size.max_bytes(), SMALLEST_BYTES);
        size.arrive();
        assert_eq!(size.max_bytes(), SMALLEST_BYTES);
        for _ in 0..500 {
            size.arrive();
        }
        assert_eq!(size.max_bytes(), LARGEST_BYTES);
    }
}
