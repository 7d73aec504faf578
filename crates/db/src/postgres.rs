//! The PostgreSQL driver: pools of threads, each with a connection of its own.
//!
//! Each connection drives a private async runtime, so it must be made, used and dropped on plain
//! threads; this crate's are. The async client is there because it pipelines: see [`Session`].

mod address;
mod error;
mod param;
mod server;
mod session;
mod tls;
mod wire;

use std::thread;
use std::time::Duration;

pub(crate) use server::Server;
pub(crate) use session::Session;

use crate::error::DbError;
use crate::job::{Job, Ran};
use crate::queue::Queue;
use crate::stats::Counters;
use crate::tx::Tx;

/// The purpose of a pool's transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionPurpose {
    Write,
    Read,
    Migrate,
}

/// One thread's connection, made when first needed and again whenever it was lost.
struct Worker<'a> {
    server: &'a Server,
    purpose: SessionPurpose,
    counters: &'a Counters,
    session: Option<Session>,
    connected_before: bool,
}

/// Runs jobs until the queue is closed and empty.
pub(crate) fn run_all(
    server: &Server,
    queue: &Queue,
    purpose: SessionPurpose,
    counters: &Counters,
) {
    let mut worker = Worker {
        server,
        purpose,
        counters,
        session: None,
        connected_before: false,
    };
    while let Some(job) = queue.pop() {
        worker.serve(job);
    }
}

impl Worker<'_> {
    fn serve(&mut self, mut job: Box<dyn Job>) {
        for tries in 0.. {
            let error = match self.transact(job.as_mut()) {
                Ok(()) => return job.finish(Ok(())),
                Err(error) => error,
            };
            if !error.is_retryable() || tries == RERUNS {
                return job.finish(Err(error));
            }
            self.counters.lock().retries += 1;
            thread::sleep(Duration::from_millis(1 << tries.min(6)));
        }
    }

    /// Runs the job once. `Ok` means that its own result counts.
    fn transact(&mut self, job: &mut dyn Job) -> Result<(), DbError> {
        let result = self.transact_connected(job);
        // A connection in an unknown state is not used again.
        self.session.take_if(|session| session.is_broken());
        result
    }

    fn transact_connected(&mut self, job: &mut dyn Job) -> Result<(), DbError> {
        let session = match &mut self.session {
            Some(session) => session,
            none => {
                let session = none.insert(self.server.connect(self.purpose)?);
                if self.connected_before {
                    self.counters.lock().reconnects += 1;
                }
                self.connected_before = true;
                session
            }
        };
        session.begin(match self.purpose {
            SessionPurpose::Write => "begin isolation level read committed read write",
            SessionPurpose::Read => "begin isolation level repeatable read read only",
            SessionPurpose::Migrate => "begin",
        });
        let ran = job.run(&mut Tx::postgres(session));
        match ran {
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

/// How often a transaction is run again, waiting 1, 2, 4 … 64 ms: about half a second in all.
const RERUNS: u32 = 12;
