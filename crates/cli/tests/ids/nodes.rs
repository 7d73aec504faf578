//! Who has which node: services and scripts on one data folder, and copies of it.

use std::{collections::HashSet, fs, path::Path, process::Command};

use crate::{
    service::{PATIENT, Service, assert_rising, id, node_of, now_us, run, serve},
    support::{DataDir, Ended},
    taker::{Taker, all_differ, start_all},
};

fn assert_failed(ended: &Ended, status: i32, why: &str) {
    assert_eq!(ended.status, status, "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn a_node_of_a_folder_is_held_by_one_service() {
    let data_dir = DataDir::new();
    let first = Service::start(&data_dir, &[&["--node", "9"], &PATIENT[..]].concat());
    let taker = Taker::start(first.thrift);
    for node in [["--node", "9"], ["--node", "datacenter=0,worker=9"]] {
        assert_failed(
            &run(&data_dir, &serve(&node)),
            11,
            "is held by another process",
        );
    }
    let other = Service::start(&data_dir, &["--node", "10"]);
    taker.wait_for_more(100);
    other.stop();
    let taken = taker.stop();
    assert!(
        taken.refused.is_empty() && taken.broken.is_none(),
        "{taken:?}"
    );
    first.stop();
    let again = Service::start(&data_dir, &["--node", "9"]);
    assert!(id(&mut again.client()) > *taken.ids.last().unwrap());
}

#[test]
fn leased_nodes_are_the_lowest_free_ones() {
    let data_dir = DataDir::new();
    let start = || Service::start(&data_dir, &["--lease", "file"]);
    let mut services = vec![start(), start(), start()];
    let takers = start_all(&services);

    let printed = data_dir.run(&["id", "next", "-n", "20000", "--lease", "file"]);
    assert_eq!(printed.status, 0, "{printed:?}");
    let printed: Vec<u64> = printed
        .stdout
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(printed.len(), 20_000);
    assert_rising(&printed);
    assert!(printed.iter().all(|&id| node_of(id) == 3));

    let mut all: HashSet<u64> = printed.iter().copied().collect();
    all_differ(takers, 100, &mut all);

    services.remove(1).stop();
    let again = data_dir.json(&["id", "next", "--lease", "file"]);
    let again: u64 = again[0]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(node_of(again), 1);
    services.remove(0).running.kill();
    assert_eq!(start().node, 0, "also of a service that was killed");
}

#[test]
fn a_copied_folder_makes_no_ids_until_it_is_adopted() {
    let original = DataDir::new();
    let service = Service::start(&original, &[]);
    let before = id(&mut service.client());
    service.stop();
    let copy = DataDir::new();
    copy_folder(&original.data(), &copy.data());

    let recorded = fs::read(copy.data().join("ids/twitter-0.window")).unwrap();
    for refused in [run(&copy, &serve(&[])), copy.run(&["id", "next"])] {
        assert_failed(&refused, 1, "it is a copy, or was restored");
        assert!(refused.stderr.contains("adopt"), "{refused:?}");
    }
    let left = fs::read(copy.data().join("ids/twitter-0.window")).unwrap();
    assert!(left == recorded, "refused, it records nothing");
    // A node without a record is as good there as anywhere.
    Service::start(&copy, &["--node", "1"]).stop();

    let adopted = copy.run(&["id", "adopt"]);
    assert_eq!(adopted.status, 0, "{adopted:?}");
    assert!(adopted.stdout.contains("node 0"), "{adopted:?}");
    let service = Service::start(&copy, &[]);
    assert!(id(&mut service.client()) > before);
    assert_failed(
        &copy.run(&["id", "adopt"]),
        11,
        "is held by another process",
    );
    service.stop();
    // The original notices nothing; that it is not used is the operator's promise.
    Service::start(&original, &[]).stop();
}

fn copy_folder(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(copied.unwrap().success());
}

/// No node is guessed: it is the configured one, or node 0, and who has it is asked instead.
#[test]
fn ids_on_the_command_line_are_of_the_configured_node() {
    let data_dir = DataDir::new();
    let config = data_dir.file(
        "other.toml",
        "[id]\nnode = 7\nlayout = \"twitter\"\nepoch_ms = 1700000000000\n",
    );
    let next = |arguments: &[&str]| {
        let id = data_dir.json(&[&["id", "next"], arguments].concat());
        id[0]["id"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let configured = next(&["--config", &config]);
    assert_eq!(node_of(configured), 7);
    // Another layout has nothing of the configured one.
    let pulsate = next(&["--config", &config, "--layout", "pulsate"]);
    assert_eq!(pulsate >> 12 & 0x3ff, 0);
    let time_ms = driftline_id::Layout::PULSATE.time_ms(pulsate.into());
    assert!(time_ms.abs_diff(now_us() / 1_000) < 60_000, "{time_ms}");

    let service = Service::start(&data_dir, &[]);
    for arguments in [&["id", "next"][..], &["id", "next", "--node", "0"]] {
        assert_failed(&data_dir.run(arguments), 11, "--lease file");
    }
    service.stop();
}
