//! Driftline's generators, on a ticked clock.

use driftline_id::{
    ClockPolicy, Field, Generator, Lane, Layout, Node, NotNow, SharedGenerator, TimeUnit, Window,
    clock::TickedClock,
};

use super::{BATCH, Condition, Contestant, timing};
use crate::failure::Failure;

/// The forms that are measured under a condition.
pub(super) fn all(condition: Condition, clock: &TickedClock) -> Vec<Contestant> {
    let (one, two) = (clock.clone(), clock.clone());
    let layout = match condition {
        Condition::Twitter | Condition::TwitterByTwo => Layout::TWITTER,
        _ => WIDE,
    };
    match condition {
        Condition::Exclusive | Condition::Twitter => {
            vec![Contestant::new(EXCLUSIVE, move |extent| {
                let mut ids = generator(layout, &one)?;
                timing::alone(extent, || ids.next_id())
            })]
        }
        Condition::Shared => vec![
            Contestant::new(SHARED, move |extent| {
                let ids = shared_generator(layout, &one)?;
                timing::alone(extent, || ids.next_id())
            }),
            Contestant::new(LANE, move |extent| {
                let ids = shared_generator(layout, &two)?;
                let mut lane = Lane::new(&ids);
                timing::alone(extent, || lane.next_id())
            }),
        ],
        Condition::SharedByTwo | Condition::TwitterByTwo => vec![
            Contestant::new(SHARED, move |extent| {
                let ids = shared_generator(layout, &one)?;
                timing::together(extent, || (), |()| ids.next_id())
            }),
            Contestant::new(LANE, move |extent| {
                let ids = shared_generator(layout, &two)?;
                timing::together(extent, || Lane::new(&ids), Lane::next_id)
            }),
        ],
        Condition::Batch => vec![
            Contestant::new(EXCLUSIVE, move |extent| {
                let mut ids = generator(layout, &one)?;
                timing::batches(extent, BATCH, |taken| {
                    // Two reservations where a tick ends within the batch.
                    while taken.len() < BATCH {
                        taken.extend(ids.reserve_waiting(BATCH - taken.len())?);
                    }
                    Ok(())
                })
            }),
            Contestant::new(FILL, move |extent| {
                let mut ids = generator(layout, &two)?;
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
            }),
        ],
    }
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
    let window = window(layout)?;
    Ok(SharedGenerator::new(window, clock.clone(), policy)?)
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
const EXCLUSIVE: &str = "Generator";
const FILL: &str = "Generator, fill";
const SHARED: &str = "SharedGenerator";
const LANE: &str = "Lane (a thread each)";
