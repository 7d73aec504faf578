//! The ticked clock's thread ends with the clock. The only test here, as it counts the threads.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

use driftline_id::clock::{Clock, SystemClock, TickedClock};

#[test]
fn the_clocks_thread_ends_with_its_last_clone() {
    let clock = TickedClock::start();
    let clone = clock.clone();
    wait_for(1);
    drop(clock);
    clone.fresh_us();
    std::thread::park_timeout(std::time::Duration::from_millis(60));
    wait_for(1);
    drop(clone);
    wait_for(0);
}

fn wait_for(threads: usize) {
    let until_us = SystemClock.now_us() + 10_000_000;
    while clock_threads() != threads {
        assert!(SystemClock.now_us() < until_us, "not {threads} in 10 s");
        std::thread::yield_now();
    }
}

fn clock_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "id-clock").count()
}
