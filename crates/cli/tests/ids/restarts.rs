//! Services killed, stopped and suspended while a client takes IDs.

use std::time::{Duration, Instant};

use crate::{
    service::{PATIENT, Service, assert_rising, id, now_us, record, run, serve, time_ms},
    support::{DataDir, wait_for},
    taker::{Taken, Taker},
};

const ROUNDS: usize = 4;
/// The longest window, and what a busy machine needs to start a process.
const TIMEOUT: Duration = Duration::from_secs(12);

fn time_us(id: u64) -> i64 {
    time_ms(id) * 1_000
}

/// The IDs of a client that was never refused.
fn ids(taken: Taken) -> Vec<u64> {
    assert_eq!(taken.refused, Vec::<String>::new());
    taken.ids
}

#[test]
fn a_killed_service_repeats_no_id_and_is_back_soon() {
    let data_dir = DataDir::new();
    let mut all = Vec::new();
    let mut recorded_us = 0;
    for round in 0..ROUNDS {
        let started = Instant::now();
        let service = Service::start(&data_dir, &PATIENT);
        assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
        let taker = Taker::start(service.thrift);
        taker.wait_for_more(2_000);
        service.running.kill();
        let taken = taker.end();
        assert!(taken.broken.is_some());
        let ids = ids(taken);

        // Whatever the killed one gave out lies before what it had recorded, and all later IDs
        // lie behind that: they need not have reached a client to be safe.
        let window = record(&data_dir.data(), 0);
        assert_eq!(window.fence(), round as u64 + 1);
        assert!(time_us(ids[0]) + 1_000 > recorded_us, "round {round}");
        assert!(window.from_us() >= recorded_us, "round {round}");
        recorded_us = window.until_us();
        assert!(time_us(*ids.last().unwrap()) < recorded_us, "round {round}");
        all.extend(ids);
    }
    assert!(all.len() >= ROUNDS * 2_000);
    assert_rising(&all);
}

#[test]
fn a_stopped_service_answers_and_leaves_nothing_to_wait_for() {
    let data_dir = DataDir::new();
    let mut service = Service::start(&data_dir, &PATIENT);
    let _silent = service.client();
    let taker = Taker::start(service.thrift);
    taker.wait_for_more(1_000);
    service.running.signal("TERM");
    assert_eq!(service.running.ended().code(), Some(0));
    let ended_us = now_us();
    let mut all = ids(taker.end());

    let window = record(&data_dir.data(), 0);
    let last_us = time_us(*all.last().unwrap());
    assert!(last_us < window.until_us(), "the last ID is recorded");
    assert!(window.until_us() <= ended_us, "nothing ahead is recorded");

    let service = Service::start(&data_dir, &[]);
    let next = record(&data_dir.data(), 0);
    assert_eq!(next.fence(), window.fence() + 1);
    assert!(next.from_us() > window.until_us(), "it began at its now");
    all.push(id(&mut service.client()));
    assert_rising(&all);
    service.stop();
}

#[test]
fn a_service_suspended_beyond_its_window_goes_on_without_repeating_an_id() {
    let data_dir = DataDir::new();
    let service = Service::start(&data_dir, &[]);
    let taker = Taker::start(service.thrift);
    taker.wait_for_more(1_000);
    service.running.signal("STOP");
    let window = record(&data_dir.data(), 0);
    wait_for("its window is over", || {
        now_us() > window.until_us() + 1_000_000
    });
    assert_eq!(record(&data_dir.data(), 0), window, "it is suspended");
    // Its node is not free for that.
    let second = run(&data_dir, &serve(&[]));
    assert_eq!(second.status, 11, "{second:?}");
    assert!(second.stderr.contains("is held"), "{second:?}");

    let taken = taker.count();
    let woken_us = now_us();
    service.running.signal("CONT");
    taker.wait_for_more(1_000);
    // Refusals are as good as IDs here, as long as they end.
    let all = taker.stop();
    assert!(all.broken.is_none(), "{:?}", all.broken);
    assert_rising(&all.ids);
    let (before, after) = all.ids.split_at(taken);
    assert!(time_us(*before.last().unwrap()) < window.until_us());
    // The first may have been on its way when the service was suspended.
    let second = after[1];
    assert!(
        time_us(second) + 1_000 > woken_us,
        "{second} is of the time before"
    );
    let until_us = record(&data_dir.data(), 0).until_us();
    assert!(time_us(*after.last().unwrap()) < until_us);
    service.stop();
}
