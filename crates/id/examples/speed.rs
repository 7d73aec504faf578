//! How long an ID takes. `cargo run --release -p driftline-id --all-features --example speed [-- NAME]`
//!
//! "Un-throttled" uses a layout with so wide a sequence that no tick runs out; "Twitter" waits
//! for each ms, whose 4096 IDs make 244.1 ns an ID the least possible.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "measures time, and prints it"
)]

use std::error::Error;
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use driftline_id::clock::{Clock, SystemClock, TickedClock};
use driftline_id::{
    ClockPolicy, Field, Generator, Lane, Layout, Node, Refusal, SharedGenerator, TimeUnit, Window,
};

const WIDE: Layout = match Layout::custom(
    "wide",
    TimeUnit::Millisecond,
    1_700_000_000_000,
    41,
    &[Field::sequence(22)],
) {
    Ok(layout) => layout,
    Err(_) => panic!("the fields must fill 63 bits"),
};
const UNTHROTTLED: u64 = 50_000_000;
const THROTTLED: u64 = 4_096 * 1_000;
const ROUNDS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let clock = TickedClock::start();
    report("exclusive, ticked clock", UNTHROTTLED, || {
        exclusive(WIDE, clock.clone(), UNTHROTTLED)
    })?;
    report("exclusive, system clock", UNTHROTTLED / 10, || {
        exclusive(WIDE, SystemClock, UNTHROTTLED / 10)
    })?;
    report("shared, 1 thread", UNTHROTTLED, || {
        shared(WIDE, clock.clone(), UNTHROTTLED, 1)
    })?;
    report("shared, 2 threads", UNTHROTTLED, || {
        shared(WIDE, clock.clone(), UNTHROTTLED, 2)
    })?;
    report("lanes, 2 threads", UNTHROTTLED, || {
        lanes(WIDE, clock.clone(), UNTHROTTLED, 2)
    })?;
    report("exclusive, batches of 1000", UNTHROTTLED, || {
        batches(clock.clone(), UNTHROTTLED, 1_000)
    })?;
    report("Twitter, exclusive", THROTTLED, || {
        exclusive(Layout::TWITTER, clock.clone(), THROTTLED)
    })?;
    report("Twitter, shared, 1 thread", THROTTLED, || {
        shared(Layout::TWITTER, clock.clone(), THROTTLED, 1)
    })?;
    report("Twitter, shared, 2 threads", THROTTLED, || {
        shared(Layout::TWITTER, clock.clone(), THROTTLED, 2)
    })?;
    report("Twitter, lanes, 2 threads", THROTTLED, || {
        lanes(Layout::TWITTER, clock.clone(), THROTTLED, 2)
    })?;
    Ok(())
}

type Timed = Result<Duration, Box<dyn Error>>;

/// Prints the median and the extremes of some rounds, if the name contains the argument given.
fn report(name: &str, ids: u64, round: impl Fn() -> Timed) -> Result<(), Box<dyn Error>> {
    if std::env::args()
        .nth(1)
        .is_some_and(|wanted| !name.contains(&wanted))
    {
        return Ok(());
    }
    let mut rounds = (0..ROUNDS)
        .map(|_| Ok(round()?.as_secs_f64() * 1e9 / ids as f64))
        .collect::<Result<Vec<f64>, Box<dyn Error>>>()?;
    rounds.sort_by(f64::total_cmp);
    let (least, median) = (rounds[0], rounds[rounds.len() / 2]);
    let most = rounds[rounds.len() - 1];
    println!("{name:<28} {median:>8.2} ns/ID   ({least:.2} to {most:.2})");
    Ok(())
}

fn window(layout: Layout) -> Result<Window, Box<dyn Error>> {
    Ok(Window::unrecorded_ids_may_repeat(Node::new(&layout, 0)?))
}

fn exclusive<C: Clock>(layout: Layout, clock: C, ids: u64) -> Timed {
    let mut generator = Generator::new(window(layout)?, clock, ClockPolicy::Refuse)?;
    let begun = Instant::now();
    for _ in 0..ids {
        black_box(generator.next_id()?);
    }
    Ok(begun.elapsed())
}

fn shared<C: Clock + Sync>(layout: Layout, clock: C, ids: u64, threads: u64) -> Timed {
    let generator = SharedGenerator::new(window(layout)?, clock, ClockPolicy::Refuse)?;
    together(threads, || {
        (0..ids / threads).try_for_each(|_| generator.next_id().map(drop_id))
    })
}

fn lanes<C: Clock + Sync>(layout: Layout, clock: C, ids: u64, threads: u64) -> Timed {
    let generator = SharedGenerator::new(window(layout)?, clock, ClockPolicy::Refuse)?;
    together(threads, || {
        let mut lane = Lane::new(&generator);
        (0..ids / threads).try_for_each(|_| lane.next_id().map(drop_id))
    })
}

fn together(threads: u64, make: impl Fn() -> Result<(), Refusal> + Sync) -> Timed {
    let begun = Instant::now();
    thread::scope(|scope| {
        let makers: Vec<_> = (0..threads).map(|_| scope.spawn(&make)).collect();
        makers.into_iter().try_for_each(|maker| {
            let made: Result<(), Refusal> = maker.join().map_err(|_| "a thread panicked")?;
            Ok::<(), Box<dyn Error>>(made?)
        })
    })?;
    Ok(begun.elapsed())
}

fn batches<C: Clock>(clock: C, ids: u64, length: usize) -> Timed {
    let mut generator = Generator::new(window(WIDE)?, clock, ClockPolicy::Refuse)?;
    let begun = Instant::now();
    let mut left = ids as usize;
    while left > 0 {
        let batch = generator.reserve_waiting(length.min(left))?;
        left -= batch.len();
        batch.for_each(drop_id);
    }
    Ok(begun.elapsed())
}

fn drop_id(id: u64) {
    black_box(id);
}
