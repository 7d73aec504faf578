//! A holder whose files are taken away writes nothing more, and a folder put back is noticed.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use driftline_id::clock::ManualClock;
use driftline_id::file::{FileError, ReservationFile};
use driftline_id::window::{Lease, Record};
use driftline_id::{ClockPolicy, Generator, Layout, Node, Window};

mod support;

use support::{NOW_US, WINDOW_CONFIG, copy_folder, node, open};

#[test]
#[cfg(unix)]
fn a_holder_whose_lock_file_was_removed_loses_the_node_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let (mut first, first_window) = open(folder.path(), NOW_US).unwrap();
    fs::remove_file(folder.path().join("twitter-5.lock")).unwrap();
    let (second, second_window) = open(folder.path(), NOW_US + 2_000_000).unwrap();
    assert!(first.renew(first.due_us() - 1).is_ok());
    assert!(is_lost(&first.renew(first.due_us())));
    assert!(first_window.until_us() <= second_window.from_us());
    // The record is the second's, and stays so.
    let clock = ManualClock::at_us(NOW_US);
    let ids = Generator::new(first_window, clock, ClockPolicy::Refuse).unwrap();
    assert!(is_lost(&first.release(ids.retire())));
    assert_eq!(recorded(folder.path()), *second.record());
}

#[test]
fn a_lost_lease_stays_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (mut held, window) = open(folder.path(), NOW_US).unwrap();
    let lock = folder.path().join("twitter-5.lock");
    fs::rename(&lock, folder.path().join("aside")).unwrap();
    assert!(is_lost(&held.renew(held.due_us())));
    fs::rename(folder.path().join("aside"), &lock).unwrap();
    let lost = held.renew(held.due_us());
    assert!(is_lost(&lost));
    assert_eq!(window.until_us(), NOW_US + 3_000_000);
    let text = lost.unwrap_err().to_string();
    assert!(
        text.contains("twitter-5.lock") && text.contains("removed"),
        "{text}"
    );
}

#[test]
fn a_record_that_another_wrote_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let (mut held, _window) = open(folder.path(), NOW_US).unwrap();
    let node = node();
    let other = Record::begin(Some(held.record()), &node, "there", NOW_US, &WINDOW_CONFIG).unwrap();
    let path = folder.path().join("twitter-5.window");
    fs::write(&path, other.to_string()).unwrap();
    assert!(is_lost(&held.renew(held.due_us())));
    assert_eq!(recorded(folder.path()), other);

    let (mut held, _window) = open_at(folder.path(), 6).unwrap();
    fs::remove_file(folder.path().join("twitter-6.window")).unwrap();
    assert!(is_lost(&held.renew(held.due_us())));
    assert!(!folder.path().join("twitter-6.window").exists());
}

#[test]
#[cfg(unix)]
fn a_folder_moved_away_and_made_anew_is_another() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let (mut first, window) = open(&data, NOW_US).unwrap();
    fs::rename(&data, parent.path().join("old")).unwrap();
    let (second, _window) = open(&data, NOW_US + 2_000_000).unwrap();
    assert!(is_lost(&first.renew(NOW_US + 10_000_000)));
    assert_eq!(window.until_us(), NOW_US + 3_000_000);
    assert_eq!(recorded(&data), *second.record());
}

#[test]
fn a_relative_folder_stays_the_same_when_the_process_goes_elsewhere() {
    let parent = tempfile::tempdir().unwrap();
    let [here, there] = ["here", "there"].map(|name| parent.path().join(name));
    fs::create_dir_all(&here).unwrap();
    let (other, _window) = open(&there.join("ids"), NOW_US).unwrap();
    std::env::set_current_dir(&here).unwrap();
    let (mut held, window) = open(Path::new("ids"), NOW_US).unwrap();
    std::env::set_current_dir(&there).unwrap();
    held.renew(held.due_us()).unwrap();
    assert_eq!(recorded(&here.join("ids")).until_us(), window.until_us());
    assert_eq!(recorded(&there.join("ids")), *other.record());
    std::env::set_current_dir("/").unwrap();
}

/// File systems reuse an inode at once, or number the roots of all disks alike.
#[test]
fn a_folder_removed_made_anew_and_copied_back_is_a_copy() {
    let parent = tempfile::tempdir().unwrap();
    let [data, backup] = ["data", "backup"].map(|name| parent.path().join(name));
    for _ in 0..5 {
        drop(open(&data, NOW_US).unwrap());
        copy_folder(&data, &backup);
        // Creation times are distinguished by the ticks of the kernel's clock.
        std::thread::park_timeout(Duration::from_millis(20));
        fs::remove_dir_all(&data).unwrap();
        copy_folder(&backup, &data);
        let restored = open(&data, NOW_US);
        assert!(
            matches!(restored, Err(FileError::Copied { .. })),
            "{restored:?}"
        );
        assert!(ReservationFile::adopt(&data, &node()).unwrap());
        open(&data, NOW_US).unwrap().0.renew(NOW_US).unwrap();
        fs::remove_dir_all(&data).unwrap();
        fs::remove_dir_all(&backup).unwrap();
    }
}

/// Between opening a lock file and locking it, another holder may have removed it: here a pipe,
/// whose opening takes until the test opens its other end.
#[test]
#[cfg(target_os = "linux")]
fn a_lock_file_removed_before_it_is_locked_is_not_held() {
    let folder = tempfile::tempdir().unwrap();
    let [lock, aside] = ["twitter-5.lock", "aside"].map(|name| folder.path().join(name));
    let made = std::process::Command::new("mkfifo").arg(&lock).status();
    assert!(made.unwrap().success());
    fs::hard_link(&lock, &aside).unwrap();
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| open(folder.path(), NOW_US));
        std::thread::park_timeout(Duration::from_millis(100));
        assert!(!opener.is_finished(), "the pipe was opened at once");
        fs::remove_file(&lock).unwrap();
        let mut both = fs::OpenOptions::new();
        let _other_end = both.read(true).write(true).open(&aside).unwrap();
        let _held = opener.join().unwrap().unwrap();
        let found = fs::File::open(&lock).unwrap().try_lock();
        assert!(matches!(found, Err(fs::TryLockError::WouldBlock)));
    });
}

fn is_lost(outcome: &Result<(), FileError>) -> bool {
    matches!(outcome, Err(FileError::Lost { .. }))
}

fn recorded(folder: &Path) -> Record {
    let text = fs::read_to_string(folder.join("twitter-5.window")).unwrap();
    Record::parse(&text).unwrap()
}

fn open_at(folder: &Path, number: u64) -> Result<(ReservationFile, Window), FileError> {
    let node = Node::new(&Layout::TWITTER, number).unwrap();
    ReservationFile::open(folder, node, WINDOW_CONFIG, NOW_US)
}
