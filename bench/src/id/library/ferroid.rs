//! ferroid, on the clock that it brings.

use std::{convert::Infallible, hint::spin_loop, thread, time::Duration};

use ferroid::{
    define_snowflake_id,
    generator::{AtomicSnowflakeGenerator, BasicSnowflakeGenerator},
    id::SnowflakeTwitterId,
    time::{MonotonicClock, TWITTER_EPOCH},
};

use super::{BATCH, Condition, Contestant, timing};

define_snowflake_id!(
    /// Four million IDs a ms.
    Wide, u64,
    reserved: 1,
    timestamp: 41,
    machine_id: 0,
    sequence: 22
);

/// The form that is fastest under a condition.
pub(super) fn of(condition: Condition) -> Contestant {
    let basic = || BasicSnowflakeGenerator::<Wide, _>::new(0, clock(WIDE_EPOCH));
    let atomic = || AtomicSnowflakeGenerator::<Wide, _>::new(0, clock(WIDE_EPOCH));
    match condition {
        Condition::Exclusive => Contestant::new(BASIC, move |extent| {
            let ids = basic();
            timing::alone(extent, || sure(ids.next_id(wait)))
        }),
        Condition::Batch => Contestant::new(BASIC, move |extent| {
            let ids = basic();
            timing::batches(extent, BATCH, |taken| {
                taken.extend((0..BATCH).map(|_| ids.next_id(wait)));
                Ok(())
            })
        }),
        Condition::Shared => Contestant::new(ATOMIC, move |extent| {
            let ids = atomic();
            timing::alone(extent, || sure(ids.next_id(wait)))
        }),
        Condition::SharedByTwo => Contestant::new(ATOMIC, move |extent| {
            let ids = atomic();
            timing::together(extent, || (), |()| sure(ids.next_id(wait)))
        }),
        Condition::Twitter => Contestant::new(BASIC, |extent| {
            let ids = BasicSnowflakeGenerator::<Twitter, _>::new(0, clock(TWITTER_EPOCH));
            timing::alone(extent, || sure(ids.next_id(wait)))
        }),
        Condition::TwitterByTwo => Contestant::new(ATOMIC, |extent| {
            let ids = AtomicSnowflakeGenerator::<Twitter, _>::new(0, clock(TWITTER_EPOCH));
            timing::together(extent, || (), |()| sure(ids.next_id(wait)))
        }),
    }
}

type Twitter = SnowflakeTwitterId;

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

const BASIC: &str = "ferroid Basic";
const ATOMIC: &str = "ferroid Atomic";
const WIDE_EPOCH: Duration = Duration::from_millis(1_700_000_000_000);
