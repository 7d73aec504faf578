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

use crate::failure::Failure;

/// How much is timed in a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Of a generator that nothing holds back.
    pub(super) unthrottled: Duration,
    /// Of one that the layout holds back, in ms.
    pub(super) sustained_ms: u64,
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
    let ids = ids_in(extent.unthrottled, begun.elapsed());
    all_distinct(taken)?;
    Ok(timed(ids, next)?.ns_an_id(ids))
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
    for_sample(&state, &next)?;
    // The threads of the sample wait for each other, and are started: a low estimate will do.
    let ids = ids_in(extent.unthrottled, begun.elapsed()).max(1_000_000);
    in_threads(ids, &state, &next, || {})
}

/// ns/ID of one thread whose layout has 4096 IDs a ms, over whole ms.
pub(super) fn sustained<I, E, F>(extent: Extent, mut next: F) -> Result<f64, Failure>
where
    I: Ord,
    E: Debug,
    F: FnMut() -> Result<I, E>,
{
    all_distinct(sample(&mut next)?)?;
    wait_for_ms();
    let ids = extent.sustained_ms * PER_MS;
    // One more, so that the last is the first of a ms, as the first is.
    Ok(timed(ids + 1, next)?.ns_an_id(ids))
}

/// The same of two threads.
pub(super) fn sustained_together<S, I, E>(
    extent: Extent,
    state: impl Fn() -> S + Sync,
    next: impl Fn(&mut S) -> Result<I, E> + Sync,
) -> Result<f64, Failure>
where
    I: Ord + Send,
    E: Debug,
{
    for_sample(&state, &next)?;
    let ids = extent.sustained_ms * PER_MS;
    in_threads(ids, &state, &next, wait_for_ms)
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
    while begun.elapsed() < extent.unthrottled {
        for _ in 0..64 {
            taken.clear();
            fill(&mut taken)?;
            ids += taken.len() as u64;
            black_box(&taken);
        }
    }
    Ok(begun.elapsed().ns_an_id(ids))
}

fn in_threads<S, I, E>(
    ids: u64,
    state: &(impl Fn() -> S + Sync),
    next: &(impl Fn(&mut S) -> Result<I, E> + Sync),
    before: impl Fn() + Sync,
) -> Result<f64, Failure>
where
    E: Debug,
{
    let barrier = Barrier::new(THREADS);
    let each = ids / THREADS as u64;
    let spans = each_thread(|| {
        let mut state = state();
        barrier.wait();
        before();
        let start = Instant::now();
        timed(each, || next(&mut state))?;
        Ok((start, Instant::now()))
    })?;
    Ok(span(spans.into_iter()).ns_an_id(each * THREADS as u64))
}

/// IDs of all threads at once, none of which may be another's.
fn for_sample<S, I, E>(
    state: &(impl Fn() -> S + Sync),
    next: &(impl Fn(&mut S) -> Result<I, E> + Sync),
) -> Result<(), Failure>
where
    I: Ord + Send,
    E: Debug,
{
    let taken = each_thread(|| {
        let mut state = state();
        sample(|| next(&mut state))
    })?;
    all_distinct(taken.into_iter().flatten().collect())
}

/// The result of each thread.
fn each_thread<T: Send>(work: impl Fn() -> Result<T, Failure> + Sync) -> Result<Vec<T>, Failure> {
    let work = &work;
    thread::scope(|scope| {
        let workers = [(); THREADS].map(|()| scope.spawn(work));
        let mut answers = Vec::with_capacity(THREADS);
        for worker in workers {
            let joined = worker.join();
            answers.push(joined.map_err(|_| Failure::new("a thread panicked"))??);
        }
        Ok(answers)
    })
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

/// How many IDs take about that long, by what a sample took.
fn ids_in(length: Duration, sample: Duration) -> u64 {
    let ns_an_id = (sample.ns_an_id(SAMPLE as u64)).max(1.0);
    let ids = length.as_secs_f64() * 1e9 / ns_an_id;
    (ids as u64).max(100_000)
}

/// From the first beginning to the last end.
fn span(spans: impl Iterator<Item = (Instant, Instant)> + Clone) -> Duration {
    let first = spans.clone().map(|(start, _)| start).min();
    let last = spans.map(|(_, end)| end).max();
    first
        .zip(last)
        .map_or(Duration::ZERO, |(first, last)| last - first)
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
