use async_channel::{Receiver, Sender};

use crate::error::DbError;
use crate::job::Job;

/// A bounded queue from async callers to plain threads. A caller waits for a slot without blocking
/// its thread, and a thread waits for a job.
pub(crate) struct Queue {
    jobs: Sender<Box<dyn Job>>,
    queued: Receiver<Box<dyn Job>>,
}

impl Queue {
    pub(crate) fn new(bound: usize) -> Queue {
        let (jobs, queued) = async_channel::bounded(bound.max(1));
        Queue { jobs, queued }
    }

    pub(crate) async fn push(&self, job: Box<dyn Job>) -> Result<(), DbError> {
        let pushed = self.jobs.send(job).await;
        pushed.map_err(|_| DbError::Closed)
    }

    /// The next job whose caller still waits; `None` if the queue is closed and empty.
    pub(crate) fn pop(&self) -> Option<Box<dyn Job>> {
        std::iter::from_fn(|| self.queued.recv_blocking().ok()).find(|job| job.is_awaited())
    }

    /// Like [`Queue::pop`], but never waits.
    pub(crate) fn try_pop(&self) -> Option<Box<dyn Job>> {
        std::iter::from_fn(|| self.queued.try_recv().ok()).find(|job| job.is_awaited())
    }

    pub(crate) fn len(&self) -> usize {
        self.queued.len()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.jobs.is_closed()
    }

    /// Rejects further jobs. Queued ones still run.
    pub(crate) fn close(&self) {
        self.jobs.close();
    }
}
