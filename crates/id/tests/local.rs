//! IDs of this process from a folder, with nothing to put together.

#![allow(clippy::unwrap_used)]

use driftline_id::clock::{Clock, SystemClock};
use driftline_id::file::{FileError, LocalIds};
use driftline_id::window::WindowConfig;
use driftline_id::{Lane, Layout, Node};

#[test]
fn ids_of_a_folder_rise_across_restarts_and_processes_have_nodes_of_their_own() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("made").join("here");
    let ids = LocalIds::open(&folder, Layout::TWITTER).unwrap();
    let other = LocalIds::open(&folder, Layout::TWITTER).unwrap();
    assert_eq!(
        [
            ids.generator().node().number(),
            other.generator().node().number()
        ],
        [0, 1]
    );
    let first = ids.next_id().unwrap();
    let last = ids.reserve_waiting(10).unwrap().last().unwrap();
    assert!(last > first);
    assert!(Lane::new(ids.generator()).next_id().unwrap() > last);
    assert!(ids.take_failure().is_none());
    assert!(ids.generator().window_until_us() > SystemClock.now_us());
    ids.close().unwrap();

    // Closed, the node is free and begins at once.
    let before_us = SystemClock.now_us();
    let again = LocalIds::open(&folder, Layout::TWITTER).unwrap();
    assert_eq!(again.generator().node().number(), 0);
    assert!(again.next_id().unwrap() > last);
    assert!(SystemClock.now_us() < before_us + 1_500_000);
}

#[test]
fn a_node_that_was_named_is_taken_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::new(&Layout::DISCORD, 77).unwrap();
    let ids = LocalIds::open_node(folder.path(), node).unwrap();
    assert_eq!(ids.generator().node(), &node);
    let held = LocalIds::open_node(folder.path(), node);
    assert!(matches!(held, Err(FileError::Held { .. })));
    let unfit = LocalIds::open(folder.path(), Layout::ULID);
    assert!(matches!(unfit, Err(FileError::Node(_))));
}

#[test]
fn a_call_may_wait_for_longer_than_crashes_hold_a_node_back() {
    let length_ms = WindowConfig::default().length_ms;
    assert!(LocalIds::MAX_WAIT_MS >= 2 * length_ms + length_ms / 16 + 1_000);
}
