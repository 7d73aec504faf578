//! Killed at random moments, the copy still equals the truth.
//!
//! `DRIFTLINE_SEED=n` replays a world and its moments, `DRIFTLINE_KILLS=n`
//! kills that often, `DRIFTLINE_PROCESSES=n` has that many where several run,
//! `DRIFTLINE_NODE_KILLS=1` kills servers of a distributed database among them, and
//! `DRIFTLINE_CUT=127.0.0.8` cuts the server off for 5 to 10 s that listens at that address of the
//! loopback network (as root, on Linux).
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    reason = "a test may panic, and nothing of it can be reached"
)]

mod cut;
mod one;
mod readers;
mod several;
#[path = "../support/mod.rs"]
mod support;
mod truth;
mod world;

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

/// What the variable says.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// The seed and the number of kills that are asked for, which are printed.
fn seeded(kills: u64) -> (u64, u64, ChaCha8Rng) {
    let seed = number("DRIFTLINE_SEED", rand::random());
    let kills = number("DRIFTLINE_KILLS", kills);
    eprintln!("DRIFTLINE_SEED={seed} DRIFTLINE_KILLS={kills}");
    (seed, kills, ChaCha8Rng::seed_from_u64(seed))
}
