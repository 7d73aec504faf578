//! One conformance vector, as `docs/sync-protocol.md` describes it. The tests and the program `sync_vectors` share this file.

use driftline_core::sync::{
    ChangeResult, Incoming, LocalObject, ObjectKey, ObjectValue, Outcome, SentChange, SweepMode,
    incoming, pushed, sweep,
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
        Step::Edit { edit, sent } => Outcome {
            object: edit.apply(local, sent.is_some()),
            conflict: None,
        },
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
    Edit {
        edit: Edit,
        sent: Option<SentChange>,
    },
}

/// An edit on the device.
#[derive(Deserialize)]
struct Edit {
    key: ObjectKey,
    value: Option<Value>,
    generation: u64,
}

impl Edit {
    fn apply(self, local: Option<LocalObject>, is_sent: bool) -> Option<LocalObject> {
        let read = |value| ObjectValue::read(&self.key, value).expect("a value");
        let value = self.value.map(|value| read(value).json());
        match local {
            Some(local) => local.edit(value, self.generation, is_sent),
            None => Some(LocalObject::added(self.key, value?, self.generation)),
        }
    }
}

const VECTORS: &str = include_str!("../sync_vectors.json");
