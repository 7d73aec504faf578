//! The conformance vectors, which other clients read too.

use driftline_core::sync::{
    ChangeResult, Incoming, LocalObject, Outcome, SentChange, SweepMode, incoming, pushed, sweep,
};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Vector {
    name: String,
    local: Option<LocalObject>,
    #[serde(flatten)]
    step: Step,
    #[serde(flatten)]
    expected: Outcome,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
enum Step {
    Incoming {
        theirs: Incoming,
        sent: Option<SentChange>,
    },
    Pushed {
        sent: SentChange,
        result: ChangeResult,
    },
    Sweep {
        full_sync: u64,
        mode: SweepMode,
    },
}

#[test]
fn the_conformance_vectors_hold() {
    let vectors: Vec<Vector> = serde_json::from_str(VECTORS).expect("vectors");
    assert!(vectors.len() >= 30);
    for vector in vectors {
        let local = vector.local;
        let outcome = match vector.step {
            Step::Incoming { theirs, sent } => incoming(local, &theirs, sent.as_ref()),
            Step::Pushed { sent, result } => pushed(local, &sent, &result),
            Step::Sweep { full_sync, mode } => {
                sweep(local.expect("a replica's object"), full_sync, mode)
            }
        };
        assert_eq!(outcome, vector.expected, "{}", vector.name);
    }
}

const VECTORS: &str = include_str!("../sync_vectors.json");
