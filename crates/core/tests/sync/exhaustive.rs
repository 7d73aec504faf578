//! An exhaustive model: every order in which two devices edit two objects, pull chunks of one entry and push, while answers and
//! requests are lost, doubled and late, devices crash, and the server collects tombstones and is restored, within a budget. The
//! devices are the real machine, as in [`crate::convergence`].

mod system;

use stateright::{Checker, HasDiscoveries, Model};

use crate::model_server::Flaw;
use system::{
    Budget, CONFLICT, EQUAL, FULL_AGAIN, KEPT, LOST_ANSWER, LOST_BY_SERVER, NEW_IDENTITY, SETTLES,
    System,
};

/// A text and a member of a set; an object that is not merged, and one that is merged by its size.
const OBJECTS: [[&str; 2]; 2] = [
    ["note:1", "bookmark:1"],
    ["list:00000000000000000000000000000001", "marker:home"],
];

const LAWS: [&str; 3] = [KEPT, EQUAL, SETTLES];

const NONE: Budget = Budget {
    edits: 0,
    copies: 0,
    collections: 0,
    restores: 0,
};

/// Among others: a push that the server gets after it has collected the tombstone of the same object.
#[test]
fn collection_breaks_no_law() {
    let budget = Budget {
        edits: 3,
        collections: 1,
        ..NONE
    };
    explore(OBJECTS[0], budget, &[CONFLICT, LOST_ANSWER, FULL_AGAIN]);
}

#[test]
fn doubled_and_late_pushes_break_no_law() {
    let budget = Budget {
        edits: 2,
        copies: 1,
        collections: 1,
        ..NONE
    };
    for objects in OBJECTS {
        explore(objects, budget, &[CONFLICT, LOST_ANSWER, FULL_AGAIN]);
    }
}

/// `cargo xtask soak` allows a doubled push and a collection as well.
#[test]
fn a_restored_server_breaks_no_law() {
    let more = u8::from(std::env::var_os("DRIFTLINE_TIMES").is_some());
    let budget = Budget {
        edits: 2,
        copies: more,
        collections: more,
        restores: 1,
    };
    for objects in OBJECTS {
        explore(objects, budget, &[CONFLICT, LOST_BY_SERVER, NEW_IDENTITY]);
    }
}

/// Or the model proves nothing.
#[test]
fn servers_that_break_a_rule_are_caught() {
    for (flaw, budget) in [
        (Flaw::SkipsComparison, Budget { edits: 2, ..NONE }),
        (
            Flaw::KeepsHorizon,
            Budget {
                edits: 2,
                collections: 1,
                ..NONE
            },
        ),
        (
            Flaw::TrustsCursors,
            Budget {
                edits: 1,
                restores: 1,
                ..NONE
            },
        ),
    ] {
        let system = System::new(OBJECTS[0], budget, Some(flaw));
        assert!(failure(system).is_some(), "{flaw:?}");
    }
}

/// Visits every state that the budget allows, and expects that each example occurs.
fn explore(objects: [&'static str; 2], budget: Budget, examples: &[&'static str]) {
    let system = System::new(objects, budget, None);
    let checker = system.clone().checker().spawn_bfs().join();
    let is_broken = LAWS.into_iter().any(|law| checker.discovery(law).is_some());
    assert!(!is_broken, "{:?}", failure(system));
    assert!(checker.is_done(), "{budget:?} was not visited whole");
    for &example in examples {
        checker.assert_any_discovery(example);
    }
    let states = checker.unique_state_count();
    eprintln!("{objects:?}, {budget:?}: {states} states");
}

/// A law that breaks, the reason and the shortest way to it.
fn failure(system: System) -> Option<String> {
    let checker = system.checker();
    let checker = checker
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    LAWS.into_iter().find_map(|law| {
        let path = checker.discovery(law)?;
        let reason = path.last_state().settle();
        Some(format!("{law}: {reason:?} after {:?}", path.into_actions()))
    })
}
