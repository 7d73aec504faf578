//! The OpenAPI description: what is served, and nothing else.

use std::{env, fs, path::PathBuf};

use driftline_server::api_description;
use reqwest::StatusCode;
use serde_json::Value;

use crate::world::World;

const COMMAND: &str = "DRIFTLINE_WRITE_DOCS=1 cargo test -p driftline-server --test http description";

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

fn source(folder: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.clone(), fs::read_to_string(path).unwrap())),
            }
        }
    }
    files
}

#[test]
fn the_description_is_the_one_in_the_documents() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let written = serde_json::to_string_pretty(&description()).unwrap() + "\n";
    if env::var_os("DRIFTLINE_WRITE_DOCS").is_some() {
        fs::write(&path, &written).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(known == written, "docs/openapi.json is not current; write it with\n{COMMAND}");
}

/// `transport::Routes` adds a route with its description. So there is no other way, if nothing else adds
/// one.
#[test]
fn no_route_is_added_without_its_description() {
    for (path, text) in source("../api/src") {
        let is_that_way = path.ends_with("transport/routes.rs");
        let is_guard = path.ends_with("auth/authorization.rs");
        for call in [".route(", ".route_service(", ".nest(", ".nest_service(", ".fallback_service("] {
            let adds = text.contains(call) && !is_that_way;
            assert!(!adds || is_guard, "{}: {call}", path.display());
        }
    }
}

#[test]
fn every_operation_says_who_may_call_it_and_what_it_is() {
    let description = description();
    let tags: Vec<_> = description["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let schemes = description["components"]["securitySchemes"].as_object().unwrap();
    for (path, method, operation) in operations(&description) {
        let security = operation["security"].as_array();
        let security = security.unwrap_or_else(|| panic!("{method} {path}: no security"));
        for scheme in security.iter().flat_map(|needed| needed.as_object().unwrap().keys()) {
            assert!(schemes.contains_key(scheme), "{method} {path}: {scheme}");
        }
        assert!(operation["summary"].is_string(), "{method} {path}: no summary");
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
        ("Server", "id", "ServerId"),
    ] {
        assert!(of(entity, member).contains(&format!("schemas/{id}\"")), "{entity}.{member}");
    }
    for (path, method, operation) in operations(&description) {
        if !path.contains("{id}") || path.starts_with("/api/v1/ids") {
            continue;
        }
        let schema = operation["parameters"][0]["schema"].to_string();
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
    let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    let page = answer.text().await.unwrap();
    for (path, ..) in operations(&served) {
        assert!(page.contains(&**path), "{path}");
    }
    world.close().await;
}
