use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::Clock;
use crate::file::KeeperError;
use crate::window::{Lease, Retired};

/// Extends a lease's window early enough, on a thread of its own.
///
/// A failed extension is tried again every 100 ms. Until one succeeds the window runs out, and the
/// generator then waits or refuses. Dropping the keeper stops it. Soon after, its thread drops the
/// lease without releasing it.
#[must_use = "a keeper dropped extends no window"]
#[derive(Debug)]
pub struct Keeper<L: Lease> {
    thread: Option<JoinHandle<L>>,
    shared: Arc<Shared<L::Error>>,
    process: u32,
}

#[derive(Debug)]
struct Shared<E> {
    stopped: AtomicBool,
    failure: Mutex<Option<E>>,
}

impl<L> Keeper<L>
where
    L: Lease + Send + 'static,
    L::Error: Send + 'static,
{
    /// Starts the thread. It reads the clock by [`exact_us`](Clock::exact_us), a few times a
    /// second.
    ///
    /// # Errors
    /// [`io::Error`] if no thread can be started.
    pub fn start<C: Clock + Send + 'static>(lease: L, clock: C) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("id-window".into())
            .spawn(move || of_thread.keep(lease, &clock))?;
        Ok(Self {
            thread: Some(thread),
            shared,
            process: process::id(),
        })
    }

    /// Takes the error of the last extension. `None` if that succeeded, if the error was already
    /// taken, or in a process forked since, which cannot know it.
    pub fn take_failure(&self) -> Option<L::Error> {
        // The fork may have copied the lock while the keeper's thread held it.
        self.is_here().then(|| self.shared.failure().take())?
    }

    /// True if the keeper's thread runs. It ends only if the lease or the clock panics. Then
    /// nothing is extended any more. A forked process has no such thread.
    pub fn is_alive(&self) -> bool {
        let ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.is_here() && !ended
    }

    /// Stops the thread and releases the lease, as used up to the end of the retired generator.
    ///
    /// # Errors
    /// [`KeeperError::Forked`] in a process forked from the keeper's, [`KeeperError::Panicked`] if
    /// the thread panicked, [`KeeperError::Lease`] if the lease cannot be released.
    pub fn close(mut self, retired: Retired) -> Result<(), KeeperError<L::Error>> {
        if !self.is_here() {
            return Err(KeeperError::Forked);
        }
        self.stop();
        let thread = self.thread.take().ok_or(KeeperError::Panicked)?;
        let lease = thread.join().map_err(|_| KeeperError::Panicked)?;
        lease.release(retired).map_err(KeeperError::Lease)
    }
}

impl<L: Lease> Keeper<L> {
    fn is_here(&self) -> bool {
        self.process == process::id()
    }

    fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Does not wait for the thread: in a forked process there is none.
impl<L: Lease> Drop for Keeper<L> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<E> Shared<E> {
    fn keep<L: Lease<Error = E>>(&self, mut lease: L, clock: &impl Clock) -> L {
        while !self.stopped.load(Ordering::Acquire) {
            let renewed = lease.renew(clock.exact_us());
            let rest_us = match &renewed {
                // Clocks step, so the sleep has a limit.
                Ok(()) => lease
                    .due_us()
                    .saturating_sub(clock.exact_us())
                    .clamp(1_000, 250_000),
                Err(_) => RETRY_US,
            };
            *self.failure() = renewed.err();
            thread::park_timeout(Duration::from_micros(rest_us as u64));
        }
        lease
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<E>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const RETRY_US: i64 = 100_000;
