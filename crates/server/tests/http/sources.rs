//! Accounts' own sources over HTTP.

use std::sync::Arc;

use driftline_api::App;
use driftline_core::names::audience::Audience;
use driftline_mirror::{Policies, Secrets, SourceHealth, UpstreamAccess};
use driftline_net::testing::http_client;
use driftline_runtime::StoreDisk;
use driftline_server::{LocalMirror, admin::Host};
use driftline_sim::{
    WorldConfig,
    http::{Clock, SimServer},
};
use driftline_store::{
    Tx, credential, local_ids,
    social::local_account,
    source::{self, NewSource},
    testing,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{OOB, people_world},
    world::{START_MS, World, parsed},
};

const PATH: &str = "/api/driftline/v1/sources";
const ALL: &str = "read write follow driftline:sources driftline:publish";

/// A server whose accounts may each have two sources, also on this machine if so said.
async fn world(reaches_private: bool) -> (World, tempfile::TempDir) {
    let keys = tempfile::tempdir().unwrap();
    let key = keys.path().join("credentials.key");
    let change = |app: &mut App| {
        let access = UpstreamAccess {
            accounts_reach_private: reaches_private,
            secrets: Secrets::new(key),
            ..UpstreamAccess::new(&app.store, http_client())
        };
        app.mirror = Arc::new(LocalMirror {
            store: app.store.clone(),
            host: Host {
                access: Some(access),
                sources_per_account: 2,
                ..Host::of(&app.store)
            },
            policies: Policies::default(),
            sources: SourceHealth::default(),
            store_disk: StoreDisk::default(),
            threads: None,
        });
    };
    let (world, _) = people_world(change).await;
    (world, keys)
}

async fn send(
    world: &World,
    method: Method,
    path: &str,
    token: &str,
    body: Option<&Value>,
) -> (StatusCode, Value) {
    let request = world
        .client
        .request(method, format!("{}{path}", world.base));
    let mut request = request.bearer_auth(token);
    if let Some(body) = body {
        request = request
            .header("content-type", "application/json")
            .body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    let status = answer.status();
    match status {
        StatusCode::NO_CONTENT => (status, Value::Null),
        _ => (status, parsed(answer).await),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_add_see_change_and_remove_their_own_sources_alone() {
    let sim = SimServer::start(WorldConfig::punctual(2.0), 1, Clock::Real)
        .await
        .unwrap();
    let (world, _keys) = world(true).await;
    let app = world.app("toot", OOB, ALL).await;
    let mut tokens = Vec::new();
    for name in ["ann", "bob"] {
        world.account(name).await;
        tokens.push(
            world
                .token(&app, name, "read:lists driftline:sources driftline:publish")
                .await,
        );
    }
    let [ann, bob] = &tokens[..] else { panic!() };
    let new = json!({ "url": sim.url(), "timeline": "home", "token": "driftline", "name": "mine" });
    let mut ids = Vec::new();
    for token in &tokens {
        let (status, added) = send(&world, Method::POST, PATH, token, Some(&new)).await;
        assert_eq!(status, StatusCode::OK, "{added}");
        assert_eq!(
            (&added["name"], &added["audience"]),
            (&json!("mine"), &json!("private"))
        );
        assert!(!added.to_string().contains("driftline"), "{added}");
        ids.push(added["id"].as_str().unwrap().to_owned());
    }
    let kept = world.store.read(source::list).await.unwrap();
    for source in &kept {
        let id = source.id.to_string();
        assert!(!ids.contains(&id), "{ids:?} count everybody's sources");
    }
    // The token is sealed, and its account's.
    let locations = format!("{:?}", kept.iter().map(|of| &of.token).collect::<Vec<_>>());
    assert!(
        locations.contains("Sealed") && !locations.contains("driftline"),
        "{locations}"
    );

    let own = format!("{PATH}/{}", ids[0]);
    for (method, body) in [
        (Method::GET, None),
        (Method::PATCH, Some(json!({ "audience": "public" }))),
        (Method::DELETE, None),
    ] {
        let (status, answer) = send(&world, method.clone(), &own, bob, body.as_ref()).await;
        let unknown = send(&world, method, &format!("{PATH}/1"), bob, body.as_ref()).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
        assert_eq!((status, answer), unknown, "as if there were none");
    }
    let (_, all) = send(&world, Method::GET, PATH, ann, None).await;
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");

    let change = json!({ "audience": "members", "paused": true, "name": "other" });
    let (status, changed) = send(&world, Method::PATCH, &own, ann, Some(&change)).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    assert_eq!(
        (&changed["audience"], &changed["paused"], &changed["name"]),
        (&json!("members"), &json!(true), &json!("other"))
    );
    // Another's shared source is not one's own.
    let (_, all) = send(&world, Method::GET, PATH, bob, None).await;
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");

    let two = json!({ "url": sim.url(), "timeline": "public", "name": "two" });
    assert_eq!(
        send(&world, Method::POST, PATH, ann, Some(&two)).await.0,
        StatusCode::OK
    );
    let three = json!({ "url": sim.url(), "timeline": "public", "name": "three" });
    let (status, refused) = send(&world, Method::POST, PATH, ann, Some(&three)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("2 of its own sources"),
        "{refused}"
    );

    let removed = send(&world, Method::DELETE, &own, ann, None).await;
    assert_eq!(removed.0, StatusCode::NO_CONTENT);
    assert_eq!(
        send(&world, Method::GET, &own, ann, None).await.0,
        StatusCode::NOT_FOUND
    );
    let left = world.store.read(credential::list).await.unwrap();
    let of_tokens: Vec<_> = left.iter().filter(|of| of.token.is_some()).collect();
    assert!(
        of_tokens.iter().all(|of| of.name.starts_with("bob/")),
        "{of_tokens:?}"
    );
    world.close().await;
}

/// Who tries one API of a server after the other learns nothing of what others read there.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_read_changes_no_refusal() {
    let sim = SimServer::start(WorldConfig::punctual(2.0), 1, Clock::Real)
        .await
        .unwrap();
    let (world, _keys) = world(true).await;
    world.account("ann").await;
    let app = world.app("toot", OOB, ALL).await;
    let ann = world.token(&app, "ann", "driftline:sources").await;
    let new = json!({ "url": sim.url(), "timeline": "home", "kind": "twitter", "token": "t" });
    let before = send(&world, Method::POST, PATH, &ann, Some(&new)).await;
    assert_eq!(before.0, StatusCode::UNPROCESSABLE_ENTITY, "{before:?}");
    let others = NewSource {
        origin: sim.url(),
        upstream: sim.url(),
        audience: Audience::Private,
        ..testing::new_source("others")
    };
    let add = move |tx: &mut Tx<'_>| source::add(tx, &others, START_MS);
    let added = world.store.write(local_ids::root(), add).await.unwrap();
    assert!(added.is_ok(), "{added:?}");
    let after = send(&world, Method::POST, PATH, &ann, Some(&new)).await;
    assert_eq!(after, before);
    world.close().await;
}

/// To show a source to the world takes the operator's permission and a scope that apps of Mastodon do not ask for.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_published_by_permission_and_scope() {
    let sim = SimServer::start(WorldConfig::punctual(2.0), 1, Clock::Real)
        .await
        .unwrap();
    let (world, _keys) = world(true).await;
    let ann = world.account("ann").await;
    let app = world.app("toot", OOB, ALL).await;
    let sources = world.token(&app, "ann", "driftline:sources").await;
    let publishes = world
        .token(&app, "ann", "driftline:sources driftline:publish")
        .await;
    let new = |name: &str, audience: &str| json!({ "url": sim.url(), "timeline": "public", "name": name, "audience": audience });
    let publish = json!({ "audience": "public" });
    let (_, added) = send(
        &world,
        Method::POST,
        PATH,
        &sources,
        Some(&new("one", "members")),
    )
    .await;
    let one = format!("{PATH}/{}", added["id"].as_str().unwrap());
    let tries = [
        (Method::POST, PATH, new("two", "public")),
        (Method::PATCH, one.as_str(), publish.clone()),
    ];
    for may_publish in [false, true] {
        let set = move |tx: &mut Tx<'_>| local_account::set_may_publish(tx, ann, may_publish);
        let root = local_account::root(ann);
        world.store.write(root, set).await.unwrap();
        for (method, path, body) in &tries {
            let send =
                async |token: &str| send(&world, method.clone(), path, token, Some(body)).await;
            let (status, answer) = send(&sources).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{method}: {answer}");
            let (status, answer) = send(&publishes).await;
            match may_publish {
                true => assert_eq!(answer["audience"], "public", "{method} {status}"),
                false => {
                    assert_eq!(status, StatusCode::BAD_REQUEST, "{method}: {answer}");
                    let said = answer["error"].as_str().unwrap();
                    assert!(said.contains("account publish"), "{said}");
                }
            }
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_needs_its_scope_and_reaches_no_private_network() {
    let (world, _keys) = world(false).await;
    world.account("ann").await;
    let app = world.app("toot", OOB, ALL).await;
    let reads = world.token(&app, "ann", "read:lists").await;
    let writes = world.token(&app, "ann", "driftline:sources").await;
    let others = world
        .token(&app, "ann", "read:statuses write follow driftline:publish")
        .await;
    let new = json!({ "url": "https://a.example", "timeline": "public" });
    for (method, path, token) in [
        (Method::POST, PATH, &reads),
        (Method::GET, PATH, &writes),
        (Method::GET, PATH, &others),
        (Method::DELETE, "/api/driftline/v1/sources/1", &reads),
        (Method::PATCH, "/api/driftline/v1/sources/1", &others),
    ] {
        let (status, answer) = send(&world, method.clone(), path, token, Some(&new)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}: {answer}");
    }
    let sim = SimServer::start(WorldConfig::punctual(2.0), 1, Clock::Real)
        .await
        .unwrap();
    let before = sim.traffic();
    for url in [
        &*sim.url(),
        "http://localhost:1",
        "http://10.0.0.1",
        "http://[::1]:80",
        "http://169.254.169.254",
    ] {
        let new = json!({ "url": url, "timeline": "public" });
        let (status, answer) = send(&world, Method::POST, PATH, &writes, Some(&new)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{url}: {answer}");
        assert!(!answer.to_string().contains("root:"), "{answer}");
    }
    // A private address, and a name without one, are the same to whoever tries them.
    let mut refusals = Vec::new();
    for url in [
        "http://localhost:1",
        "http://nowhere.invalid",
        "http://10.0.0.1",
    ] {
        for timeline in ["public", "account:someone"] {
            let new = json!({ "url": url, "timeline": timeline });
            let (status, answer) = send(&world, Method::POST, PATH, &writes, Some(&new)).await;
            let said = answer["error"].as_str().unwrap().replace(url, "it");
            assert!(said.starts_with("it cannot be reached from here"), "{said}");
            refusals.push((timeline, status, said));
        }
    }
    for refusal in &refusals[2..] {
        assert!(refusals[..2].contains(refusal), "{refusal:?}");
    }
    for body in [
        json!({ "url": "file:///etc/passwd", "timeline": "public" }),
        json!({ "url": "http://169.254.169.254/latest", "timeline": "public" }),
        json!({ "url": sim.url(), "timeline": "public", "allow_private": true }),
        json!({ "url": sim.url() }),
        json!([]),
    ] {
        let (status, answer) = send(&world, Method::POST, PATH, &writes, Some(&body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    }
    assert_eq!(sim.traffic(), before, "nothing was asked");
    assert!(world.store.read(source::list).await.unwrap().is_empty());
    world.close().await;
}
