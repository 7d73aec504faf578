use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::clock::{Clock, SystemClock};
use crate::origin::Origin;

/// The system's time, published by a thread of its own every ms.
///
/// [`now_us`](Clock::now_us) costs one load. It shows a time that the system's clock showed
/// within the last ms or so, after steps too: each publication, and each
/// [`fresh_us`](Clock::fresh_us), is a reading of the system's clock, so nothing drifts.
/// `fresh_us` also notices when the thread is gone or late, as in a forked process, and starts
/// another. After a suspension, until the thread has run, a generator may still make some IDs of
/// the tick in which it was suspended: of its own times, but late. If no thread can be started,
/// every use reads the system's clock.
///
/// The thread pauses after a second without `fresh_us`, which generators call at least once a
/// tick in which they make IDs, and ends with the last clone.
/// [`exact_us`](Clock::exact_us) reads the system's clock and leaves the thread alone.
#[derive(Clone, Debug)]
pub struct TickedClock {
    ticker: Arc<Ticker>,
    handle: Arc<Handle>,
}

/// The state that all clones share. Dropping it ends the thread.
#[derive(Debug)]
struct Handle {
    ticker: Arc<Ticker>,
    origin: Option<Origin>,
    revived: AtomicBool,
}

/// Has cache lines of its own, because the thread writes to it all the time.
#[derive(Debug)]
#[repr(align(128))]
struct Ticker {
    /// The time to show, or [`UNKNOWN`].
    published_us: AtomicI64,
    /// The same time in ms, so that readers need not divide.
    published_ms: AtomicI64,
    /// The time of the last publication.
    ticked_us: AtomicI64,
    /// The generation of the thread that may publish. Other threads end.
    generation: AtomicU32,
    /// True if the clock was read recently.
    used: AtomicBool,
}

impl TickedClock {
    /// Starts a clock with a thread of its own. One is enough for a process: clone it.
    pub fn start() -> Self {
        let ticker = Arc::new(Ticker {
            published_us: AtomicI64::new(UNKNOWN),
            published_ms: AtomicI64::new(UNKNOWN),
            ticked_us: AtomicI64::new(SystemClock.now_us()),
            generation: AtomicU32::new(0),
            used: AtomicBool::new(true),
        });
        Ticker::spawn(&ticker, 0);
        Self {
            ticker: Arc::clone(&ticker),
            handle: Arc::new(Handle {
                ticker,
                origin: Origin::here(),
                revived: AtomicBool::new(false),
            }),
        }
    }
}

impl Clock for TickedClock {
    #[inline]
    fn now_us(&self) -> i64 {
        let published_us = self.ticker.published_us.load(Ordering::Relaxed);
        if published_us == UNKNOWN {
            return self.fresh_us();
        }
        published_us
    }

    #[inline]
    fn now_ms(&self) -> i64 {
        let published_ms = self.ticker.published_ms.load(Ordering::Relaxed);
        if published_ms == UNKNOWN {
            return self.fresh_us().div_euclid(1_000);
        }
        published_ms
    }

    fn fresh_us(&self) -> i64 {
        let now_us = SystemClock.now_us();
        let ticker = &self.ticker;
        if !ticker.used.load(Ordering::Relaxed) {
            ticker.used.store(true, Ordering::Relaxed);
        }
        let shown_us = ticker.published_us.load(Ordering::Relaxed);
        show(&ticker.published_us, now_us);
        show(&ticker.published_ms, now_us.div_euclid(1_000));
        if shown_us != UNKNOWN && ticker.is_late(now_us) || self.handle.is_forked() {
            ticker.replace_thread();
        }
        now_us
    }

    fn exact_us(&self) -> i64 {
        SystemClock.now_us()
    }
}

impl Handle {
    /// True once, in a process forked since.
    fn is_forked(&self) -> bool {
        let elsewhere = self.origin.as_ref().is_some_and(Origin::is_elsewhere);
        elsewhere && !self.revived.swap(true, Ordering::Relaxed)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.ticker.generation.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ticker {
    fn is_late(&self, now_us: i64) -> bool {
        let ticked_us = self.ticked_us.load(Ordering::Relaxed);
        now_us.abs_diff(ticked_us) > LATE_US
    }

    #[cold]
    fn replace_thread(self: &Arc<Self>) {
        let generation = self.generation.load(Ordering::Relaxed);
        let next = generation.wrapping_add(1);
        let swapped = self.generation.compare_exchange(
            generation,
            next,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if swapped.is_ok() {
            self.ticked_us
                .store(SystemClock.now_us(), Ordering::Relaxed);
            Self::spawn(self, next);
        }
    }

    fn spawn(this: &Arc<Self>, generation: u32) {
        let ticker = Arc::clone(this);
        let spawned = thread::Builder::new()
            .name("id-clock".into())
            .spawn(move || ticker.run(generation));
        if spawned.is_err() {
            this.publish(UNKNOWN, UNKNOWN);
        }
    }

    fn publish(&self, us: i64, ms: i64) {
        self.published_us.store(us, Ordering::Relaxed);
        self.published_ms.store(ms, Ordering::Relaxed);
    }

    fn run(&self, generation: u32) {
        let is_current = || self.generation.load(Ordering::Relaxed) == generation;
        let mut unused_ticks = 0;
        while is_current() {
            if self.used.swap(false, Ordering::Relaxed) {
                unused_ticks = 0;
            }
            if unused_ticks == PAUSE_AFTER_TICKS {
                self.publish(UNKNOWN, UNKNOWN);
                while is_current() && !self.used.load(Ordering::Relaxed) {
                    thread::sleep(PAUSED);
                }
                continue;
            }
            unused_ticks += 1;
            let now_us = SystemClock.now_us();
            self.ticked_us.store(now_us, Ordering::Relaxed);
            self.publish(now_us, now_us.div_euclid(1_000));
            let rest_us = TICK_US - now_us.rem_euclid(TICK_US);
            thread::sleep(Duration::from_micros(rest_us as u64));
        }
    }
}

/// Shows a time read just now, unless the thread has published in between or has paused.
fn show(published: &AtomicI64, now: i64) {
    let shown = published.load(Ordering::Relaxed);
    if shown != UNKNOWN && shown != now {
        let _ = published.compare_exchange(shown, now, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Not shown by any clock: 290,000 years before 1970.
const UNKNOWN: i64 = i64::MIN;
const TICK_US: i64 = 1_000;
const LATE_US: u64 = 100_000;
const PAUSE_AFTER_TICKS: u32 = 1_000;
const PAUSED: Duration = Duration::from_millis(50);
