//! The operations of the description, and requests that are made of it.

use std::collections::BTreeMap;

use driftline_server::api_description;
use reqwest::Method;
use serde_json::{Value, json};

/// An operation of the description.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: String,
    parameters: Vec<Value>,
    /// The schema of its body.
    body: Option<Value>,
    /// Whether its body is JSON: otherwise it is a form.
    pub(super) is_json: bool,
    /// The alternatives: each with its schemes, and their scopes.
    security: Vec<BTreeMap<String, Vec<String>>>,
}

/// All operations of a server without an ID service.
pub(super) fn operations(description: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        if path.starts_with("/api/v1/ids") {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            let content = &operation["requestBody"]["content"];
            let json = &content["application/json"];
            let form = &content["application/x-www-form-urlencoded"];
            let body = [json, form].into_iter().find(|body| body.is_object());
            found.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                parameters: operation["parameters"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default(),
                body: body.map(|body| body["schema"].clone()),
                is_json: json.is_object(),
                security: serde_json::from_value(operation["security"].clone()).unwrap(),
            });
        }
    }
    assert!(found.len() > 40, "{}", found.len());
    found
}

pub(super) fn description() -> Value {
    serde_json::to_value(api_description()).unwrap()
}

impl Operation {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// Whether nothing reads a token there.
    pub(super) fn reads_no_token(&self) -> bool {
        self.security.iter().all(BTreeMap::is_empty)
    }

    /// Whether it is for anyone.
    pub(super) fn is_for_anyone(&self) -> bool {
        self.security.iter().any(BTreeMap::is_empty)
    }

    /// Whether it may be called with a scheme alone.
    pub(super) fn takes(&self, scheme: &str) -> bool {
        self.security
            .iter()
            .any(|needed| needed.len() == 1 && needed.contains_key(scheme))
    }

    /// Whether a scheme is needed, alone or with others.
    pub(super) fn names(&self, scheme: &str) -> bool {
        let mut all = self.security.iter();
        all.any(|needed| needed.contains_key(scheme))
    }

    /// The scopes that a scheme needs.
    pub(super) fn scopes(&self, scheme: &str) -> &[String] {
        let mut all = self.security.iter();
        all.find_map(|needed| needed.get(scheme))
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// Whether it is asked for an object by its ID.
    pub(super) fn names_an_object(&self) -> bool {
        self.parameters.iter().any(|parameter| {
            let is_needed = parameter["in"] == "path" || parameter["required"] == true;
            is_needed && is_id(&parameter["schema"])
        })
    }

    /// Its address, with what is required. IDs are that one.
    pub(super) fn address(&self, description: &Value, id: &str) -> String {
        let mut path = self.path.clone();
        let mut query = Vec::new();
        for parameter in &self.parameters {
            let name = parameter["name"].as_str().unwrap();
            let given = parameter.get("example").cloned();
            let value = given.unwrap_or_else(|| sample(description, &parameter["schema"], id));
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&format!("{{{name}}}"), &value),
                Some("query") if parameter["required"] == true => {
                    query.push(format!("{name}={value}"));
                }
                _ => {}
            }
        }
        match query.is_empty() {
            true => path,
            false => format!("{path}?{}", query.join("&")),
        }
    }

    /// A body with what is required.
    pub(super) fn sample(&self, description: &Value, id: &str) -> Option<Value> {
        let schema = self.body.as_ref()?;
        Some(sample(description, schema, id))
    }

    /// A body as it is sent, with its content type.
    pub(super) fn encoded(&self, body: &Value) -> (&'static str, String) {
        if self.is_json {
            return ("application/json", body.to_string());
        }
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let fields = body.as_object().into_iter().flatten();
        let fields: Vec<(&str, String)> =
            fields.map(|(name, value)| (&**name, text(value))).collect();
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let form = crate::people::form(&fields);
        ("application/x-www-form-urlencoded", form)
    }
}

fn is_id(schema: &Value) -> bool {
    let reference = schema["$ref"].as_str();
    reference.is_some_and(|reference| reference.ends_with("Id"))
}

/// A value of a schema, with what is required. IDs are that one.
fn sample(description: &Value, schema: &Value, id: &str) -> Value {
    if is_id(schema) {
        return json!(id);
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return sample(
            description,
            description.pointer(&reference[1..]).unwrap(),
            id,
        );
    }
    for made in ["example", "default"] {
        if let Some(value) = schema.get(made) {
            return value.clone();
        }
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(last) = schema[several].as_array().and_then(|all| all.last()) {
            return sample(description, last, id);
        }
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    match kinds.first().and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(description, &schema["items"], id)]),
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let member = |name: &Value| {
                let name = name.as_str().unwrap().to_owned();
                let value = sample(description, &schema["properties"][&name], id);
                (name, value)
            };
            required.iter().map(member).collect()
        }
        _ => json!("1"),
    }
}
