//! Who has which node: services and scripts on one data folder, and copies of it.

use std::{fs, path::Path, process::Command};

use crate::{
    service::{Service, id, node_of, now_us, run, serve},
    support::{DataDir, Ended},
};

fn assert_failed(ended: &Ended, status: i32, why: &str) {
    assert_eq!(ended.status, status, "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert_eq!(ended.stdout, "");
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
