//! A million IDs, taken by real clients from two services.

use std::{path::Path, time::Instant};

use crate::{
    python::{LIBRARIES, Library, Script},
    service::{PATIENT, Service, node_of, time_ms},
    support::DataDir,
};

/// What each client process takes, half of it from each service.
const EACH: usize = 250_000;
const NODES: [u64; 2] = [5, 900];

/// An ID, and the Unix µs when its client had it.
type Arrival = (u64, i64);

#[test]
fn four_clients_of_two_services_get_a_million_ids_none_of_them_twice() {
    let data_dir = DataDir::new();
    let services = NODES.map(|node| {
        let node = node.to_string();
        Service::start(&data_dir, &[&["--node", &node], &PATIENT[..]].concat())
    });
    let addresses = [&services[0], &services[1]].map(|service| service.thrift.to_string());
    let files: Vec<_> = (0..4)
        .map(|number| data_dir.folder().join(format!("{number}.ids")))
        .collect();
    let started = Instant::now();
    let libraries = LIBRARIES.into_iter().cycle();
    let scripts: Vec<Script> = files
        .iter()
        .zip(libraries)
        .map(|(file, library)| take(library, file, &addresses))
        .collect();
    for script in scripts {
        script.output();
    }
    eprintln!("{} IDs in {:?}", 4 * EACH, started.elapsed());
    for service in services {
        service.stop();
    }

    let mut all = Vec::with_capacity(4 * EACH);
    for file in files {
        let arrivals = read(&file);
        assert_eq!(arrivals.len(), EACH);
        assert_in_order(&arrivals);
        all.extend(arrivals);
    }
    assert_roughly_ordered(&mut all);
    let mut ids: Vec<u64> = all.iter().map(|arrival| arrival.0).collect();
    ids.sort_unstable();
    let twice = ids.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
}

fn take(library: Library, file: &Path, addresses: &[String; 2]) -> Script {
    let each = EACH.to_string();
    let [first, second] = addresses;
    library.start(["take", file.to_str().unwrap(), &each, first, second])
}

/// What one client had: IDs of the services in turn.
fn read(file: &Path) -> Vec<Arrival> {
    let bytes = std::fs::read(file).unwrap();
    let (rows, rest) = bytes.as_chunks::<16>();
    assert!(rest.is_empty());
    rows.iter()
        .map(|row| {
            let (id, arrived) = row.split_first_chunk::<8>().unwrap();
            let arrived = arrived.try_into().unwrap();
            (u64::from_le_bytes(*id), i64::from_le_bytes(arrived))
        })
        .collect()
}

/// Each of the right node, made just now, and larger than the one before of its service.
fn assert_in_order(arrivals: &[Arrival]) {
    let mut last = [0; 2];
    for (&(id, arrived_us), of) in arrivals.iter().zip([0, 1].into_iter().cycle()) {
        assert_eq!(node_of(id), NODES[of], "{id}");
        assert!(id > last[of], "{id} after {}", last[of]);
        last[of] = id;
        let off_ms = arrived_us / 1_000 - time_ms(id);
        assert!(off_ms.abs() < 1_000, "{id} is {off_ms} ms off");
    }
}

/// An ID that arrived a second or more after another is larger, whoever made them.
fn assert_roughly_ordered(all: &mut [Arrival]) {
    all.sort_unstable_by_key(|arrival| arrival.1);
    let mut earlier = all.iter().peekable();
    let mut largest = 0;
    let mut compared = 0;
    for &(id, arrived_us) in &*all {
        while let Some((other, _)) = earlier.next_if(|other| other.1 + 1_000_000 <= arrived_us) {
            largest = largest.max(*other);
        }
        assert!(id > largest, "{id} came a second after {largest}");
        compared += usize::from(largest > 0);
    }
    assert!(compared > 0, "all within a second");
}
