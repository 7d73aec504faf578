#[cfg(feature = "testing")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Server, Session, SessionPurpose};
use crate::error::DbError;
use crate::job::{Job, Ran};
use crate::queue::Queue;
use crate::stats::Counters;
#[cfg(feature = "testing")]
use crate::testing::StatementWatcher;
use crate::tx::{ApartJob, Beside, Tx};

/// The sessions of one purpose, made when first needed and replaced when lost. There are at most as
/// many as threads that run jobs.
pub(crate) struct Pool {
    server: Server,
    purpose: SessionPurpose,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    /// Unused sessions. The last one used is the next one used, so that superfluous ones grow old.
    idle: Mutex<Vec<Idle>>,
    /// The number of lost sessions that have not been replaced.
    lost: AtomicUsize,
    is_distributed: Arc<AtomicBool>,
    #[cfg(feature = "testing")]
    watcher: Arc<OnceLock<StatementWatcher>>,
}

struct Idle {
    session: Session,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(
        server: Server,
        purpose: SessionPurpose,
        queue: Arc<Queue>,
        counters: Arc<Counters>,
        is_distributed: Arc<AtomicBool>,
    ) -> Pool {
        Pool {
            server,
            purpose,
            queue,
            counters,
            idle: Mutex::default(),
            lost: AtomicUsize::new(0),
            is_distributed,
            #[cfg(feature = "testing")]
            watcher: Arc::default(),
        }
    }

    #[cfg(feature = "testing")]
    pub(crate) fn watched_by(mut self, watcher: &Arc<OnceLock<StatementWatcher>>) -> Pool {
        self.watcher = Arc::clone(watcher);
        self
    }

    /// Runs jobs until the queue is closed and empty.
    pub(crate) fn run_all(&self) {
        while let Some(job) = self.queue.pop() {
            self.serve(job);
        }
        self.close_idle(Duration::ZERO);
    }

    /// Closes sessions that were unused for `max_idle`, until the queue is closed. The code that
    /// closes the queue unparks this thread.
    pub(crate) fn keep_small(&self, max_idle: Duration) {
        while !self.queue.is_closed() {
            thread::park_timeout(max_idle / 2);
            self.close_idle(max_idle);
        }
    }

    fn close_idle(&self, max_idle: Duration) {
        let mut idle = self.idle();
        // Sorted by time: each was the last when it was added.
        let old = idle.partition_point(|idle| idle.since.elapsed() >= max_idle);
        let old: Vec<Idle> = idle.drain(..old).collect();
        // Closing takes time.
        drop(idle);
        drop(old);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut job: Box<dyn Job>) {
        for tries in 0.. {
            let transact = || self.transact(job.as_mut());
            let error = match self.server.saying_what_it_waits_for(transact) {
                Ok(()) => {
                    self.server.mark_in_use();
                    return job.finish(Ok(()));
                }
                Err(error) => error,
            };
            if !error.is_retryable() || tries == RERUNS {
                return job.finish(Err(error));
            }
            self.counters.lock().retries += 1;
            thread::sleep(Duration::from_millis(1 << tries.min(6)));
        }
    }

    /// Runs the job once. After `Ok`, the job's own result is valid.
    fn transact(&self, job: &mut dyn Job) -> Result<(), DbError> {
        let mut session = self.session()?;
        session.take_round_trips();
        let result = self.transact_in(&mut session, job);
        if self.purpose == SessionPurpose::Write {
            self.counters.lock().round_trips += session.take_round_trips();
        }
        self.put_back(session);
        result
    }

    fn put_back(&self, session: Session) {
        if session.is_broken() {
            // A connection in an unknown state is not used again.
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            let since = Instant::now();
            self.idle().push(Idle { session, since });
        }
    }

    /// The session that was used last, or a new one.
    fn session(&self) -> Result<Session, DbError> {
        // Not `while let`, which would hold the lock while a broken session is closed.
        loop {
            let Some(Idle { mut session, .. }) = self.idle().pop() else {
                break;
            };
            if session.is_alive() {
                return Ok(session);
            }
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        let session = self.server.connect(self.purpose)?;
        let replaces = |lost: usize| lost.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.lost.fetch_update(set, fetch, replaces).is_ok() {
            self.counters.lock().reconnects += 1;
        }
        Ok(session)
    }

    fn transact_in(&self, session: &mut Session, job: &mut dyn Job) -> Result<(), DbError> {
        session.begin(match self.purpose {
            SessionPurpose::Write => WRITE,
            SessionPurpose::Read => "begin isolation level repeatable read read only",
            SessionPurpose::Migrate => "begin",
        });
        let mut tx = Tx::postgres(session).beside(self);
        let ran = job.run(&mut tx);
        let at_end = tx.take_at_end();
        let ended = self.end(session, ran);
        if let Some(mut at_end) = at_end
            && !session.is_broken()
            && ended != Err(DbError::CommitUnknown)
            && let Err(error) = self.run_apart(session, &mut *at_end)
        {
            tracing::debug!(%error, "what a write leaves behind was not put away");
        }
        ended
    }

    fn end(&self, session: &mut Session, ran: Ran) -> Result<(), DbError> {
        match ran {
            Ran::Commit if self.purpose == SessionPurpose::Read => {
                session.end_read();
                Ok(())
            }
            Ran::Commit => {
                session.commit()?;
                if self.purpose == SessionPurpose::Write {
                    self.counters.committed(1);
                }
                Ok(())
            }
            Ran::RollBack => {
                session.roll_back();
                Ok(())
            }
            Ran::Again(error) => {
                session.roll_back();
                Err(error)
            }
        }
    }
}

impl Beside for Pool {
    fn is_distributed(&self) -> bool {
        self.is_distributed.load(Ordering::Relaxed)
    }

    fn apart(&self, job: &mut ApartJob<'_>) -> Result<(), DbError> {
        let mut session = self.session()?;
        let result = self.run_apart(&mut session, job);
        self.put_back(session);
        result
    }

    #[cfg(feature = "testing")]
    fn watcher(&self) -> Option<&StatementWatcher> {
        self.watcher.get()
    }
}

impl Pool {
    fn run_apart(&self, session: &mut Session, job: &mut ApartJob<'_>) -> Result<(), DbError> {
        session.begin(WRITE);
        let mut tx = Tx::postgres(session).beside(self);
        let done = job(&mut tx).and_then(|()| tx.poison().cloned().map_or(Ok(()), Err));
        match done {
            Ok(()) => session.commit(),
            Err(error) => {
                session.roll_back();
                Err(error)
            }
        }
    }
}

const WRITE: &str = "begin isolation level read committed read write";
/// The number of further runs of a transaction, after 1, 2, 4 … 64 ms: about half a second in all.
const RERUNS: u32 = 12;
