//! Every route that is described, tried as everybody: what a caller may not do is refused, and nobody is told of
//! what is another's. The attacks are made of the description, so a new route is attacked without being named here.

mod bodies;
mod callers;
mod forms;
mod operation;
mod outage;

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use self::{
    callers::{Caller, Expected, SECRET, SOURCE, Scene},
    operation::{Operation, description, operations},
};
use crate::world::{TOKEN, World};

/// IDs of nothing.
const UNKNOWN: [&str; 2] = ["77", "0"];

/// Asks for what has an ID, and names another in the body.
async fn send(
    world: &World,
    caller: &Caller,
    description: &Value,
    operation: &Operation,
    (id, named): (&str, &str),
) -> Response {
    let address = operation.address(description, id);
    let request = world
        .client
        .request(operation.method.clone(), format!("{}{address}", world.base));
    let request = match operation.sample(description, named) {
        Some(body) => {
            let (kind, body) = operation.encoded(&body);
            request.header("content-type", kind).body(body)
        }
        None => request,
    };
    caller.sends(request).send().await.unwrap()
}

/// The status and the body of an answer that ends.
async fn read(answer: Response) -> (StatusCode, String) {
    let kind = answer.headers().get("content-type");
    let streams = kind.is_some_and(|kind| kind == "text/event-stream");
    let status = answer.status();
    match streams {
        true => (status, String::new()),
        false => (
            status,
            String::from_utf8_lossy(&answer.bytes().await.unwrap()).into_owned(),
        ),
    }
}

/// Attacks an operation that may change what is there, in a world of its own.
async fn attack_alone(description: &Value, operation: &Operation) -> (usize, usize) {
    let scene = Scene::new().await;
    let counts = attack(&scene, description, operation).await;
    scene.world.close().await;
    counts
}

/// How many requests were refused, and how many not.
async fn attack(scene: &Scene, description: &Value, operation: &Operation) -> (usize, usize) {
    let ids = scene.public.iter().chain(&scene.anns);
    let ids: Vec<&str> = ids.map(String::as_str).chain(UNKNOWN).collect();
    let (mut refused, mut served) = (0, 0);
    for caller in &scene.callers {
        let what = format!("{} as {}", operation.name(), caller.name);
        let expected = caller.expects(operation);
        // All that a refused caller learns: it must not depend on what exists.
        let mut learned = BTreeSet::new();
        let mut of_nothing = BTreeSet::new();
        let mut of_anns = BTreeSet::new();
        let mut sent = BTreeSet::new();
        for id in &ids {
            let body = operation.sample(description, id);
            // Some operations have no ID anywhere.
            if !sent.insert(format!("{} {body:?}", operation.address(description, id))) {
                continue;
            }
            let (status, body) =
                read(send(&scene.world, caller, description, operation, (id, id)).await).await;
            assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{what}");
            assert!(!status.is_server_error(), "{what}: {status} {body}");
            assert!(
                [SECRET, TOKEN, SOURCE]
                    .iter()
                    .all(|secret| !body.contains(secret)),
                "{what}: {body}"
            );
            // Not so of small numbers, which mean much.
            let hidden = scene.anns.iter().filter(|hidden| hidden.len() > 8);
            for hidden in hidden.filter(|hidden| hidden != id) {
                assert!(!body.contains(&**hidden), "{what}: {hidden} in {body}");
            }
            if UNKNOWN[..1].contains(id) {
                of_nothing.insert((status, body.clone()));
            } else if scene.anns.iter().any(|anns| anns == id) {
                of_anns.insert((status, body.clone()));
            }
            match &expected {
                Expected::Refused(with) => {
                    assert!(with.contains(&status.as_u16()), "{what}: {status} {body}");
                    learned.insert((status, without_form_token(body)));
                    refused += 1;
                }
                Expected::Served => {
                    // What is sent to it may be a passphrase, which is wrong.
                    let checks_body = operation.reads_no_token() && operation.has_body();
                    let is_refusal = matches!(status.as_u16(), 401 | 403);
                    assert!(!is_refusal || checks_body, "{what}: {status} {body}");
                    served += 1;
                }
            }
        }
        assert!(learned.len() <= 1, "{what}: {learned:?}");
        // What is Ann's alone is as if it were not there.
        if operation.names_an_object() {
            assert_eq!(of_anns, of_nothing, "{what}");
        }
    }
    check_scopes(scene, description, operation).await;
    (refused, served)
}

/// The scopes that an operation names are enough, and others are not.
async fn check_scopes(scene: &Scene, description: &Value, operation: &Operation) {
    let needed = operation.scopes("account");
    let Some(first) = needed.first() else {
        return;
    };
    let others = match first.split(':').next() {
        Some("read") => "write push",
        Some("write") => "read push",
        _ => "read write push",
    };
    for (scopes, is_enough) in [(&*needed.join(" "), true), (others, false)] {
        let caller = scene.with_scopes(scopes).await;
        let id = (&*scene.public[0], UNKNOWN[0]);
        let answer = send(&scene.world, &caller, description, operation, id).await;
        let (status, body) = read(answer).await;
        let what = format!("{} with {scopes}", operation.name());
        let is_allowed = status != StatusCode::FORBIDDEN;
        assert_eq!(is_allowed, is_enough, "{what}: {status} {body}");
    }
}

/// A page with a form has another token for each new browser.
fn without_form_token(body: String) -> String {
    match body.split_once("name=\"form_token\" value=\"") {
        Some((before, after)) => format!("{before}{}", after.split_once('"').unwrap().1),
        None => body,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_refuses_all_but_whom_it_names_and_tells_nobody_of_what_is_anothers() {
    let description = description();
    let operations = operations(&description);
    let (reads, writes): (Vec<_>, Vec<_>) = operations
        .iter()
        .partition(|operation| operation.method == Method::GET);
    // What one changes is not there for another.
    let attacks = writes
        .into_iter()
        .map(|operation| attack_alone(&description, operation));
    let mut all: Vec<_> = stream::iter(attacks).buffer_unordered(4).collect().await;
    let scene = Scene::new().await;
    for operation in reads {
        all.push(attack(&scene, &description, operation).await);
    }
    scene.world.close().await;
    let (refused, served) = all
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(refused > 500 && served > 300, "{refused} {served}");
}

/// The attacks above find nothing of Ann's. She does, so it is there.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_else_finds_is_there_for_its_owner() {
    let scene = Scene::new().await;
    let path = format!("/api/v1/statuses/{}", scene.anns[0]);
    let answer = scene.world.get_with(&path, &scene.ann).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.text().await.unwrap().contains(SECRET));
    for path in [
        format!("/api/driftline/v1/sources/{}", scene.anns[1]),
        format!("/api/v1/lists/{}", scene.kept.list),
        format!("/api/v2/filters/{}", scene.kept.filter),
        format!("/api/v2/filters/keywords/{}", scene.kept.keyword),
        format!("/api/v1/filters/{}", scene.kept.keyword),
    ] {
        let answer = scene.world.get_with(&path, &scene.ann).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        assert!(answer.text().await.unwrap().contains(SOURCE), "{path}");
    }
    let path = format!("/api/v2/filters/statuses/{}", scene.kept.filtered);
    let answer = scene.world.get_with(&path, &scene.ann).await;
    let answer = answer.text().await.unwrap();
    assert!(answer.contains(&scene.anns[0]), "{answer}");
    scene.world.close().await;
}

/// Into what is one's own comes nothing that is another's.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_ones_own_takes_in_nothing_of_anothers() {
    let description = description();
    let mut taken_in = 0;
    for operation in operations(&description) {
        let body = |id| operation.sample(&description, id);
        if !operation.names_an_object() || body("1") == body("2") {
            continue;
        }
        let scene = Scene::new().await;
        let caller = scene.callers.last().unwrap();
        for own in scene.others.ids() {
            let tries = async |named: &str| {
                let (status, body) =
                    read(send(&scene.world, caller, &description, &operation, (own, named)).await)
                        .await;
                (status, body.replace(named, ""))
            };
            let of_nothing = tries(UNKNOWN[0]).await;
            for named in &scene.anns {
                let answer = tries(named).await;
                assert_eq!(answer, of_nothing, "{}", operation.name());
                taken_in += 1;
            }
        }
        scene.world.close().await;
    }
    assert!(taken_in > 60, "{taken_in}");

    // A keyword is changed with its filter.
    let scene = Scene::new().await;
    let caller = scene.callers.last().unwrap();
    let path = format!(
        "{}/api/v2/filters/{}",
        scene.world.base, scene.others.filter
    );
    let mut answers = BTreeSet::new();
    for keyword in [UNKNOWN[0], &scene.kept.keyword] {
        let attributes = json!({ "id": keyword, "keyword": "taken" });
        let body = json!({ "keywords_attributes": [attributes] }).to_string();
        let request = scene.world.client.put(&path).body(body);
        let request = request.header("content-type", "application/json");
        answers.insert(read(caller.sends(request).send().await.unwrap()).await);
    }
    assert!(answers.len() == 1, "{answers:?}");
    assert_eq!(answers.first().unwrap().0, StatusCode::NOT_FOUND);
    scene.world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_are_not_described_are_refused_to_everybody() {
    let description = description();
    let scene = Scene::new().await;
    let operations = operations(&description);
    for operation in &operations {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let is_described = operations
                .iter()
                .any(|other| other.path == operation.path && other.method == method);
            if is_described {
                continue;
            }
            for caller in &scene.callers {
                let address = operation.address(&description, "1");
                let address = format!("{}{address}", scene.world.base);
                let request = scene.world.client.request(method.clone(), address);
                let answer = caller.sends(request).send().await.unwrap();
                let what = format!("{method} {} as {}", operation.path, caller.name);
                let status = answer.status().as_u16();
                assert_eq!(status, 405, "{what}");
            }
        }
    }
    scene.world.close().await;
}
