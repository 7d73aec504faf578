use std::{cmp::Reverse, collections::BinaryHeap};

/// Posts by when they are due, as the server's index keeps them.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue(BinaryHeap<Reverse<(i64, u32)>>);

impl Queue {
    pub(super) fn push(&mut self, due_ms: i64, post: u32) {
        self.0.push(Reverse((due_ms, post)));
    }

    pub(super) fn first_ms(&self) -> Option<i64> {
        self.0.peek().map(|Reverse((due_ms, _))| *due_ms)
    }

    pub(super) fn pop(&mut self) -> Option<(i64, u32)> {
        self.0.pop().map(|Reverse(entry)| entry)
    }

    /// How many are due.
    pub(super) fn overdue(&self, now_ms: i64) -> usize {
        self.0
            .iter()
            .filter(|Reverse((due_ms, _))| *due_ms <= now_ms)
            .count()
    }
}
