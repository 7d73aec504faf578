//! A service that is killed while a client takes IDs.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use driftline_id_service::thrift::ClientError;

use crate::{
    service::{PATIENT, Service, assert_rising, client, record, time_ms},
    support::{DataDir, wait_for},
};

const ROUNDS: usize = 3;

fn time_us(id: u64) -> i64 {
    time_ms(id) * 1_000
}

/// Takes some thousand IDs of a service, and kills it meanwhile.
fn taken_until_killed(service: Service) -> Vec<u64> {
    let address = service.thrift;
    let count = AtomicUsize::new(0);
    let take = || {
        let (mut client, mut ids) = (client(address), Vec::new());
        loop {
            match client.call("get_id", Some("a-taker")) {
                Ok(id) => ids.push(u64::try_from(id).unwrap()),
                Err(ClientError::Refused(why)) => panic!("{why}"),
                Err(_) => return ids,
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let taking = scope.spawn(take);
        wait_for("IDs are taken", || {
            count.load(Ordering::Relaxed) > 2_000 || taking.is_finished()
        });
        service.running.kill();
        taking.join().unwrap()
    })
}

#[test]
fn a_killed_service_repeats_no_id() {
    let data_dir = DataDir::new();
    let mut all = Vec::new();
    let mut recorded_us = 0;
    for round in 0..ROUNDS {
        let ids = taken_until_killed(Service::start(&data_dir, &PATIENT));
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
    assert!(all.len() > ROUNDS * 2_000);
    assert_rising(&all);
}
