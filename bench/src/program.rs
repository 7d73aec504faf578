//! A program that is run to its end, and what it took.

use std::{
    fs,
    process::{Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::failure::Failure;

/// What a run took.
pub(crate) struct Ran {
    pub(crate) seconds: f64,
    /// Resident memory at most, MiB.
    pub(crate) peak_mib: f64,
}

/// Runs it to its end, which must be a success. Its memory is looked at each 5 ms: the most is that of
/// the last look.
pub(crate) fn run(command: &mut Command) -> Result<Ran, Failure> {
    let begun = Instant::now();
    let mut process = command.stdin(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", process.id());
    let mut peak_kb = 0.0;
    let ended = loop {
        if let Some(ended) = process.try_wait()? {
            break ended;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kb = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak_kb = kb.unwrap_or(peak_kb);
        sleep(Duration::from_millis(5));
    };
    match ended.success() {
        true => Ok(Ran {
            seconds: begun.elapsed().as_secs_f64(),
            peak_mib: peak_kb / 1024.0,
        }),
        false => Err(Failure::new(format!("{command:?} ended with {ended}"))),
    }
}
