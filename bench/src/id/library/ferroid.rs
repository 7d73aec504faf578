//! ferroid, on the clock that it brings.

use std::{convert::Infallible, hint::spin_loop, thread, time::Duration};

use ferroid::{
    define_snowflake_id,
    generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator, LockSnowflakeGenerator},
    id::SnowflakeTwitterId,
    time::{MonotonicClock, TWITTER_EPOCH},
};

use super::{
    contestant::{Column, Contestant},
    timing,
};

define_snowflake_id!(
    /// Four million IDs a ms.
    Wide, u64,
    reserved: 1,
    timestamp: 41,
    machine_id: 0,
    sequence: 22
);

/// Every form.
pub(super) fn all() -> [Contestant; 3] {
    [basic(), atomic(), lock()]
}

fn basic() -> Contestant {
    peer("ferroid Basic")
        .runs(Column::Exclusive, |extent| {
            let ids = BasicSnowflakeGenerator::<Wide, _>::new(0, clock(WIDE_EPOCH));
            timing::alone(extent, || sure(ids.next_id(wait)))
        })
        .runs(Column::Twitter, |extent| {
            let ids = BasicSnowflakeGenerator::<Twitter, _>::new(0, clock(TWITTER_EPOCH));
            timing::sustained(extent, || sure(ids.next_id(wait)))
        })
}

fn atomic() -> Contestant {
    let wide = || AtomicSnowflakeGenerator::<Wide, _>::new(0, clock(WIDE_EPOCH));
    let twitter = || AtomicSnowflakeGenerator::<Twitter, _>::new(0, clock(TWITTER_EPOCH));
    peer("ferroid Atomic")
        .runs(Column::Shared, move |extent| {
            let ids = wide();
            timing::alone(extent, || sure(ids.next_id(wait)))
        })
        .runs(Column::SharedByTwo, move |extent| {
            let ids = wide();
            timing::together(extent, 2, || (), |()| sure(ids.next_id(wait)))
        })
        .runs(Column::Twitter, move |extent| {
            let ids = twitter();
            timing::sustained(extent, || sure(ids.next_id(wait)))
        })
        .runs(Column::TwitterByTwo, move |extent| {
            let ids = twitter();
            timing::sustained_together(extent, 2, || (), |()| sure(ids.next_id(wait)))
        })
}

fn lock() -> Contestant {
    let wide = || LockSnowflakeGenerator::<Wide, _>::new(0, clock(WIDE_EPOCH));
    let twitter = || LockSnowflakeGenerator::<Twitter, _>::new(0, clock(TWITTER_EPOCH));
    peer("ferroid Lock")
        .runs(Column::Shared, move |extent| {
            let ids = wide();
            timing::alone(extent, || ids.try_next_id(wait))
        })
        .runs(Column::SharedByTwo, move |extent| {
            let ids = wide();
            timing::together(extent, 2, || (), |()| ids.try_next_id(wait))
        })
        .runs(Column::Twitter, move |extent| {
            let ids = twitter();
            timing::sustained(extent, || ids.try_next_id(wait))
        })
        .runs(Column::TwitterByTwo, move |extent| {
            let ids = twitter();
            timing::sustained_together(extent, 2, || (), |()| ids.try_next_id(wait))
        })
}

type Twitter = SnowflakeTwitterId;

fn peer(name: &'static str) -> Contestant {
    let clock = "no: wall time read once, then a ticker of monotonic time";
    Contestant::peer(name, "ferroid", "sequence of 22 bits", clock)
}

fn clock(epoch: Duration) -> MonotonicClock {
    MonotonicClock::with_epoch(epoch)
}

/// As its documentation has it: another thread was faster, or the ms is used up.
fn wait(ms: u64) {
    if ms == 0 {
        spin_loop();
    } else {
        thread::yield_now();
    }
}

fn sure<I>(id: I) -> Result<I, Infallible> {
    Ok(id)
}

const WIDE_EPOCH: Duration = Duration::from_millis(1_700_000_000_000);
