//! Native tokens: given by a log-in, refreshed once each, ended with their family. Each attack is tried.

use driftline_core::social::AccountState;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{OOB, PASSPHRASE, claims, pass, people_world},
    test_clock,
    world::{START_MS, World, parsed},
};

/// A native token.
pub(crate) async fn log_in(world: &World, who: &str) -> String {
    let body = json!({ "who": who, "passphrase": PASSPHRASE, "device": "phone" });
    let answer = world.post("/api/driftline/v1/log-in", &body).await;
    let status = answer.status();
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let answer = parsed(answer).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["token"].as_str().unwrap().to_owned()
}

async fn refreshed(world: &World, token: &str) -> Result<String, StatusCode> {
    let body = json!({ "token": token });
    let answer = world.post("/api/driftline/v1/refresh", &body).await;
    match answer.status() {
        StatusCode::OK => Ok(parsed(answer).await["token"].as_str().unwrap().to_owned()),
        status => Err(status),
    }
}

async fn works(world: &World, token: &str) -> bool {
    let answer = world.get_with("/api/driftline/v1/devices", token).await;
    match answer.status() {
        StatusCode::OK => true,
        StatusCode::UNAUTHORIZED => false,
        status => panic!("{status}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_gives_tokens_with_the_payloads_of_the_model() {
    let (clock, _) = test_clock!();
    let (world, _) = people_world(|app| app.people.use_clock(clock)).await;
    let ann = world.account("ann").await;
    for who in ["ann", "ANN", "@ann", "ann@mail.example", "Ann@Mail.example"] {
        let token = log_in(&world, who).await;
        let auth = claims(&token);
        assert_eq!(
            (&auth["sub"], &auth["iat"]),
            (&json!("ann"), &json!(START_MS / 1000))
        );
        let refresh = claims(auth["refresh"].as_str().unwrap());
        assert_eq!(refresh["sub"], ann.to_string());
        assert_eq!(refresh["exp"], START_MS / 1000 + 2_592_000);
        assert!(works(&world, &token).await);
        assert!(!works(&world, auth["refresh"].as_str().unwrap()).await);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_unknown_and_what_is_wrong_look_alike() {
    let (world, _) = people_world(|_| {}).await;
    world.account("ann").await;
    let mut answers = Vec::new();
    for (who, passphrase) in [
        ("ann", "wrong"),
        ("ann@mail.example", "wrong"),
        ("nobody", PASSPHRASE),
        ("nobody@mail.example", PASSPHRASE),
        ("", ""),
        ("a b", "x"),
    ] {
        let body = json!({ "who": who, "passphrase": passphrase });
        let answer = world.post("/api/driftline/v1/log-in", &body).await;
        let mut headers = answer.headers().clone();
        headers.remove("date");
        answers.push((answer.status(), headers, parsed(answer).await));
    }
    let error = answers[0].2["error"].as_str().unwrap();
    assert!(error.contains("passphrase"), "{error}");
    assert_eq!(answers[0].0, StatusCode::UNAUTHORIZED);
    assert!(
        answers.windows(2).all(|pair| pair[0] == pair[1]),
        "{answers:?}"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_refresh_token_ends_the_log_in_but_for_a_lost_answer() {
    let (clock, now_ms) = test_clock!();
    let (world, _) = people_world(|app| app.people.use_clock(clock)).await;
    world.account("ann").await;
    let first = log_in(&world, "ann").await;
    let lost = refreshed(&world, &first).await.unwrap();
    let again = refreshed(&world, &first).await.unwrap();
    assert!(works(&world, &again).await && works(&world, &lost).await);
    pass(now_ms, 60_000);
    let later = refreshed(&world, &again).await.unwrap();
    assert!(works(&world, &later).await);
    assert_eq!(
        refreshed(&world, &first).await,
        Err(StatusCode::UNAUTHORIZED)
    );
    assert!(!works(&world, &later).await, "at once");
    assert_eq!(
        refreshed(&world, &later).await,
        Err(StatusCode::UNAUTHORIZED)
    );
    let other = log_in(&world, "ann").await;
    assert!(works(&world, &other).await);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_accounts_tokens_stop_and_go_on_when_it_thaws() {
    let (world, _) = people_world(|_| {}).await;
    let ann = world.account("ann").await;
    let token = log_in(&world, "ann").await;
    world.set_state(ann, AccountState::Frozen).await;
    let refused = world.get_with("/api/driftline/v1/devices", &token).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(refreshed(&world, &token).await, Err(StatusCode::FORBIDDEN));
    let body = json!({ "who": "ann", "passphrase": PASSPHRASE });
    let refused = world.post("/api/driftline/v1/log-in", &body).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    world.set_state(ann, AccountState::Active).await;
    assert!(works(&world, &token).await);
    assert!(refreshed(&world, &token).await.is_ok());
    world.close().await;
}

async fn devices(world: &World, token: &str) -> Vec<Value> {
    let answer = world.get_with("/api/driftline/v1/devices", token).await;
    parsed(answer).await.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_listed_and_revoked_by_their_own_account_alone() {
    let (world, _) = people_world(|_| {}).await;
    let (_, _) = (world.account("ann").await, world.account("ben").await);
    let app = world.app("toot", OOB, "read write").await;
    let (anns, bens) = (log_in(&world, "ann").await, log_in(&world, "ben").await);
    let opaque = world.token(&app, "ann", "read").await;
    let mut browser = world.browser();
    browser.log_in("ann", PASSPHRASE).await;
    let all = devices(&world, &anns).await;
    let mut kinds: Vec<&str> = all
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["app", "browser", "device"]);
    let current: Vec<&Value> = all.iter().filter(|one| one["current"] == true).collect();
    assert_eq!((current.len(), &current[0]["name"]), (1, &json!("phone")));
    assert_eq!(devices(&world, &bens).await.len(), 1);
    let path = |one: &Value| {
        let (kind, id) = (one["kind"].as_str().unwrap(), one["id"].as_str().unwrap());
        format!("{}/api/driftline/v1/devices/{kind}/{id}", world.base)
    };
    let revoke = async |one: &Value, token: &str| {
        let request = world.client.request(Method::DELETE, path(one));
        request.bearer_auth(token).send().await.unwrap().status()
    };
    for one in &all {
        assert_eq!(revoke(one, &bens).await, StatusCode::NOT_FOUND);
        assert_eq!(
            revoke(one, &opaque).await,
            StatusCode::FORBIDDEN,
            "it may only read"
        );
    }
    assert_eq!(
        revoke(&json!({ "kind": "x", "id": "1" }), &anns).await,
        StatusCode::NOT_FOUND
    );
    for one in all.iter().filter(|one| one["kind"] != "device") {
        assert_eq!(revoke(one, &anns).await, StatusCode::NO_CONTENT);
    }
    let gone = world
        .get_with("/api/v1/accounts/verify_credentials", &opaque)
        .await;
    assert_eq!(gone.status(), StatusCode::UNAUTHORIZED);
    let page = browser.get("/log-in").await.text().await.unwrap();
    assert!(
        page.contains("name=\"passphrase\""),
        "the browser is logged out"
    );
    let out = world
        .client
        .post(format!("{}/api/driftline/v1/log-out", world.base));
    let out = out.bearer_auth(&anns).send().await.unwrap();
    assert_eq!(out.status(), StatusCode::NO_CONTENT);
    assert!(!works(&world, &anns).await);
    assert_eq!(
        refreshed(&world, &anns).await,
        Err(StatusCode::UNAUTHORIZED)
    );
    assert!(works(&world, &bens).await);
    world.close().await;
}
