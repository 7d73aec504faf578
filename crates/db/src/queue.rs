use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::error::DbError;
use crate::job::Job;

/// A bounded queue from async callers to plain threads: a caller waits for a slot without
/// blocking its thread, and a thread waits for a job.
pub(crate) struct Queue {
    /// One permit for each free slot.
    slots: Semaphore,
    state: Mutex<State>,
    filled: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Box<dyn Job>>,
    closed: bool,
}

impl Queue {
    pub(crate) fn new(bound: usize) -> Queue {
        Queue {
            slots: Semaphore::new(bound.clamp(1, Semaphore::MAX_PERMITS)),
            state: Mutex::default(),
            filled: Condvar::new(),
        }
    }

    pub(crate) async fn push(&self, job: Box<dyn Job>) -> Result<(), DbError> {
        let slot = self.slots.acquire().await.map_err(|_| DbError::Closed)?;
        let mut state = self.lock();
        if state.closed {
            return Err(DbError::Closed);
        }
        slot.forget();
        state.jobs.push_back(job);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// The next job that its caller still waits for; `None` once closed and empty.
    pub(crate) fn pop(&self) -> Option<Box<dyn Job>> {
        let mut state = self.lock();
        loop {
            if let Some(job) = self.take(&mut state) {
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Like [`Queue::pop`], but never waits.
    pub(crate) fn try_pop(&self) -> Option<Box<dyn Job>> {
        self.take(&mut self.lock())
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Refuses further jobs. Those already queued still run.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.slots.close();
        self.filled.notify_all();
    }

    fn take(&self, state: &mut State) -> Option<Box<dyn Job>> {
        while let Some(job) = state.jobs.pop_front() {
            self.slots.add_permits(1);
            if job.is_awaited() {
                return Some(job);
            }
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
