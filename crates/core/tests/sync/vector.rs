//! One conformance vector, as `docs/sync-protocol.md` describes it. The tests and the program `sync_vectors` share this file.

use driftline_core::sync::{
    ChangeResult, Incoming, LocalObject, SentChange, SweepMode, incoming, pushed, sweep,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// All vectors.
pub(crate) fn vectors() -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).expect("vectors");
    assert!(vectors.len() >= 30);
    vectors
}

/// The outcome that a vector states.
pub(crate) fn expected(vector: &Value) -> Value {
    json!({ "object": vector["object"], "conflict": vector["conflict"] })
}

/// The machine's outcome for a vector.
pub(crate) fn outcome(vector: &Value) -> Value {
    let Case { local, step } = serde_json::from_value(vector.clone()).expect("a vector");
    let outcome = match step {
        Step::Incoming { theirs, sent } => incoming(local, &theirs, sent.as_ref()),
        Step::Pushed { sent, result } => pushed(local, &sent, &result),
        Step::Sweep { full_sync, mode } => {
            sweep(local.expect("a replica's object"), full_sync, mode)
        }
    };
    serde_json::to_value(outcome).expect("JSON")
}

#[derive(Deserialize)]
struct Case {
    local: Option<LocalObject>,
    #[serde(flatten)]
    step: Step,
}

#[derive(Deserialize)]
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

const VECTORS: &str = include_str!("../sync_vectors.json");
