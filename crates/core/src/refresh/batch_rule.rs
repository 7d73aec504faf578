/// When a batch of due posts is sent: at once when it is full, else when its first post has waited
/// long enough.
///
/// The schedule itself is the buffer. No worker holds the posts that wait in it, so a worker that
/// dies while a batch fills delays nothing; a claim takes a post off the schedule, so that it is in
/// one batch at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRule {
    size: usize,
    ttl_ms: i64,
}

/// The state of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// It leaves: it is full, or its time is over.
    Ready,
    /// Its time is over at this Unix ms.
    Until(i64),
    /// Nothing is due.
    Empty,
}

impl BatchRule {
    /// Batches of `size` posts, at least one, that wait `ttl_ms` at most.
    pub fn new(size: usize, ttl_ms: i64) -> Self {
        Self {
            size: size.max(1),
            ttl_ms: ttl_ms.max(0),
        }
    }

    /// The most posts of a batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The state of a batch of `due` posts, the first of which came due at `first_due_ms`, Unix ms.
    pub fn fill(&self, due: usize, first_due_ms: i64, now_ms: i64) -> Fill {
        let over_ms = first_due_ms.saturating_add(self.ttl_ms);
        if due == 0 {
            Fill::Empty
        } else if due >= self.size || now_ms >= over_ms {
            Fill::Ready
        } else {
            Fill::Until(over_ms)
        }
    }
}
