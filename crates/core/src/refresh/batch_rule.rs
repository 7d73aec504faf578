/// When a batch of due posts leaves: at once when it is full, else when its first post has waited
/// long enough.
///
/// The buffer is the schedule itself. What waits in it is not held by anyone, so a worker that
/// dies while a batch fills delays nothing; a post is in one batch at a time because a claim takes
/// it off the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRule {
    size: usize,
    ttl_ms: i64,
}

/// How a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// It is full.
    Full,
    /// It is not, but its time is over.
    Over,
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

    /// How a batch of so many due posts stands, the first of which came due at `first_due_ms`,
    /// Unix ms.
    pub fn fill(&self, due: usize, first_due_ms: i64, now_ms: i64) -> Fill {
        let over_ms = first_due_ms.saturating_add(self.ttl_ms);
        if due == 0 {
            Fill::Empty
        } else if due >= self.size {
            Fill::Full
        } else if now_ms >= over_ms {
            Fill::Over
        } else {
            Fill::Until(over_ms)
        }
    }
}
