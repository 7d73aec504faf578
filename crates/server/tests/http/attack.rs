//! Every route that is described, tried as everybody: what a caller may not do is refused, whoever
//! forgot to think of it. A new route is attacked without being named here.

use std::collections::BTreeSet;

use driftline_api::auth::{Authorization, OperatorToken};
use driftline_db::testing::Fresh;
use driftline_server::api_description;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::world::{World, status};

const TOKEN: &str = "an-operators-token-of-some-length-1";

/// Somebody who sends requests.
struct Caller {
    name: &'static str,
    /// The value of `Authorization`.
    authorization: Option<String>,
    /// The security schemes that it satisfies, with the scopes of each.
    holds: Vec<(&'static str, &'static [&'static str])>,
}

/// All who are tried. Another kind of caller is a row.
fn callers() -> Vec<Caller> {
    let stranger = |name, authorization: Option<&str>| Caller {
        name,
        authorization: authorization.map(str::to_owned),
        holds: Vec::new(),
    };
    vec![
        stranger("nobody", None),
        stranger("an invalid token", Some("Bearer an-operators-token-of-some-length-2")),
        stranger("an empty token", Some("Bearer ")),
        stranger("a beginning of the token", Some(&format!("Bearer {}", &TOKEN[..34]))),
        stranger("the token in another scheme", Some(&format!("Basic {TOKEN}"))),
        Caller {
            name: "the operator",
            authorization: Some(format!("Bearer {TOKEN}")),
            holds: vec![("operator", &[])],
        },
    ]
}

impl Caller {
    /// Whether it satisfies one of the alternatives.
    fn may(&self, operation: &Operation) -> bool {
        let holds = |(scheme, scopes): (&String, &Value)| {
            let held = self.holds.iter().find(|(held, _)| held == scheme);
            held.is_some_and(|(_, held)| {
                let scopes = scopes.as_array().unwrap().iter();
                scopes.clone().all(|scope| held.contains(&scope.as_str().unwrap()))
            })
        };
        let mut alternatives = operation.security.iter();
        alternatives.any(|needed| needed.as_object().unwrap().iter().all(holds))
    }

    fn sends(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.authorization {
            Some(value) => request.header("authorization", value),
            None => request,
        }
    }
}

/// An operation of the description.
struct Operation {
    method: Method,
    path: String,
    parameters: Vec<Value>,
    body: Option<Value>,
    security: Vec<Value>,
}

/// All operations of a server.
fn operations(description: &Value) -> Vec<Operation> {
    let mut found = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let list = |name: &str| operation[name].as_array().cloned().unwrap_or_default();
            let content = &operation["requestBody"]["content"]["application/json"];
            found.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                parameters: list("parameters"),
                body: content.get("schema").map(|schema| sample(description, schema)),
                security: list("security"),
            });
        }
    }
    found
}

/// A value of a schema.
fn sample(description: &Value, schema: &Value) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return sample(description, description.pointer(&reference[1..]).unwrap());
    }
    for made in ["example", "default"] {
        if let Some(value) = schema.get(made) {
            return value.clone();
        }
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(first) = schema[several].as_array().and_then(|all| all.last()) {
            return sample(description, first);
        }
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    match kinds.first().and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(description, &schema["items"])]),
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let member = |name: &Value| {
                let name = name.as_str().unwrap().to_owned();
                let value = sample(description, &schema["properties"][&name]);
                (name, value)
            };
            required.iter().map(member).collect()
        }
        _ => json!("1"),
    }
}

impl Operation {
    /// Its address, with what is required. `id` takes the place of each parameter of the path.
    fn address(&self, description: &Value, id: &str) -> String {
        let mut path = self.path.clone();
        let mut query = Vec::new();
        for parameter in &self.parameters {
            let name = parameter["name"].as_str().unwrap();
            match parameter["in"].as_str() {
                Some("path") => path = path.replace(&format!("{{{name}}}"), id),
                Some("query") if parameter["required"] == true => {
                    let value = sample(description, &parameter["schema"]);
                    let value = value.as_str().map_or(value.to_string(), str::to_owned);
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
}

struct Attack {
    world: World,
    description: Value,
}

impl Attack {
    async fn new() -> (Self, Vec<String>) {
        let token = OperatorToken::new(&TOKEN.to_owned().into()).unwrap();
        let authorization = Authorization::Operator(token);
        let world = World::on(Fresh::sqlite(), |app| app.authorization = authorization).await;
        let mut feed = world.feed("home").await;
        feed.poll(&[status(5)]).await;
        let page = world.page("/api/v1/timelines/public").await;
        let list = feed.path().rsplit('/').next().unwrap().to_owned();
        // What exists, of two kinds, and what does not.
        let ids = vec![
            page[0]["id"].as_str().unwrap().to_owned(),
            list,
            "77".to_owned(),
            "0".to_owned(),
        ];
        // The server of these tests runs no ID service.
        let description = serde_json::to_value(api_description()).unwrap();
        (Self { world, description }, ids)
    }

    async fn send(&self, caller: &Caller, method: &Method, operation: &Operation, id: &str) -> Response {
        let address = operation.address(&self.description, id);
        let address = format!("{}{address}", self.world.base);
        let request = self.world.client.request(method.clone(), address);
        let request = match &operation.body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(body.to_string()),
            None => request,
        };
        caller.sends(request).send().await.unwrap()
    }

    fn operations(&self) -> Vec<Operation> {
        let all = operations(&self.description).into_iter();
        all.filter(|operation| !operation.path.starts_with("/api/v1/ids")).collect()
    }
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_refuses_all_but_whom_it_names() {
    let (attack, ids) = Attack::new().await;
    let (mut refused, mut served) = (0, 0);
    for operation in attack.operations() {
        for caller in callers() {
            let what = format!("{} {} as {}", operation.method, operation.path, caller.name);
            // All that a refused caller learns: it must not depend on what exists.
            let mut learned = BTreeSet::new();
            for id in &ids {
                let answer = attack.send(&caller, &operation.method, &operation, id).await;
                let status = answer.status();
                assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{what}");
                assert!(!status.is_server_error(), "{what}: {status}");
                assert_eq!(is_refusal(status), !caller.may(&operation), "{what}: {status}");
                if !is_refusal(status) {
                    served += 1;
                    continue;
                }
                refused += 1;
                assert!(answer.headers().contains_key("www-authenticate"), "{what}");
                let body = answer.text().await.unwrap();
                let error: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(error.as_object().unwrap().len(), 1, "{what}: {body}");
                assert!(error["error"].is_string(), "{what}: {body}");
                assert!(!body.contains(TOKEN), "{what}: {body}");
                learned.insert((status, body));
            }
            assert!(learned.len() <= 1, "{what}: {learned:?}");
        }
    }
    assert!(refused > 100 && served > 100, "{refused} {served}");
    attack.world.close().await;
}

/// A body that no route expects, and methods that none describes, are no way around.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_described_is_refused_to_everybody() {
    let (attack, _) = Attack::new().await;
    let operations = attack.operations();
    for operation in &operations {
        let described: Vec<&Method> = operations
            .iter()
            .filter(|other| other.path == operation.path)
            .map(|other| &other.method)
            .collect();
        for caller in callers() {
            for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                if described.contains(&&method) {
                    continue;
                }
                let answer = attack.send(&caller, &method, operation, "1").await;
                let what = format!("{method} {} as {}", operation.path, caller.name);
                assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{what}");
            }
            // HEAD is GET without its body.
            if operation.method == Method::GET && !caller.may(operation) {
                let answer = attack.send(&caller, &Method::HEAD, operation, "1").await;
                assert!(is_refusal(answer.status()), "HEAD {}", operation.path);
            }
        }
    }
    attack.world.close().await;
}

/// Answers have what their schemas require.
#[tokio::test(flavor = "multi_thread")]
async fn answers_have_the_members_that_are_described() {
    let (attack, ids) = Attack::new().await;
    let mut checked = 0;
    let callers = callers();
    let operator = callers.last().unwrap();
    for operation in attack.operations() {
        let described = &attack.description["paths"][&operation.path];
        let described = &described[operation.method.as_str().to_lowercase()]["responses"];
        let schema = &described["200"]["content"]["application/json"]["schema"];
        if schema.is_null() || operation.method != Method::GET {
            continue;
        }
        for id in &ids {
            let answer = attack.send(operator, &operation.method, &operation, id).await;
            if answer.status() == StatusCode::OK {
                let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
                check(&attack.description, schema, &body, &operation.path);
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
    attack.world.close().await;
}

fn check(description: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        return check(description, description.pointer(&reference[1..]).unwrap(), value, at);
    }
    if let Some(all) = schema["oneOf"].as_array() {
        return match value {
            Value::Null => assert!(all.iter().any(|one| one["type"] == "null"), "{at}"),
            value => check(description, all.last().unwrap(), value, at),
        };
    }
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" | "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let is_of_type = match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().any(|kind| is(kind.as_str().unwrap())),
        _ => true,
    };
    assert!(is_of_type, "{at}: {value} is not {}", schema["type"]);
    if let Some(items) = value.as_array() {
        for item in items {
            check(description, &schema["items"], item, at);
        }
    }
    for required in schema["required"].as_array().into_iter().flatten() {
        let name = required.as_str().unwrap();
        assert!(value.get(name).is_some(), "{at}: no {name} in {value}");
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            check(description, member, value, &format!("{at}.{name}"));
        }
    }
}
