//! Answers that no honest server sends, for property tests.

use proptest::prelude::*;
use serde_json::{Value, json};

/// The answer with one value replaced by another.
pub(crate) fn changed(answer: &Value) -> impl Strategy<Value = Value> + use<> {
    let answer = answer.clone();
    (0..count(&answer), values()).prop_map(move |(at, value)| {
        let mut answer = answer.clone();
        replace(&mut answer, &mut { at }, &value);
        answer
    })
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{}, [-1, 99]])),
        any::<String>().prop_map(|text| json!({ "id": text, "media_key": [text] })),
    ]
}

fn count(json: &Value) -> usize {
    1 + match json {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value that comes `at`-th on a walk through the JSON.
fn replace(json: &mut Value, at: &mut usize, value: &Value) {
    if *at == 0 {
        *json = value.clone();
        *at = usize::MAX;
        return;
    }
    *at -= 1;
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, value)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| replace(member, at, value)),
        _ => {}
    }
}
