//! The machine, the store and the simulated upstream under virtual time, with
//! settings that are drawn like the faults: a process that dies before and
//! after any commit, a store that fails for a while at any operation, a stream
//! beside the polls that loses, repeats and delays what it tells, and
//! refreshes beside both. [`laws`] says what must hold at every commit.
//!
//! `DRIFTLINE_SEED=n` replays one seed, `DRIFTLINE_SEEDS=n` runs that many;
//! `DRIFTLINE_TRACE=1` prints each step.
#![allow(clippy::unwrap_used)]

mod faults;
mod feed;
mod laws;
mod mutants;
mod refresher;
mod session;
mod settings;
mod simulation;

use driftline_sim::seeds;

use crate::{settings::Drawn, simulation::Simulation};

#[test]
fn the_copy_equals_the_truth_whatever_is_asked_and_fails() {
    seeds::run(100, |seed| {
        let drawn = Drawn::of(seed);
        session::trace(0, &drawn);
        run(Simulation::new(drawn));
    });
}

fn run(simulation: Simulation) {
    if let Err(violation) = simulation.run() {
        panic!("{violation}");
    }
}
