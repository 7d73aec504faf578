//! Driftline's generators, on a ticked clock.

use driftline_id::{
    ClockPolicy, Field, Generator, Lane, Layout, Node, NotNow, Refusal, SharedGenerator, TimeUnit,
    Window, clock::TickedClock,
};

use super::{
    BATCH,
    contestant::{Column, Contestant},
    timing,
};
use crate::failure::Failure;

/// Every form.
pub(super) fn all(clock: &TickedClock) -> [Contestant; 4] {
    [exclusive(clock), filled(clock), shared(clock), lane(clock)]
}

fn exclusive(clock: &TickedClock) -> Contestant {
    let (clock, twitter, batch) = (clock.clone(), clock.clone(), clock.clone());
    Contestant::ours(EXCLUSIVE)
        .runs(Column::Exclusive, move |extent| {
            let mut ids = generator(WIDE, &clock)?;
            timing::alone(extent, || ids.next_id())
        })
        .runs(Column::Twitter, move |extent| {
            let mut ids = generator(Layout::TWITTER, &twitter)?;
            timing::sustained(extent, || ids.next_id())
        })
        .runs(Column::Batch, move |extent| {
            let mut ids = generator(WIDE, &batch)?;
            timing::batches(extent, BATCH, |taken| {
                collect(taken, |length| ids.reserve_waiting(length))
            })
        })
}

fn filled(clock: &TickedClock) -> Contestant {
    let clock = clock.clone();
    Contestant::ours(FILL).runs(Column::Batch, move |extent| {
        let mut ids = generator(WIDE, &clock)?;
        timing::batches(extent, BATCH, |taken| {
            taken.resize(BATCH, 0);
            let mut done = 0;
            while done < BATCH {
                done += match ids.fill(&mut taken[done..]) {
                    Ok(filled) => filled,
                    Err(NotNow::Wait(_)) => 0,
                    Err(NotNow::Refused(refusal)) => return Err(refusal.into()),
                };
            }
            Ok(())
        })
    })
}

fn shared(clock: &TickedClock) -> Contestant {
    let clocks = [(); 5].map(|()| clock.clone());
    let [alone, two, twitter, twitter_two, batch] = clocks;
    Contestant::ours(SHARED)
        .runs(Column::Shared, move |extent| {
            let ids = shared_generator(WIDE, &alone)?;
            timing::alone(extent, || ids.next_id())
        })
        .runs(Column::SharedByTwo, move |extent| {
            let ids = shared_generator(WIDE, &two)?;
            timing::together(extent, 2, || (), |()| ids.next_id())
        })
        .runs(Column::Twitter, move |extent| {
            let ids = shared_generator(Layout::TWITTER, &twitter)?;
            timing::sustained(extent, || ids.next_id())
        })
        .runs(Column::TwitterByTwo, move |extent| {
            let ids = shared_generator(Layout::TWITTER, &twitter_two)?;
            timing::sustained_together(extent, 2, || (), |()| ids.next_id())
        })
        .runs(Column::Batch, move |extent| {
            let ids = shared_generator(WIDE, &batch)?;
            timing::batches(extent, BATCH, |taken| {
                collect(taken, |length| ids.reserve_waiting(length))
            })
        })
}

fn lane(clock: &TickedClock) -> Contestant {
    let clocks = [(); 4].map(|()| clock.clone());
    let [alone, two, twitter, twitter_two] = clocks;
    Contestant::ours(LANE)
        .runs(Column::Shared, move |extent| {
            let ids = shared_generator(WIDE, &alone)?;
            let mut lane = Lane::new(&ids);
            timing::alone(extent, || lane.next_id())
        })
        .runs(Column::SharedByTwo, move |extent| {
            let ids = shared_generator(WIDE, &two)?;
            timing::together(extent, 2, || Lane::new(&ids), Lane::next_id)
        })
        .runs(Column::Twitter, move |extent| {
            let ids = shared_generator(Layout::TWITTER, &twitter)?;
            let mut lane = Lane::new(&ids);
            timing::sustained(extent, || lane.next_id())
        })
        .runs(Column::TwitterByTwo, move |extent| {
            let ids = shared_generator(Layout::TWITTER, &twitter_two)?;
            timing::sustained_together(extent, 2, || Lane::new(&ids), Lane::next_id)
        })
}

/// A whole batch, of two reservations where a tick ends within it.
fn collect(
    taken: &mut Vec<u64>,
    mut reserve: impl FnMut(usize) -> Result<driftline_id::Batch, Refusal>,
) -> Result<(), Failure> {
    while taken.len() < BATCH {
        taken.extend(reserve(BATCH - taken.len())?);
    }
    Ok(())
}

fn generator(layout: Layout, clock: &TickedClock) -> Result<Generator<TickedClock>, Failure> {
    let policy = ClockPolicy::Refuse;
    Ok(Generator::new(window(layout)?, clock.clone(), policy)?)
}

fn shared_generator(
    layout: Layout,
    clock: &TickedClock,
) -> Result<SharedGenerator<TickedClock>, Failure> {
    let policy = ClockPolicy::Refuse;
    Ok(SharedGenerator::new(
        window(layout)?,
        clock.clone(),
        policy,
    )?)
}

/// Nothing recorded: what is timed is the generator.
fn window(layout: Layout) -> Result<Window, Failure> {
    Ok(Window::unrecorded_ids_may_repeat(Node::new(&layout, 0)?))
}

/// Four million IDs a ms.
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
pub(super) const EXCLUSIVE: &str = "Generator";
pub(super) const FILL: &str = "Generator, fill";
pub(super) const SHARED: &str = "SharedGenerator";
pub(super) const LANE: &str = "Lane (a thread each)";
