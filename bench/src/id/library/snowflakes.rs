//! Other generators of Twitter's layout.

use std::{
    convert::Infallible,
    sync::{Mutex, PoisonError},
};

use snowflake::SnowflakeIdGenerator;
use snowflake_me::Snowflake;

use super::{
    BATCH,
    contestant::{Column, Contestant},
    timing,
};
use crate::failure::Failure;

/// Every one, in every form.
pub(super) fn all() -> [Contestant; 6] {
    [
        snowflaked(),
        snowflaked_sync(),
        snowflake_me(),
        rs_snowflake(),
        rs_snowflake_mutex(),
        rs_snowflake_lazy(),
    ]
}

fn snowflaked() -> Contestant {
    Contestant::peer("snowflaked", "snowflaked", BURSTS, SNOWFLAKED_CLOCK)
        .runs(Column::Exclusive, |extent| {
            let mut ids = snowflaked::Generator::new(0);
            timing::bursts(extent, || sure(ids.generate::<u64>()))
        })
        .runs(Column::Twitter, |extent| {
            let mut ids = snowflaked::Generator::new(0);
            timing::sustained(extent, || sure(ids.generate::<u64>()))
        })
}

fn snowflaked_sync() -> Contestant {
    Contestant::peer("snowflaked sync", "snowflaked", BURSTS, SNOWFLAKED_CLOCK)
        .runs(Column::Shared, |extent| {
            let ids = snowflaked::sync::Generator::new(0);
            timing::bursts(extent, || sure(ids.generate::<u64>()))
        })
        .runs(Column::SharedByTwo, |extent| {
            let ids = snowflaked::sync::Generator::new(0);
            timing::bursts_together(extent, 2, || sure(ids.generate::<u64>()))
        })
        .runs(Column::Twitter, |extent| {
            let ids = snowflaked::sync::Generator::new(0);
            timing::sustained(extent, || sure(ids.generate::<u64>()))
        })
        .runs(Column::TwitterByTwo, |extent| {
            let ids = snowflaked::sync::Generator::new(0);
            timing::sustained_together(extent, 2, || (), |()| sure(ids.generate::<u64>()))
        })
}

fn snowflake_me() -> Contestant {
    let clock = "yes: the system's time at each call; a step back is waited out";
    Contestant::peer("snowflake_me", "snowflake_me", "sequence of 22 bits", clock)
        .runs(Column::Shared, |extent| {
            let ids = build(WIDE_BITS)?;
            timing::alone(extent, || ids.next_id())
        })
        .runs(Column::SharedByTwo, |extent| {
            let ids = build(WIDE_BITS)?;
            timing::together(extent, 2, || (), |()| ids.next_id())
        })
        .runs(Column::Twitter, |extent| {
            let ids = build(TWITTER_BITS)?;
            timing::sustained(extent, || ids.next_id())
        })
        .runs(Column::TwitterByTwo, |extent| {
            let ids = build(TWITTER_BITS)?;
            timing::sustained_together(extent, 2, || (), |()| ids.next_id())
        })
        .runs(Column::Batch, |extent| {
            let ids = build(WIDE_BITS)?;
            timing::batches(extent, BATCH, |taken| Ok(ids.next_ids_into(BATCH, taken)?))
        })
}

/// Bits of the time, the data center, the machine and the sequence.
fn build([time, center, machine, sequence]: [u8; 4]) -> Result<Snowflake, Failure> {
    Ok(Snowflake::builder()
        .machine_id(&|| Ok(0))
        .data_center_id(&|| Ok(0))
        .bit_len_time(time)
        .bit_len_data_center_id(center)
        .bit_len_machine_id(machine)
        .bit_len_sequence(sequence)
        .finalize()?)
}

fn rs_snowflake() -> Contestant {
    Contestant::peer("rs-snowflake", "rs-snowflake", BURSTS, RS_SNOWFLAKE_CLOCK)
        .runs(Column::Exclusive, |extent| {
            let mut ids = SnowflakeIdGenerator::new(0, 0);
            timing::bursts(extent, || sure(ids.real_time_generate()))
        })
        .runs(Column::Twitter, |extent| {
            let mut ids = SnowflakeIdGenerator::new(0, 0);
            timing::sustained(extent, || sure(ids.real_time_generate()))
        })
}

fn rs_snowflake_mutex() -> Contestant {
    let name = "rs-snowflake in a Mutex";
    Contestant::peer(name, "rs-snowflake", BURSTS, RS_SNOWFLAKE_CLOCK)
        .runs(Column::Shared, |extent| {
            let ids = Mutex::new(SnowflakeIdGenerator::new(0, 0));
            timing::bursts(extent, || sure(locked(&ids)))
        })
        .runs(Column::SharedByTwo, |extent| {
            let ids = Mutex::new(SnowflakeIdGenerator::new(0, 0));
            timing::bursts_together(extent, 2, || sure(locked(&ids)))
        })
        .runs(Column::Twitter, |extent| {
            let ids = Mutex::new(SnowflakeIdGenerator::new(0, 0));
            timing::sustained(extent, || sure(locked(&ids)))
        })
        .runs(Column::TwitterByTwo, |extent| {
            let ids = Mutex::new(SnowflakeIdGenerator::new(0, 0));
            timing::sustained_together(extent, 2, || (), |()| sure(locked(&ids)))
        })
}

/// Without a layout's cap, since it moves on to ms that have not come yet.
fn rs_snowflake_lazy() -> Contestant {
    let clock = "no: none is read; the time counts IDs";
    let name = "rs-snowflake lazy (shown only)";
    Contestant::peer(name, "rs-snowflake", "takes future ms", clock)
        .shown_only()
        .runs(Column::Exclusive, |extent| {
            let mut ids = SnowflakeIdGenerator::new(0, 0);
            timing::alone(extent, || sure(ids.lazy_generate()))
        })
}

fn locked(ids: &Mutex<SnowflakeIdGenerator>) -> i64 {
    let mut ids = ids.lock().unwrap_or_else(PoisonError::into_inner);
    ids.real_time_generate()
}

fn sure<I>(id: I) -> Result<I, Infallible> {
    Ok(id)
}

/// Their layout and clock are fixed.
const BURSTS: &str = "bursts of 4000, each in a fresh ms; the wait is not timed";
const SNOWFLAKED_CLOCK: &str = "yes: the system's time at each call; a step back panics";
const RS_SNOWFLAKE_CLOCK: &str =
    "yes: the system's time at each call; a step back may repeat an ID";
const WIDE_BITS: [u8; 4] = [41, 0, 0, 22];
const TWITTER_BITS: [u8; 4] = [41, 5, 5, 12];
