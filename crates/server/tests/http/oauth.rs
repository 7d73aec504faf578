//! Apps: they register, are let in on our pages, and get tokens with scopes. Each attack is tried.

use driftline_core::social::AccountState;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    people::{
        CHALLENGE, OOB, PASSPHRASE, Registered, VERIFIER, form, location, param, people_world,
    },
    test_clock,
    world::{World, parsed},
};

const BACK: &str = "app://back/here?x=1";

async fn world() -> World {
    people_world(|_| {}).await.0
}

async fn exchanged(world: &World, body: &Value) -> (StatusCode, Value) {
    let answer = world.post("/oauth/token", body).await;
    (answer.status(), parsed(answer).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_registers_by_json_and_by_form() {
    let world = world().await;
    let body = json!({
        "client_name": "toot", "redirect_uris": ["app://one", OOB], "scopes": "read write",
        "website": "https://toot.example",
    });
    let app = parsed(world.post("/api/v1/apps", &body).await).await;
    assert_eq!(app["name"], "toot");
    assert_eq!(app["redirect_uris"], json!(["app://one", OOB]));
    assert_eq!(app["redirect_uri"], format!("app://one\n{OOB}"));
    assert_eq!(app["scopes"], json!(["read", "write"]));
    assert_eq!(app["client_secret_expires_at"], 0);
    assert!(app["id"].is_string() && app["vapid_key"].is_string());
    let text = form(&[
        ("client_name", "toot"),
        ("redirect_uris", OOB),
        ("scopes", "read"),
    ]);
    let request = world.client.post(format!("{}/api/v1/apps", world.base));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(text).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let by_form = parsed(answer).await;
    assert_ne!(by_form["client_id"], app["client_id"]);
    let mut turned = body.clone();
    turned["client_name"] = json!("too\u{202e}t");
    let turned = parsed(world.post("/api/v1/apps", &turned).await).await;
    assert_eq!(turned["name"], "toot");
    for (key, bad, status) in [
        ("client_name", json!(""), 422),
        ("client_name", json!("a\u{7}b"), 422),
        ("redirect_uris", json!("javascript:alert(1)"), 422),
        ("redirect_uris", json!("https://a.example/#x"), 422),
        ("redirect_uris", json!([]), 422),
        ("scopes", json!("read everything"), 422),
        ("website", json!("javascript:alert(1)"), 422),
        ("client_name", json!(7), 400),
        ("client_name", Value::Null, 400),
    ] {
        let mut body = body.clone();
        body[key] = bad.clone();
        let answer = world.post("/api/v1/apps", &body).await;
        assert_eq!(answer.status().as_u16(), status, "{key}: {bad}");
        assert!(parsed(answer).await["error"].is_string());
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_lets_an_app_in_and_it_acts_for_them_within_its_scopes() {
    let world = world().await;
    let ann = world.account("ann").await;
    for redirect_uri in [BACK, OOB] {
        let app = world.app("toot", redirect_uri, "read:accounts").await;
        let mut browser = world.browser();
        let unknown = browser.get(&app.authorize(&[])).await;
        assert_eq!(unknown.status(), StatusCode::SEE_OTHER);
        assert!(location(&unknown).starts_with("/log-in?to=%2Foauth%2Fauthorize"));
        assert_eq!(browser.log_in("ann", PASSPHRASE).await.status(), 303);
        let pkce = [
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
        ];
        let code = browser.allow(&app, &pkce).await;
        let (status, token) = exchanged(&world, &app.exchange(&code, Some(VERIFIER))).await;
        assert_eq!(status, StatusCode::OK, "{token}");
        assert_eq!(token["token_type"], "Bearer");
        assert_eq!(token["scope"], "read:accounts");
        let token = token["access_token"].as_str().unwrap();
        let answer = world
            .get_with("/api/v1/accounts/verify_credentials", token)
            .await;
        assert_eq!(answer.status(), StatusCode::OK);
        let account = parsed(answer).await;
        assert_eq!(account["id"], ann.to_string());
        assert_eq!(
            (&account["acct"], &account["username"]),
            (&json!("ann"), &json!("ann"))
        );
        let revoke = world
            .client
            .delete(format!("{}/api/driftline/v1/devices/app/1", world.base));
        let refused = revoke.bearer_auth(token).send().await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
        let error = parsed(refused).await;
        assert_eq!(
            error["error"],
            "This action is outside the authorized scopes"
        );
        let own = world
            .get_with("/api/v1/apps/verify_credentials", token)
            .await;
        assert_eq!(parsed(own).await["name"], "toot");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn state_is_echoed_and_a_denial_is_told() {
    let world = world().await;
    world.account("ann").await;
    let app = world.app("toot", BACK, "read").await;
    let mut browser = world.browser();
    browser.log_in("ann", PASSPHRASE).await;
    let state = "a&b=\"ü";
    let address = app.authorize(&[("state", state)]);
    let there = location(&browser.decide(&address, "allow").await);
    assert!(
        there.starts_with("app://back/here?x=1&code=dlc_"),
        "{there}"
    );
    assert_eq!(param(&there, "state").as_deref(), Some(state));
    let there = location(&browser.decide(&address, "deny").await);
    assert_eq!(param(&there, "error").as_deref(), Some("access_denied"));
    assert_eq!(param(&there, "state").as_deref(), Some(state));
    assert_eq!(param(&there, "code"), None);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_to_an_address_that_the_app_has_not_registered() {
    let world = world().await;
    world.account("ann").await;
    let app = world.app("toot", BACK, "read").await;
    let mut browser = world.browser();
    browser.log_in("ann", PASSPHRASE).await;
    for wrong in [
        "app://back/here",
        "app://back/here?x=1&y=2",
        "app://back/here?x=1#",
        "APP://back/here?x=1",
        "https://evil.example",
        OOB,
        "",
    ] {
        let answer = browser
            .get(&app.authorize(&[("redirect_uri", wrong)]))
            .await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{wrong}");
        assert!(!answer.headers().contains_key("location"));
    }
    let unknown = browser
        .get(&app.authorize(&[("client_id", "unknown")]))
        .await;
    assert_eq!(unknown.status(), StatusCode::BAD_REQUEST);
    // Anybody registers apps: a malformed request must not lead to one's address, logged in or not.
    let mut stranger = world.browser();
    for more in [
        &[("scope", "read write")] as &[(&str, &str)],
        &[("scope", "nothing")],
        &[("response_type", "token")],
        &[("response_type", "")],
        &[("code_challenge", CHALLENGE)],
        &[
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "plain"),
        ],
        &[
            ("code_challenge", "short"),
            ("code_challenge_method", "S256"),
        ],
        &[("code_challenge_method", "S256")],
    ] {
        for browser in [&mut browser, &mut stranger] {
            let answer = browser.get(&app.authorize(more)).await;
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{more:?}");
            assert!(!answer.headers().contains_key("location"), "{more:?}");
        }
    }
    world.close().await;
}

/// An app with a code of Ann's.
async fn with_code(world: &World, more: &[(&str, &str)]) -> (Registered, String) {
    let app = world.app("toot", BACK, "read").await;
    let mut browser = world.browser();
    browser.log_in("ann", PASSPHRASE).await;
    let code = browser.allow(&app, more).await;
    (app, code)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_of_one_app_one_address_one_verifier_and_one_exchange() {
    let world = world().await;
    world.account("ann").await;
    let pkce = [
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
    ];
    let (app, code) = with_code(&world, &pkce).await;
    let other = world.app("other", BACK, "read").await;
    let right = app.exchange(&code, Some(VERIFIER));
    let changed = |key: &str, value: &str| {
        let mut body = right.clone();
        body[key] = json!(value);
        body
    };
    let long = "a".repeat(129);
    for (wrong, error) in [
        (other.exchange(&code, Some(VERIFIER)), "invalid_grant"),
        (app.exchange(&code, None), "invalid_grant"),
        (
            changed("code_verifier", &VERIFIER.replace('d', "e")),
            "invalid_grant",
        ),
        (changed("code_verifier", CHALLENGE), "invalid_grant"),
        (changed("code_verifier", &long), "invalid_grant"),
        (changed("redirect_uri", "app://back/here"), "invalid_grant"),
        (
            changed("code", &code.replace("dlc_", "dla_")),
            "invalid_grant",
        ),
        (changed("code", &code[..code.len() - 1]), "invalid_grant"),
        (changed("code", ""), "invalid_grant"),
        (changed("client_secret", &other.secret), "invalid_client"),
        (changed("client_secret", ""), "invalid_client"),
        (changed("client_id", &other.id), "invalid_client"),
        (changed("grant_type", "implicit"), "unsupported_grant_type"),
    ] {
        let (status, answer) = exchanged(&world, &wrong).await;
        assert_eq!(answer["error"], error, "{status} {wrong}");
        assert!(!answer.to_string().contains(&code[4..]));
    }
    let (status, token) = exchanged(&world, &right).await;
    assert_eq!(status, StatusCode::OK, "{token}");
    let token = token["access_token"].as_str().unwrap().to_owned();
    assert_eq!(world.verified(&token).await, StatusCode::OK);
    let (_, again) = exchanged(&world, &right).await;
    assert_eq!(again["error"], "invalid_grant");
    let after = world.verified(&token).await;
    assert_eq!(
        after,
        StatusCode::UNAUTHORIZED,
        "the code was stolen, or its token"
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_an_address_is_refused() {
    let world = world().await;
    world.account("ann").await;
    let app = world.app("toot", BACK, "read").await;
    let right = [
        ("grant_type", "password"),
        ("client_id", &*app.id),
        ("client_secret", &*app.secret),
        ("username", "ann"),
        ("password", PASSPHRASE),
        ("scope", "read"),
    ];
    for secret in ["password", "client_secret"] {
        let (query, body): (Vec<_>, Vec<_>) =
            right.iter().copied().partition(|(name, _)| *name == secret);
        let path = format!("/oauth/token?{}", form(&query));
        let (status, refused) = by_form(&world, &path, &form(&body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
        assert_eq!(refused["error"], "invalid_request");
        let why = refused["error_description"].as_str().unwrap();
        assert!(why.contains(secret) && why.contains("body"), "{why}");
    }
    let (status, token) = by_form(&world, "/oauth/token", &form(&right)).await;
    assert_eq!(status, StatusCode::OK, "{token}");
    let token = token["access_token"].as_str().unwrap();
    let (query, rest) = right.split_at(1);
    let path = format!("/oauth/token?{}", form(query));
    let (status, _) = by_form(&world, &path, &form(rest)).await;
    assert_eq!(status, StatusCode::OK, "what is no secret may be there");
    let path = format!("/oauth/revoke?token={token}");
    let (status, refused) = by_form(&world, &path, &form(&right[1..3])).await;
    assert_eq!(
        (status, &refused["error"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_request"))
    );
    let path = "/api/driftline/v1/log-in?passphrase=x";
    let (status, refused) = by_form(&world, path, "who=ann").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    world.close().await;
}

async fn by_form(world: &World, path: &str, body: &str) -> (StatusCode, Value) {
    let request = world.client.post(format!("{}{path}", world.base));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(body.to_owned()).send().await.unwrap();
    (answer.status(), parsed(answer).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifier_without_a_challenge_is_refused() {
    let world = world().await;
    world.account("ann").await;
    let (app, code) = with_code(&world, &[]).await;
    let (_, refused) = exchanged(&world, &app.exchange(&code, Some(VERIFIER))).await;
    assert_eq!(refused["error"], "invalid_grant");
    assert_eq!(
        exchanged(&world, &app.exchange(&code, None)).await.0,
        StatusCode::OK
    );
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apps_own_token_acts_for_nobody() {
    let world = world().await;
    let app = world.app("toot", OOB, "read write").await;
    let body = json!({
        "grant_type": "client_credentials", "client_id": app.id, "client_secret": app.secret,
        "scope": "read",
    });
    let (status, token) = exchanged(&world, &body).await;
    assert_eq!(status, StatusCode::OK, "{token}");
    let token = token["access_token"].as_str().unwrap().to_owned();
    let own = world
        .get_with("/api/v1/apps/verify_credentials", &token)
        .await;
    assert_eq!(own.status(), StatusCode::OK);
    assert_eq!(
        world.verified(&token).await,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let mut more = body.clone();
    more["scope"] = json!("read push");
    assert_eq!(exchanged(&world, &more).await.1["error"], "invalid_scope");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_revoked_by_its_own_app_at_once() {
    let world = world().await;
    world.account("ann").await;
    let app = world.app("toot", OOB, "read").await;
    let other = world.app("other", OOB, "read").await;
    let token = world.token(&app, "ann", "read").await;
    let revoke = |app: &Registered, token: &str| json!({ "client_id": app.id, "client_secret": app.secret, "token": token });
    assert_eq!(world.verified(&token).await, StatusCode::OK);
    let stolen = world.post("/oauth/revoke", &revoke(&other, &token)).await;
    assert_eq!(stolen.status(), StatusCode::FORBIDDEN);
    assert_eq!(parsed(stolen).await["error"], "unauthorized_client");
    assert_eq!(world.verified(&token).await, StatusCode::OK);
    for _ in 0..2 {
        let revoked = world.post("/oauth/revoke", &revoke(&app, &token)).await;
        assert_eq!(revoked.status(), StatusCode::OK);
        assert_eq!(world.verified(&token).await, StatusCode::UNAUTHORIZED);
    }
    let unknown = world.post("/oauth/revoke", &revoke(&app, "nothing")).await;
    assert_eq!(unknown.status(), StatusCode::OK);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passphrases_wait_and_nobody_is_locked_out() {
    let (clock, now_ms) = test_clock!();
    let (world, _) = people_world(|app| app.people.use_clock(clock)).await;
    world.account("ann").await;
    let app = world.app("toot", OOB, "read").await;
    let body = |who: &str, passphrase: &str| {
        json!({
            "grant_type": "password", "client_id": app.id, "client_secret": app.secret,
            "username": who, "password": passphrase, "scope": "read",
        })
    };
    // Known, unknown, by mail and by name: the answers are the same.
    for who in ["nobody", "nobody@mail.example", "not a name!"] {
        let (status, refused) = exchanged(&world, &body(who, "wrong")).await;
        assert_eq!(
            (status.as_u16(), &refused["error"]),
            (400, &json!("invalid_grant"))
        );
    }
    let mut wait_s = 0;
    for turn in 0..7 {
        let who = if turn % 2 == 0 { "ann" } else { " @ANN" };
        let answer = world.post("/oauth/token", &body(who, "wrong")).await;
        match turn {
            0..=5 => assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{turn}"),
            _ => {
                assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
                let after = answer.headers()["retry-after"].to_str().unwrap();
                wait_s = after.parse().unwrap();
            }
        }
    }
    // A count for both would tell whose address it is.
    let by_mail = exchanged(&world, &body("ann@mail.example", "wrong")).await;
    assert_eq!(by_mail.1["error"], "invalid_grant");
    let early = exchanged(&world, &body("ann", PASSPHRASE)).await;
    assert_eq!(
        early.0,
        StatusCode::TOO_MANY_REQUESTS,
        "the right one waits too"
    );
    crate::people::pass(now_ms, wait_s * 1000);
    let in_time = exchanged(&world, &body("ann", PASSPHRASE)).await;
    assert_eq!(in_time.0, StatusCode::OK);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_account_gets_no_token_and_has_none() {
    let world = world().await;
    let ann = world.account("ann").await;
    let app = world.app("toot", BACK, "read").await;
    let token = world.token(&app, "ann", "read").await;
    let mut browser = world.browser();
    browser.log_in("ann", PASSPHRASE).await;
    let code = browser.allow(&app, &[]).await;
    world.set_state(ann, AccountState::Frozen).await;
    let refused = world
        .get_with("/api/v1/accounts/verify_credentials", &token)
        .await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    let error = parsed(refused).await;
    assert_eq!(error["error"], "Your login is currently disabled");
    let own = world
        .get_with("/api/v1/apps/verify_credentials", &token)
        .await;
    assert_eq!(own.status(), StatusCode::FORBIDDEN);
    let asked = browser.get(&app.authorize(&[])).await;
    assert!(location(&asked).starts_with("/log-in"));
    let (_, given) = exchanged(&world, &app.exchange(&code, None)).await;
    let given = given["access_token"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert_ne!(world.verified(&given).await, StatusCode::OK);
    let body = json!({
        "grant_type": "password", "client_id": app.id, "client_secret": app.secret,
        "username": "ann", "password": PASSPHRASE, "scope": "read",
    });
    assert_eq!(exchanged(&world, &body).await.1["error"], "invalid_grant");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_names_what_there_is() {
    let world = world().await;
    let metadata = world.json("/.well-known/oauth-authorization-server").await;
    assert_eq!(
        metadata["token_endpoint"],
        format!("{}/oauth/token", world.base)
    );
    assert_eq!(
        metadata["code_challenge_methods_supported"],
        json!(["S256"])
    );
    world.account("ann").await;
    let app = world.app("toot", OOB, "profile").await;
    let token = world.token(&app, "ann", "profile").await;
    let answer = world.get_with("/oauth/userinfo", &token).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(parsed(answer).await["preferred_username"], "ann");
    assert_eq!(world.verified(&token).await, StatusCode::FORBIDDEN);
    world.close().await;
}
