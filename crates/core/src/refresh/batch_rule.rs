/// The rule for sending a batch of due posts: at once if it is full, otherwise when its first post
/// has waited long enough.
///
/// The schedule itself is the buffer. No worker holds the waiting posts, so a worker that dies
/// while a batch fills delays nothing. A claim removes a post from the schedule, so that it is in
/// one batch at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRule {
    size: usize,
    ttl_ms: i64,
}

/// The state of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The batch must be sent: it is full, or its time is over.
    Ready,
    /// The time of the batch ends at this Unix ms.
    Until(i64),
    /// No post is due.
    Empty,
}

impl BatchRule {
    /// Batches of `size` posts, at least one, that wait at most `ttl_ms`.
    pub fn new(size: usize, ttl_ms: i64) -> Self {
        Self {
            size: size.max(1),
            ttl_ms: ttl_ms.max(0),
        }
    }

    /// The largest number of posts in a batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The state of a batch of `due` posts. The first of them became due at `first_due_ms`, in Unix
    /// ms.
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
