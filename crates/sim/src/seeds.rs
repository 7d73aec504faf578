//! Runs a simulation on many seeds.

use std::{
    env,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Runs a simulation on the first `default` seeds on two threads; on as many as `DRIFTLINE_SEEDS`
/// says, on as many times the default as `DRIFTLINE_TIMES` says, or on the one that `DRIFTLINE_SEED`
/// names.
///
/// # Panics
/// After the last seed if the simulation panicked on any, with the command that replays each; and
/// at once if a variable is not a number.
#[allow(clippy::panic)]
pub fn run(default: u64, simulation: impl Fn(u64) + Sync) {
    let seeds = seed_range(default);
    let next = AtomicU64::new(seeds.start);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            // Nothing outlives a run but what it printed.
            if catch_unwind(AssertUnwindSafe(|| simulation(seed))).is_err() {
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.push(replay(seed));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failed.is_empty(), "replay with: {}", failed.join("; "));
}

/// [`run`] on one thread and up to the first failure, for a test that counts over its seeds.
///
/// # Panics
/// As the simulation does, after the command that replays its seed is printed.
#[allow(clippy::print_stderr)]
pub fn in_turn(default: u64, mut simulation: impl FnMut(u64)) {
    for seed in seed_range(default) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| simulation(seed))) {
            eprintln!("replay with: {}", replay(seed));
            resume_unwind(panic);
        }
    }
}

fn replay(seed: u64) -> String {
    format!("cargo xtask sim --seed {seed}")
}

fn seed_range(default: u64) -> Range<u64> {
    match (number("DRIFTLINE_SEED"), number("DRIFTLINE_SEEDS")) {
        (Some(seed), _) => seed..seed.saturating_add(1),
        (None, Some(count)) => 0..count,
        (None, None) => 0..default.saturating_mul(number("DRIFTLINE_TIMES").unwrap_or(1)),
    }
}

#[allow(clippy::panic)]
fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => panic!("{name}={text} is not a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_runs_and_failures_are_reported() {
        let ran = Mutex::new(Vec::new());
        let outcome = catch_unwind(|| {
            run(20, |seed| {
                ran.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(seed);
                assert!(seed != 7 && seed != 11, "these fail");
            });
        });
        let mut ran = ran.into_inner().unwrap_or_else(PoisonError::into_inner);
        ran.sort_unstable();
        let expected = seed_range(20);
        assert_eq!(ran, expected.clone().collect::<Vec<_>>());
        let said = outcome
            .err()
            .and_then(|said| said.downcast::<String>().ok());
        for seed in [7, 11] {
            let is_named = said
                .as_ref()
                .is_some_and(|said| said.contains(&format!("--seed {seed}")));
            assert_eq!(is_named, expected.contains(&seed));
        }
    }
}
