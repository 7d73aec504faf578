//! The machine, the store and the simulated upstream under virtual time, with
//! settings that are drawn like the faults: a process that dies before and
//! after any commit, a store that fails for a while at any operation, a stream
//! next to the polls that loses, repeats and delays events, and
//! refreshes next to both. [`laws`] says what must hold at every commit.
//!
//! `DRIFTLINE_SEED=n` replays one seed, `DRIFTLINE_SEEDS=n` runs that many;
//! `DRIFTLINE_TRACE=1` prints each step.
#![allow(clippy::unwrap_used)]

mod answers;
mod faults;
mod feed;
mod follower;
mod laws;
mod ledger;
mod mutants;
mod proofs;
mod quirk_laws;
mod quirks;
mod refresher;
mod session;
mod settings;
mod simulation;
mod stored_edits;
mod trace;

use driftline_core::timeline::Settings;
use driftline_sim::{SpanMs, WorldConfig, seeds};

use crate::{
    faults::{Begins, Fault, Faults, OUTAGES_MS, Operation, Outage, Side},
    settings::{Drawn, MINUTE_MS},
    simulation::{Place, Simulation},
};

#[test]
fn the_copy_equals_the_truth_whatever_is_asked_and_fails() {
    seeds::run(50, |seed| run(Simulation::new(Drawn::of(seed))));
}

/// A wall clock that is set by minutes, hours or days, both ways, stops and loses nothing.
#[test]
fn the_copy_equals_the_truth_while_the_clock_is_set() {
    seeds::run(16, |seed| {
        run(Simulation::new(Drawn::of(seed).with_clock_steps()));
    });
}

/// What lies deeper than the upstream shows has not left the timeline.
#[test]
fn the_copy_equals_the_truth_of_a_timeline_that_shows_some_pages() {
    seeds::run(6, |seed| {
        let mut drawn = Drawn::of(seed);
        drawn.world.reach = Some(u32::from(drawn.world.page_limit) * 3);
        run(Simulation::new(drawn));
    });
}

#[test]
fn the_copy_on_postgresql_equals_the_truth_whatever_is_asked_and_fails() {
    seeds::run(4, |seed| {
        // Of many, some: each takes a second.
        if seed < 4 || seed % 20 == 0 {
            run(Simulation::at(Place::postgres(), Drawn::of(seed)));
        }
    });
}

/// One run for each second commit, of the same few minutes: the death is before one and after the next. Further rounds
/// have the other sides and the other commits.
#[test]
fn a_death_at_any_commit_loses_nothing() {
    let commits = {
        let mut simulation = Simulation::new(Drawn::short(0));
        assert!(simulation.run_to_the_end().is_ok());
        simulation.store.commits()
    };
    assert!((50..200).contains(&commits), "{commits} commits");
    let each = commits / 2;
    seeds::run(each, |seed| {
        let (round, commit) = (seed / each, 2 * (seed % each) + seed / each / 2 % 2);
        let side = if (round + commit / 2) % 2 == 0 {
            Side::Before
        } else {
            Side::After
        };
        let drawn = Drawn::short(round / 4);
        let faults = Faults {
            death: Some((commit + 1, side)),
            ..drawn.faults
        };
        run(Simulation::new(Drawn { faults, ..drawn }));
    });
}

/// Each operation fails in each way, from its first, second or third use on; for another time in each round.
#[test]
fn an_outage_at_any_operation_loses_nothing_and_ends() {
    let (operations, times) = (Operation::ALL.len(), OUTAGES_MS.len());
    let kinds = operations * Fault::ALL.len();
    seeds::run(kinds as u64, |seed| {
        let (at, round) = (seed as usize % kinds, seed as usize / kinds);
        let operation = Operation::ALL[at % operations];
        let fault = at / operations;
        let is_rare = matches!(
            operation,
            Operation::Claim | Operation::Load | Operation::Release
        );
        // A session that ends, so that they are needed again.
        let ending = Outage {
            fault: Fault::ReadOnly,
            begins: Begins::With(Operation::Poll, 5),
            for_ms: 1,
        };
        let number = match operation {
            Operation::Release => 1,
            // The stream of a short run tells little.
            Operation::Events => 1 + fault as u64 % 2,
            _ if is_rare => 1 + fault as u64 % 2,
            _ => 1 + fault as u64 % 3,
        };
        let outage = Outage {
            fault: Fault::ALL[fault],
            begins: Begins::With(operation, number),
            for_ms: OUTAGES_MS[(at + fault + round) % times],
        };
        let drawn = Drawn::short((round / times) as u64);
        let outages = if is_rare {
            vec![outage, ending]
        } else {
            vec![outage]
        };
        let count = outages.len();
        let mut simulation = Simulation::new(Drawn {
            faults: Faults {
                outages,
                ..drawn.faults
            },
            ..drawn
        });
        if let Err(violation) = simulation.run_to_the_end() {
            panic!("{outage:?}: {violation}");
        }
        let begun = simulation.store.outages();
        assert!(begun == count || round > 0, "{outage:?} has not begun");
    });
}

/// To the machine a post is there once a page has shown it: a stream beside
/// the polls changes nothing of what it knows, asks for or claims.
#[test]
fn the_machine_does_not_see_what_a_stream_shows() {
    let mut stored = 0;
    for seed in 0..6 {
        let drawn = Drawn::of(seed);
        let settings = Settings {
            every_ms: 20_000,
            ..drawn.settings
        };
        let drawn = Drawn {
            settings,
            world: WorldConfig {
                publish_for_ms: Some(60 * MINUTE_MS),
                federated_share: 0.05,
                federated_backdate_ms: SpanMs::new(5_000, 300_000),
                ..WorldConfig::measured(0.05)
            },
            joins_after_ms: 0,
            refreshes: false,
            // The stream makes polls rarer otherwise.
            cadence: false,
            faults: Faults::default(),
            ..drawn
        };
        let run = |streams| {
            let end_ms = drawn.start_ms() + 61 * MINUTE_MS;
            let mut simulation = Simulation::new(Drawn {
                streams,
                ..drawn.clone()
            });
            simulation.run_until(end_ms).unwrap();
            simulation
        };
        let (alone, streamed) = (run(false), run(true));
        stored += streamed.streamed.new;
        let machine = |simulation: Simulation| simulation.session.unwrap().machine().clone();
        assert_eq!(machine(streamed), machine(alone), "seed {seed}");
    }
    assert!(stored > 75, "{stored} came first by stream");
}

fn run(simulation: Simulation) {
    trace::trace(0, &simulation.drawn);
    if let Err(violation) = simulation.run() {
        panic!("{violation}");
    }
}
