//! What tests of windows share. Each test program uses a part of it.
#![allow(clippy::unwrap_used, dead_code)]

use std::error::Error;
use std::fs;
use std::path::Path;

use driftline_id::file::{FileError, ReservationFile};
use driftline_id::window::{Lease, WindowConfig};
use driftline_id::{Layout, Node, Retired, Window};

pub(crate) const NOW_US: i64 = 1_700_000_000_000_000;
pub(crate) const WINDOW_CONFIG: WindowConfig = WindowConfig {
    length_ms: 3_000,
    max_clock_skew_ms: 60_000,
};

/// The node 5 of Twitter's layout.
pub(crate) fn node() -> Node {
    Node::new(&Layout::TWITTER, 5).unwrap()
}

pub(crate) fn open(folder: &Path, now_us: i64) -> Result<(ReservationFile, Window), FileError> {
    ReservationFile::open(folder, node(), WINDOW_CONFIG, now_us)
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// A lease that is always due. Its renewal is the function's.
pub(crate) struct TestLease<F>(pub(crate) F);

impl<E: Error, F: FnMut() -> Result<(), E>> Lease for TestLease<F> {
    type Error = E;

    fn node(&self) -> &Node {
        unreachable!("not asked for")
    }

    fn fence(&self) -> u64 {
        0
    }

    fn due_us(&self) -> i64 {
        i64::MIN
    }

    fn renew(&mut self, _: i64) -> Result<(), E> {
        (self.0)()
    }

    fn release(self, _: Retired) -> Result<(), E> {
        Ok(())
    }
}
