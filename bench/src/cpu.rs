//! Processor time used.

use std::{fs, path::Path, time::Duration};

use crate::failure::Failure;

/// By a process, with all its threads.
pub(crate) fn of_process(id: u32) -> Result<Duration, Failure> {
    used(Path::new(&format!("/proc/{id}/stat")))
}

/// By the thread that asks.
pub(crate) fn of_this_thread() -> Result<Duration, Failure> {
    used(Path::new("/proc/thread-self/stat"))
}

fn used(stat: &Path) -> Result<Duration, Failure> {
    let stat = fs::read_to_string(stat)?;
    // The name, in brackets, may hold anything; user and system time are the 14th and the 15th
    // field, so the 12th and the 13th after it.
    let (_, fields) = stat
        .rsplit_once(')')
        .ok_or_else(|| Failure::new("an unknown form of /proc/PID/stat"))?;
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Ok(Duration::from_millis(ticks * MS_PER_TICK))
}

/// Linux counts processor time in hundredths of a second for user space.
const MS_PER_TICK: u64 = 10;
