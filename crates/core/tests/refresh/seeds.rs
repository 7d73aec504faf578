//! The runner of seeds.

/// The seeds to run: `DRIFTLINE_SEED` alone, else the default number.
pub(crate) fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("DRIFTLINE_SEED") {
        Ok(seed) => vec![seed.parse().expect("DRIFTLINE_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

/// Runs a test on a seed and names the seed if it fails.
pub(crate) fn on_seed(seed: u64, test: impl FnOnce(u64) + std::panic::UnwindSafe) {
    if let Err(panic) = std::panic::catch_unwind(move || test(seed)) {
        eprintln!("seed {seed} failed; replay with DRIFTLINE_SEED={seed}");
        std::panic::resume_unwind(panic);
    }
}
