//! Values of requests, as JSON and forms write them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::transport::ApiError;

/// Whether a value is true; `None` if there is none.
pub(crate) fn boolean(value: Option<&Value>) -> Option<bool> {
    Some(match value? {
        Value::Bool(value) => *value,
        Value::String(text) => is_true_text(text),
        Value::Number(number) => number.as_i64() != Some(0),
        _ => false,
    })
}

/// Whether there is a value that is true.
pub(crate) fn is_true(value: Option<&Value>) -> bool {
    boolean(value).unwrap_or_default()
}

/// Whether Rails reads the text as true.
pub(crate) fn is_true_text(text: &str) -> bool {
    !matches!(
        text,
        "" | "0" | "f" | "F" | "false" | "FALSE" | "off" | "OFF"
    )
}

/// A whole number; at most `max`.
pub(crate) fn number(value: Option<&Value>, default: usize, max: usize) -> Result<usize, ApiError> {
    let parsed = match value {
        None | Some(Value::Null) => return Ok(default),
        Some(Value::String(text)) if text.is_empty() => return Ok(default),
        Some(Value::String(text)) => text.parse::<u64>().ok(),
        Some(value) => value.as_u64(),
    };
    let parsed = parsed.ok_or_else(|| {
        ApiError::BadParameter("limit and offset have to be whole numbers".to_owned())
    })?;
    Ok(usize::try_from(parsed).unwrap_or(max).min(max))
}

/// A text; JSON may write an ID as a number.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The texts of a list, or the one of a value that is no list.
pub(crate) fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(values)) => values.iter().filter_map(text).collect(),
        value => value.and_then(text).into_iter().collect(),
    }
}

/// The rows of a parameter: in JSON the objects of a list, or the values of an object, as Rails reads it too; in forms
/// `name[0][field]` or `name[][field]`.
pub(crate) fn rows(params: &Map<String, Value>, name: &str) -> Vec<Map<String, Value>> {
    let nested = |all: Vec<&Value>| {
        let objects = all.into_iter().filter_map(Value::as_object);
        objects.cloned().collect()
    };
    match params.get(name) {
        Some(Value::Array(all)) => nested(all.iter().collect()),
        Some(Value::Object(all)) => nested(all.values().collect()),
        _ => rows_of_form(params, name),
    }
}

fn rows_of_form(params: &Map<String, Value>, name: &str) -> Vec<Map<String, Value>> {
    let mut all: BTreeMap<(i64, &str), Map<String, Value>> = BTreeMap::new();
    for (param, value) in params {
        let parts = param.strip_prefix(name).and_then(|rest| {
            let rest = rest.strip_prefix('[')?.strip_suffix(']')?;
            rest.split_once("][")
        });
        match (parts, value) {
            // Without numbers the values of a field are in the order of their rows.
            (Some(("", field)), Value::Array(values)) => {
                for (at, value) in (0..).zip(values) {
                    let row = all.entry((at, "")).or_default();
                    row.insert(field.to_owned(), value.clone());
                }
            }
            (Some((index, field)), value) => {
                let number = index
                    .parse()
                    .unwrap_or(if index.is_empty() { 0 } else { i64::MAX });
                let row = all.entry((number, index)).or_default();
                row.insert(field.to_owned(), value.clone());
            }
            (None, _) => {}
        }
    }
    all.into_values().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_form(params: Value) -> Value {
        let Value::Object(params) = params else {
            panic!("no object")
        };
        json!(rows(&params, "f"))
    }

    #[test]
    fn rows_of_forms_keep_apart() {
        let numbered = json!({"f[10][n]": "c", "f[2][n]": "a", "f[2][v]": 1});
        assert_eq!(of_form(numbered), json!([{"n": "a", "v": 1}, {"n": "c"}]));
        let named = json!({"f[b][n]": "b", "f[a][n]": "a", "f[-1][n]": "z"});
        assert_eq!(of_form(named), json!([{"n": "z"}, {"n": "a"}, {"n": "b"}]));
        let in_order = json!({"f[][n]": ["a", "b"], "f[][v]": ["x", "y"]});
        assert_eq!(
            of_form(in_order),
            json!([{"n": "a", "v": "x"}, {"n": "b", "v": "y"}])
        );
        assert_eq!(
            of_form(json!({"f[0][n]": ["a", "b"]})),
            json!([{"n": ["a", "b"]}])
        );
    }
}
