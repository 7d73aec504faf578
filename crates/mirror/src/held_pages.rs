//! The memory that held pages of backlogs take, of all sessions of a process together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How much memory held pages take. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct HeldPages(Arc<AtomicUsize>);

/// The part of one session, which it gives back when it is dropped.
#[derive(Debug)]
pub(crate) struct SessionPages {
    all: HeldPages,
    bytes: usize,
}

impl HeldPages {
    pub(crate) fn session(&self) -> SessionPages {
        SessionPages {
            all: self.clone(),
            bytes: 0,
        }
    }
}

impl SessionPages {
    /// How much this session may hold, in bytes. Sessions that ask at the same time may exceed the limit by a page
    /// each.
    pub(crate) fn max_bytes(&self) -> usize {
        let total = self.all.0.load(Ordering::Relaxed);
        MAX_BYTES.saturating_sub(total.saturating_sub(self.bytes))
    }

    /// Records how much it holds now, in bytes.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.all.0.fetch_add(bytes, Ordering::Relaxed);
        self.all.0.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for SessionPages {
    fn drop(&mut self) {
        self.set(0);
    }
}

const MAX_BYTES: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_the_room_and_give_it_back() {
        let all = HeldPages::default();
        let (mut one, mut other) = (all.session(), all.session());
        one.set(MAX_BYTES - 10);
        assert_eq!((one.max_bytes(), other.max_bytes()), (MAX_BYTES, 10));
        other.set(20);
        assert_eq!(other.max_bytes(), 10, "a page too much");
        drop(one);
        assert_eq!(other.max_bytes(), MAX_BYTES);
    }
}
