use std::collections::HashSet;
use std::hash::Hash;

/// Fills batches: full ones leave at once, others when they have waited long enough.
///
/// The wait begins with the first element after a flush. An element that is in the batch already
/// is not added again.
#[derive(Debug, Clone)]
pub struct Batcher<T> {
    size: usize,
    ttl_ms: i64,
    batch: Vec<T>,
    known: HashSet<T>,
    began_ms: i64,
}

/// Why a batch left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flush<T> {
    /// It was full.
    Full(Vec<T>),
    /// Its time was over.
    Over(Vec<T>),
}

impl<T: Clone + Eq + Hash> Batcher<T> {
    /// Batches of `size` elements, at least one, that wait `ttl_ms` at most.
    pub fn new(size: usize, ttl_ms: i64) -> Self {
        Self {
            size: size.max(1),
            ttl_ms,
            batch: Vec::new(),
            known: HashSet::new(),
            began_ms: 0,
        }
    }

    /// Adds an element; the batch, if that fills it.
    pub fn add(&mut self, element: T, now_ms: i64) -> Option<Flush<T>> {
        if !self.known.insert(element.clone()) {
            return None;
        }
        if self.batch.is_empty() {
            self.began_ms = now_ms;
        }
        self.batch.push(element);
        (self.batch.len() >= self.size).then(|| Flush::Full(self.take()))
    }

    /// The batch, if its time is over.
    pub fn tick(&mut self, now_ms: i64) -> Option<Flush<T>> {
        let over_ms = self.over_ms()?;
        (now_ms >= over_ms).then(|| Flush::Over(self.take()))
    }

    /// When the batch's time is over, Unix ms; `None` while it is empty.
    pub fn over_ms(&self) -> Option<i64> {
        (!self.batch.is_empty()).then(|| self.began_ms.saturating_add(self.ttl_ms))
    }

    fn take(&mut self) -> Vec<T> {
        self.known.clear();
        std::mem::take(&mut self.batch)
    }
}
