//! How long an ID takes, under each of the conditions.
//!
//! Every run first takes a sample of IDs, which warms it up, and fails if any ID of the sample
//! repeats. What is then timed is nothing but the calls; a result goes to `black_box`.

use std::{
    fmt::Debug,
    hint::black_box,
    sync::Barrier,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{failure::Failure, threads};

/// How much is timed in a run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent {
    /// A time of a generator that nothing holds back.
    Unthrottled(Duration),
    /// So many whole ms of one whose layout has 4096 IDs a ms.
    Sustained(u64),
}

impl Extent {
    /// The number of IDs, by the time of a sample; at least `min` of those that nothing holds back.
    fn ids(self, sample: Duration, min: u64) -> u64 {
        match self {
            Self::Sustained(ms) => ms * PER_MS,
            Self::Unthrottled(length) => {
                let ids = length.as_secs_f64() * 1e9 / sample.ns_an_id(SAMPLE as u64).max(1.0);
                (ids as u64).max(min)
            }
        }
    }

    /// Waits for the beginning of a ms, if the layout holds the generator back.
    fn wait(self) {
        if matches!(self, Self::Sustained(_)) {
            wait_for_ms();
        }
    }
}

/// ns/ID of one thread that makes as many IDs as it can.
pub(super) fn alone<I, E, F>(extent: Extent, mut next: F) -> Result<f64, Failure>
where
    I: Ord,
    E: Debug,
    F: FnMut() -> Result<I, E>,
{
    let begun = Instant::now();
    let taken = sample(&mut next)?;
    let ids = extent.ids(begun.elapsed(), 100_000);
    all_distinct(taken)?;
    extent.wait();
    // One more at the cap, so that the last is the first of a ms, as the first is.
    let more = u64::from(matches!(extent, Extent::Sustained(_)));
    Ok(timed(ids + more, next)?.ns_an_id(ids))
}

/// ns/ID of two threads in one generator; each has a state of its own.
pub(super) fn together<S, I, E>(
    extent: Extent,
    state: impl Fn() -> S + Sync,
    next: impl Fn(&mut S) -> Result<I, E> + Sync,
) -> Result<f64, Failure>
where
    I: Ord + Send,
    E: Debug,
{
    let begun = Instant::now();
    let taken = threads::each(0..THREADS, |_| {
        let mut state = state();
        sample(|| next(&mut state))
    })?;
    all_distinct(taken.into_iter().flatten().collect())?;
    // The threads of the sample wait for each other, and are started: a low estimate will do.
    let each = extent.ids(begun.elapsed(), 1_000_000) / THREADS as u64;
    let barrier = Barrier::new(THREADS);
    let spans = threads::each(0..THREADS, |_| {
        let mut state = state();
        barrier.wait();
        extent.wait();
        let start = Instant::now();
        timed(each, || next(&mut state))?;
        Ok((start, Instant::now()))
    })?;
    // From the first beginning to the last end.
    let first = spans.iter().map(|(start, _)| *start).min();
    let last = spans.iter().map(|(_, end)| *end).max();
    let span = first
        .zip(last)
        .map_or(Duration::ZERO, |(first, last)| last - first);
    Ok(span.ns_an_id(each * THREADS as u64))
}

/// ns/ID of batches that append their IDs to a buffer; the time for a whole batch by its length.
pub(super) fn batches<I, F>(extent: Extent, length: usize, mut fill: F) -> Result<f64, Failure>
where
    I: Ord + Clone,
    F: FnMut(&mut Vec<I>) -> Result<(), Failure>,
{
    let mut taken = Vec::with_capacity(length);
    let mut all = Vec::with_capacity(SAMPLE + length);
    while all.len() < SAMPLE {
        taken.clear();
        fill(&mut taken)?;
        if taken.len() != length {
            return Err(Failure::new(format!("a batch of {} IDs", taken.len())));
        }
        all.extend_from_slice(&taken);
    }
    all_distinct(all)?;
    let mut ids = 0;
    let begun = Instant::now();
    while matches!(extent, Extent::Unthrottled(length) if begun.elapsed() < length) {
        for _ in 0..64 {
            taken.clear();
            fill(&mut taken)?;
            ids += taken.len() as u64;
            black_box(&taken);
        }
    }
    Ok(begun.elapsed().ns_an_id(ids))
}

fn timed<I, E, F>(ids: u64, mut next: F) -> Result<Duration, Failure>
where
    E: Debug,
    F: FnMut() -> Result<I, E>,
{
    let begun = Instant::now();
    for _ in 0..ids {
        match next() {
            Ok(id) => {
                black_box(id);
            }
            Err(error) => return Err(refused(&error)),
        }
    }
    Ok(begun.elapsed())
}

fn sample<I, E: Debug>(mut next: impl FnMut() -> Result<I, E>) -> Result<Vec<I>, Failure> {
    let mut taken = Vec::with_capacity(SAMPLE);
    for _ in 0..SAMPLE {
        taken.push(next().map_err(|error| refused(&error))?);
    }
    Ok(taken)
}

#[cold]
fn refused(error: &dyn Debug) -> Failure {
    Failure::new(format!("a generator refuses: {error:?}"))
}

fn all_distinct<I: Ord>(mut ids: Vec<I>) -> Result<(), Failure> {
    ids.sort_unstable();
    match ids.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(Failure::new("an ID repeats")),
        false => Ok(()),
    }
}

fn wait_for_ms() {
    let ms = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis())
    };
    let now = ms();
    while ms() == now {
        thread::yield_now();
    }
}

trait PerId {
    fn ns_an_id(&self, ids: u64) -> f64;
}

impl PerId for Duration {
    fn ns_an_id(&self, ids: u64) -> f64 {
        self.as_secs_f64() * 1e9 / ids as f64
    }
}

/// The cap of a sequence of 12 bits.
const PER_MS: u64 = 4_096;
/// The threads that share a generator.
const THREADS: usize = 2;
const SAMPLE: usize = 10_000;
