//! IDs of 128 bits, most of them random, which no layout holds back.

use std::{
    convert::Infallible,
    sync::{Mutex, PoisonError},
};

use ulid::{Generator, Ulid};
use uuid::{ContextV7, Timestamp, Uuid};

use super::{
    contestant::{Column, Contestant},
    timing,
};

/// Every one, in every form.
pub(super) fn all() -> [Contestant; 4] {
    [ulid(), ulid_mutex(), uuid(), uuid_now()]
}

fn ulid() -> Contestant {
    Contestant::peer("ulid, monotonic", "ulid", UNCAPPED, CLOCK).runs(Column::Exclusive, |extent| {
        let mut ids = Generator::new();
        timing::alone(extent, || sure(next(&mut ids)))
    })
}

fn ulid_mutex() -> Contestant {
    let locked = |ids: &Mutex<Generator>| {
        let mut ids = ids.lock().unwrap_or_else(PoisonError::into_inner);
        sure(next(&mut ids))
    };
    Contestant::peer("ulid, monotonic, in a Mutex", "ulid", UNCAPPED, CLOCK)
        .runs(Column::Shared, move |extent| {
            let ids = Mutex::new(Generator::new());
            timing::alone(extent, || locked(&ids))
        })
        .runs(Column::SharedByTwo, move |extent| {
            let ids = Mutex::new(Generator::new());
            timing::together(extent, 2, || (), |()| locked(&ids))
        })
}

fn next(ids: &mut Generator) -> Ulid {
    match ids.generate() {
        Ok(id) => id,
        Err(overflow) => overflow.commit_overflow_increment(),
    }
}

fn uuid() -> Contestant {
    Contestant::peer("uuid v7, own context", "uuid", UNCAPPED, CLOCK).runs(
        Column::Exclusive,
        |extent| {
            let context = ContextV7::new();
            timing::alone(extent, || sure(Uuid::new_v7(Timestamp::now(&context))))
        },
    )
}

fn uuid_now() -> Contestant {
    Contestant::peer("uuid v7, now_v7", "uuid", UNCAPPED, CLOCK)
        .runs(Column::Shared, |extent| {
            timing::alone(extent, || sure(Uuid::now_v7()))
        })
        .runs(Column::SharedByTwo, |extent| {
            timing::together(extent, 2, || (), |()| sure(Uuid::now_v7()))
        })
}

fn sure<I>(id: I) -> Result<I, Infallible> {
    Ok(id)
}

const UNCAPPED: &str = "has no cap";
const CLOCK: &str = "yes: the system's time at each call; a step back keeps the last time";
