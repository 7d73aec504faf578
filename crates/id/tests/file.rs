//! Windows in files, within one process.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use driftline_id::clock::{Clock, ManualClock, SystemClock};
use driftline_id::file::{FileError, Keeper, NodeFolder, ReservationFile};
use driftline_id::window::{Lease, LeaseStore, RecordError};
use driftline_id::{ClockPolicy, Field, Generator, Layout, Node, TimeUnit, Window};

mod support;

use support::{NOW_US, WINDOW_CONFIG, copy_folder, node, open};

#[test]
fn a_node_is_held_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let (held, _) = open(folder.path(), NOW_US).unwrap();
    assert!(matches!(
        open(folder.path(), NOW_US),
        Err(FileError::Held { .. })
    ));
    drop(held);
    assert!(open(folder.path(), NOW_US).is_ok());
}

#[test]
fn the_file_is_written_before_the_window_is_extended() {
    let folder = tempfile::tempdir().unwrap();
    let (mut held, window) = open(folder.path(), NOW_US).unwrap();
    let recorded = || {
        let text = fs::read_to_string(folder.path().join("twitter-5.window")).unwrap();
        driftline_id::window::Record::parse(&text)
            .unwrap()
            .until_us()
    };
    assert_eq!(recorded(), window.until_us());
    held.renew(held.due_us() - 1).unwrap();
    assert_eq!(window.until_us(), NOW_US + 3_000_000);
    held.renew(held.due_us()).unwrap();
    assert_eq!(window.until_us(), NOW_US + 3_600_000);
    assert_eq!(recorded(), window.until_us());

    // Where nothing can be written, nothing is extended; once it can, all is well again.
    let draft = folder.path().join("twitter-5.draft");
    fs::create_dir(&draft).unwrap();
    assert!(matches!(
        held.renew(held.due_us()),
        Err(FileError::Io { .. })
    ));
    assert_eq!(window.until_us(), NOW_US + 3_600_000);
    fs::remove_dir(&draft).unwrap();
    held.renew(held.due_us()).unwrap();
    assert_eq!(recorded(), NOW_US + 4_200_000);
}

#[test]
fn a_lease_is_released_with_its_own_window_only() {
    let folder = tempfile::tempdir().unwrap();
    let (held, _window) = open(folder.path(), NOW_US).unwrap();
    let other = Window::unrecorded_ids_may_repeat(node());
    let ids = Generator::new(other, ManualClock::at_us(NOW_US), ClockPolicy::Refuse).unwrap();
    assert!(matches!(
        held.release(ids.retire()),
        Err(FileError::OtherWindow)
    ));
    let (_, window) = open(folder.path(), NOW_US).unwrap();
    assert_eq!(window.from_us(), NOW_US + 3_000_000);
}

#[test]
fn a_damaged_record_is_never_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), NOW_US).unwrap());
    let path = folder.path().join("twitter-5.window");
    let text = fs::read(&path).unwrap();
    for damaged in [
        &text[..0],
        &text[..40],
        &text[..text.len() - 1],
        b"\xff\xfe\0",
    ] {
        fs::write(&path, damaged).unwrap();
        let refused = open(folder.path(), NOW_US + 60_000_000);
        let Err(FileError::Record { error, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error, RecordError::Torn);
        assert_eq!(fs::read(&path).unwrap(), damaged);
    }
    fs::write(&path, &text).unwrap();
    // A draft that a crash left behind is nothing.
    fs::write(folder.path().join("twitter-5.draft"), b"torn").unwrap();
    assert!(open(folder.path(), NOW_US).is_ok());
}

#[test]
fn a_copied_folder_is_refused_until_it_is_adopted() {
    let parent = tempfile::tempdir().unwrap();
    let (original, copy) = (parent.path().join("original"), parent.path().join("copy"));
    let (_held, window) = open(&original, NOW_US).unwrap();
    copy_folder(&original, &copy);
    let refused = open(&copy, NOW_US);
    assert!(
        matches!(refused, Err(FileError::Copied { .. })),
        "{refused:?}"
    );
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("copy") && text.contains("adopt"), "{text}");

    assert!(ReservationFile::adopt(&copy, &node()).unwrap());
    let (_, adopted) = open(&copy, NOW_US).unwrap();
    assert_eq!(adopted.from_us(), window.until_us());
}

#[test]
fn a_restored_folder_is_refused_and_a_moved_one_is_not() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    drop(open(&at("data"), NOW_US).unwrap());
    copy_folder(&at("data"), &at("backup"));
    fs::rename(at("data"), at("moved")).unwrap();
    assert!(open(&at("moved"), NOW_US).is_ok());
    fs::rename(at("backup"), at("data")).unwrap();
    assert!(matches!(
        open(&at("data"), NOW_US),
        Err(FileError::Copied { .. })
    ));
}

#[test]
fn a_folder_gives_each_holder_the_lowest_free_node() {
    const FOUR: &[Field] = &[Field::node("node", 2), Field::sequence(20)];
    let layout = Layout::custom("four", TimeUnit::Millisecond, 0, 41, FOUR).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let nodes = NodeFolder::new(folder.path(), layout, WINDOW_CONFIG);
    let acquire = || nodes.acquire(NOW_US);
    let mut held: Vec<_> = (0..4).map(|_| acquire().unwrap().0).collect();
    let numbers: Vec<u64> = held.iter().map(|lease| lease.node().number()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert!(matches!(acquire(), Err(FileError::AllHeld { .. })));
    drop(held.remove(2));
    let (lease, window) = acquire().unwrap();
    assert_eq!(lease.node().number(), 2);
    assert_eq!(window.from_us(), NOW_US + 3_000_000);
    let none = NodeFolder::new(folder.path(), Layout::ULID, WINDOW_CONFIG);
    assert!(matches!(none.acquire(NOW_US), Err(FileError::Node(_))));
}

#[test]
fn a_keeper_that_cannot_write_says_so_and_extends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = ManualClock::at_us(NOW_US);
    let (held, window) = open(folder.path(), NOW_US).unwrap();
    fs::create_dir(folder.path().join("twitter-5.draft")).unwrap();
    clock.advance_us(2_000_000);
    let keeper = Keeper::start(held, clock).unwrap();
    let until_us = SystemClock.now_us() + 10_000_000;
    let failure = loop {
        if let Some(failure) = keeper.take_failure() {
            break failure;
        }
        assert!(SystemClock.now_us() < until_us, "no failure in 10 s");
        std::thread::yield_now();
    };
    assert!(matches!(failure, FileError::Io { .. }));
    assert_eq!(window.until_us(), NOW_US + 3_000_000);
    assert!(keeper.is_alive());
}

#[test]
fn all_records_of_a_copied_folder_are_adopted_at_once() {
    let parent = tempfile::tempdir().unwrap();
    let (original, copy) = (parent.path().join("original"), parent.path().join("copy"));
    let at = |folder: &Path, number| {
        let node = Node::new(&Layout::TWITTER, number).unwrap();
        ReservationFile::open(folder, node, WINDOW_CONFIG, NOW_US)
    };
    for number in [9, 10, 2] {
        drop(at(&original, number).unwrap());
    }
    drop(open_of(&original, &Layout::DISCORD).unwrap());
    copy_folder(&original, &copy);
    let nodes = NodeFolder::new(&copy, Layout::TWITTER, WINDOW_CONFIG);
    let adopted = nodes.adopt().unwrap();
    let numbers: Vec<u64> = adopted.iter().map(Node::number).collect();
    assert_eq!(numbers, [2, 9, 10]);
    assert!([2, 9, 10].iter().all(|&number| at(&copy, number).is_ok()));
    assert!(matches!(
        open_of(&copy, &Layout::DISCORD),
        Err(FileError::Copied { .. })
    ));
    let none = NodeFolder::new(parent.path().join("none"), Layout::TWITTER, WINDOW_CONFIG);
    assert!(matches!(none.adopt(), Err(FileError::Io { .. })));
}

/// As after a restart of the machine, which may renumber its disks.
#[test]
#[cfg(unix)]
fn a_device_of_another_number_is_the_same_at_the_same_path_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("twitter-5.window");
    let (held, _) = open(folder.path(), NOW_US).unwrap();
    let record = held.record().clone();
    drop(held);
    let (_, rest) = record.location().split_once(' ').unwrap();
    let renumbered = record.moved_to(&format!("1000000 {rest}"));
    let elsewhere = record.moved_to(&format!("1000000 {rest}x"));
    fs::write(&path, elsewhere.to_string()).unwrap();
    assert!(matches!(
        open(folder.path(), NOW_US),
        Err(FileError::Copied { .. })
    ));
    fs::write(&path, renumbered.to_string()).unwrap();
    assert!(open(folder.path(), NOW_US).is_ok());
}

#[test]
fn an_older_record_without_a_birth_time_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (held, _) = open(folder.path(), NOW_US).unwrap();
    let location = held.record().location().to_string();
    let without: Vec<&str> = location
        .split(' ')
        .filter(|part| !part.starts_with("born_ns="))
        .collect();
    let older = held.record().moved_to(&without.join(" "));
    drop(held);
    fs::write(folder.path().join("twitter-5.window"), older.to_string()).unwrap();
    let (held, _) = open(folder.path(), NOW_US).unwrap();
    assert_eq!(held.record().location(), location);
}

fn open_of(folder: &Path, layout: &Layout) -> Result<(ReservationFile, Window), FileError> {
    let node = Node::new(layout, 5).unwrap();
    ReservationFile::open(folder, node, WINDOW_CONFIG, NOW_US)
}
