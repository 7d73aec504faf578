//! The OpenAPI description: what is served, and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::PathBuf,
};

use driftline_api::router;
use driftline_db::testing::Fresh;
use driftline_mirror::SourceHealth;
use driftline_server::{api_description, testing::app};
use driftline_store::testing;
use reqwest::StatusCode;
use serde_json::Value;

use crate::world::World;

const COMMAND: &str =
    "DRIFTLINE_WRITE_DOCS=1 cargo test -p driftline-server --test http description";

fn description() -> Value {
    serde_json::to_value(api_description()).unwrap()
}

/// Each operation with its path and its method.
fn operations(description: &Value) -> Vec<(&String, &String, &Value)> {
    let paths = description["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, item)| {
            let item = item.as_object().unwrap().iter();
            item.map(move |(method, operation)| (path, method, operation))
        })
        .collect()
}

#[test]
fn the_description_is_the_one_in_the_documents() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let written = serde_json::to_string_pretty(&description()).unwrap() + "\n";
    if env::var_os("DRIFTLINE_WRITE_DOCS").is_some() {
        fs::write(&path, &written).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == written,
        "docs/openapi.json is not current; write it with\n{COMMAND}"
    );
}

/// The methods and paths that a router serves: axum shows them to developers.
fn served(router: &axum::Router) -> BTreeSet<String> {
    let shown = format!("{router:?}");
    // The fallback has routes of its own.
    let (shown, _) = shown.split_once("fallback_router").unwrap();
    let (mut methods, mut paths) = (BTreeMap::new(), BTreeMap::new());
    for part in shown.split("RouteId(").skip(1) {
        let Some((route, rest)) = part.split_once("): ") else {
            continue;
        };
        if let Some(path) = rest.strip_prefix('"') {
            paths.insert(route, path.split('"').next().unwrap());
        } else if let Some((_, allowed)) = rest.split_once("allow_header: Bytes(b\"") {
            methods.insert(route, allowed.split('"').next().unwrap());
        }
    }
    // `HEAD` is `GET` without its body.
    let of_route = |(route, path): (&&str, &&str)| {
        let methods = methods[route].split(',').filter(|method| *method != "HEAD");
        let routes = methods.map(|method| format!("{method} {path}"));
        routes.collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_route).collect()
}

#[tokio::test]
async fn what_is_served_is_described_and_nothing_else() {
    let fresh = Fresh::sqlite();
    let store = testing::open(&fresh);
    let served = served(&router(app(&store, SourceHealth::default())));
    let description = description();
    let described = operations(&description)
        .into_iter()
        // They are served by a process with an ID service, and made of its own routes.
        .filter(|(path, ..)| !path.starts_with("/api/v1/ids"))
        .map(|(path, method, _)| format!("{} {path}", method.to_uppercase()));
    assert_eq!(served, described.collect());
    store.close().await;
}

#[test]
fn every_operation_says_who_may_call_it_and_what_it_is() {
    let description = description();
    let tags: Vec<_> = description["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| &tag["name"])
        .collect();
    let schemes = description["components"]["securitySchemes"]
        .as_object()
        .unwrap();
    for (path, method, operation) in operations(&description) {
        let security = operation["security"].as_array();
        let security = security.unwrap_or_else(|| panic!("{method} {path}: no security"));
        for scheme in security
            .iter()
            .flat_map(|needed| needed.as_object().unwrap().keys())
        {
            assert!(schemes.contains_key(scheme), "{method} {path}: {scheme}");
        }
        assert!(
            operation["summary"].is_string(),
            "{method} {path}: no summary"
        );
        let tag = &operation["tags"][0];
        assert!(tags.contains(&tag), "{method} {path}: the tag {tag}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(!responses.is_empty(), "{method} {path}");
    }
}

#[test]
fn every_reference_leads_to_a_schema() {
    let description = description();
    let mut found = vec![&description];
    while let Some(value) = found.pop() {
        if let Some(reference) = value["$ref"].as_str() {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(description.pointer(pointer).is_some(), "{reference}");
        }
        match value {
            Value::Array(items) => found.extend(items),
            Value::Object(members) => found.extend(members.values()),
            _ => {}
        }
    }
}

#[test]
fn ids_have_a_type_for_each_entity() {
    let description = description();
    let of = |entity: &str, member: &str| {
        let member = &description["components"]["schemas"][entity]["properties"][member];
        member.to_string()
    };
    for (entity, member, id) in [
        ("Status", "id", "StatusId"),
        ("Status", "in_reply_to_id", "StatusId"),
        ("Status", "in_reply_to_account_id", "AccountId"),
        ("Account", "id", "AccountId"),
        ("Mention", "id", "AccountId"),
        ("List", "id", "ListId"),
        ("Application", "id", "ApplicationId"),
        ("DeviceJson", "id", "DeviceId"),
    ] {
        assert!(
            of(entity, member).contains(&format!("schemas/{id}\"")),
            "{entity}.{member}"
        );
    }
    for (path, method, operation) in operations(&description) {
        if !path.contains("{id}") || path.starts_with("/api/v1/ids") {
            continue;
        }
        let parameters = operation["parameters"].as_array().unwrap();
        let id = parameters
            .iter()
            .find(|parameter| parameter["name"] == "id");
        let schema = id.unwrap()["schema"].to_string();
        assert!(schema.contains("Id\""), "{method} {path}: {schema}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_served_as_json_and_as_a_page() {
    let world = World::new().await;
    let answer = world.answer("/api/openapi.json").await;
    let served: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(served, description());
    let answer = world.answer("/api/docs").await;
    assert_eq!(answer.status(), StatusCode::OK);
    let policy = answer.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let page = answer.text().await.unwrap();
    for (path, ..) in operations(&served) {
        assert!(page.contains(&**path), "{path}");
    }
    world.close().await;
}
