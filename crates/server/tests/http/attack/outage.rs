//! A store that is away: every route says so, and goes on when it is back.

use std::collections::BTreeSet;

use driftline_api::{App, people::SignUpMode};
use driftline_db::testing::Outage;
use driftline_server::testing::wait;
use futures_util::{StreamExt as _, stream};
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{
    callers::{Expected, Scene},
    operation::{Operation, description, operations},
    read, send,
};
use crate::{
    people::{Browser, OOB, PASSPHRASE, Registered, hidden, people_world_on},
    world::parsed,
};

/// What is answered without the store, to whoever sends it what the description has as an example. That of these which
/// needs the store for more is in the next test.
const WITHOUT_STORE: [&str; 46] = [
    // What cannot be a secret is not looked up.
    "GET /feeds/{form}",
    // What is asked for here is no account's address.
    "GET /.well-known/webfinger",
    // Throttled before the store is asked, or what was found a moment ago.
    "POST /api/v1/accounts",
    "GET /readyz",
    "GET /",
    "GET /@{name}",
    "GET /favicon.ico",
    "GET /icon.png",
    "GET /tags/{name}",
    "GET /.well-known/host-meta",
    "GET /.well-known/host-meta.json",
    "GET /.well-known/nodeinfo",
    "GET /.well-known/oauth-authorization-server",
    "GET /api/docs",
    "POST /api/driftline/v1/refresh",
    "GET /api/openapi.json",
    // Whom a token is of is known for a moment.
    "GET /api/v1/accounts/familiar_followers",
    "GET /api/v1/announcements",
    "GET /api/v1/custom_emojis",
    "GET /api/v1/directory",
    "GET /api/v1/instance/activity",
    "GET /api/v1/instance/domain_blocks",
    "GET /api/v1/instance/extended_description",
    "GET /api/v1/instance/rules",
    "GET /api/v1/instance/translation_languages",
    "GET /api/v1/streaming/health",
    "GET /api/v1/trends/links",
    "GET /api/v1/trends/statuses",
    "GET /api/v1/trends/tags",
    "GET /api/v2/instance",
    "GET /confirm",
    "POST /confirm",
    "GET /livez",
    "GET /log-in",
    "POST /log-in",
    "POST /log-out",
    "GET /metrics",
    "GET /nodeinfo/2.0",
    "GET /nodeinfo/2.1",
    "POST /oauth/authorize",
    "POST /oauth/revoke",
    "POST /oauth/token",
    "GET /pictures/missing.png",
    "GET /sign-up",
    "POST /sign-up",
    "POST /sign-up/resend",
];
/// Who has logged out is not asked again.
const LOG_OUT: &str = "/api/driftline/v1/log-out";

/// Asks for each operation as each caller; what is answered, in that order.
async fn asked(
    scene: &Scene,
    description: &Value,
    operations: &[Operation],
) -> Vec<(String, StatusCode, String)> {
    let all = operations.iter().flat_map(|operation| {
        let callers = scene.callers.iter();
        let served = callers.filter(|caller| caller.expects(operation) == Expected::Served);
        // A page is refused for want of its form's token.
        let one = scene.callers.iter().take(1);
        let all: Vec<_> = match operation.names("form") {
            true => one.collect(),
            false => served.collect(),
        };
        all.into_iter().map(move |caller| (operation, caller))
    });
    let answers = all.map(async |(operation, caller)| {
        let of = (&*scene.public[0], "1");
        let answer = send(&scene.world, caller, description, operation, of).await;
        let after = answer.headers().contains_key("retry-after");
        let (status, body) = read(answer).await;
        let is_told = status != StatusCode::SERVICE_UNAVAILABLE || after;
        let what = format!("{} as {}", operation.name(), caller.name);
        assert!(is_told || operation.path == "/readyz", "{what}: {body}");
        (what, status, body)
    });
    stream::iter(answers).buffered(48).collect().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_says_that_the_store_is_away_and_goes_on_when_it_is_back() {
    let mut postgres = Outage::start();
    let description = description();
    // What a token is good for is known for a moment: some of these fail before their route, and some in it.
    let operations: Vec<_> = operations(&description)
        .into_iter()
        .filter(|operation| operation.path != LOG_OUT)
        .collect();
    let scene = Scene::on(postgres.fresh()).await;
    asked(&scene, &description, &operations).await;
    let before = asked(&scene, &description, &operations).await;
    postgres.stop();
    let during = asked(&scene, &description, &operations).await;
    let mut needing = BTreeSet::new();
    for ((what, status, body), (_, usual, _)) in during.iter().zip(&before) {
        let operation = what.split_once(" as ").unwrap().0;
        match *status {
            StatusCode::SERVICE_UNAVAILABLE => {
                let is_page = body.starts_with("<!DOCTYPE html>");
                let error = serde_json::from_str::<Value>(body).unwrap_or_default();
                let said = error["error"].as_str().unwrap_or(body);
                assert!(said.contains(" store ") || is_page, "{what}: {body}");
                needing.insert(operation);
            }
            // A throttle comes before the store.
            StatusCode::TOO_MANY_REQUESTS => {}
            status => assert_eq!(status, *usual, "{what}: {body}"),
        }
    }
    let without = operations.iter().map(Operation::name);
    let unknown: Vec<String> = without
        .filter(|name| !needing.contains(&**name) && !WITHOUT_STORE.contains(&&**name))
        .collect();
    assert_eq!(unknown, [""; 0], "they do not say that the store is away");
    assert!(needing.len() > 90, "{}", needing.len());
    postgres.start_again();
    wait("the store is back", async || {
        scene.world.answer("/readyz").await.status() == StatusCode::OK
    })
    .await;
    let after = asked(&scene, &description, &operations).await;
    for ((what, status, body), (_, usual, _)) in after.iter().zip(&before) {
        // What was made by the first may be taken now, and throttles come and go.
        let is_throttled = [status, usual].contains(&&StatusCode::TOO_MANY_REQUESTS);
        let is_taken = status.is_client_error() && usual.is_success();
        let is_same = status == usual || is_throttled || is_taken;
        assert!(is_same, "{what}: {usual}, then {status} {body}");
    }
    scene.world.close().await;
}

/// What a page says in each language.
const SAID: [(&str, &str); 3] = [
    ("en", "The server cannot use its data at the moment."),
    ("ja", "サーバーは今、データを利用できません。"),
    ("pt", "O servidor está sem acesso ao banco de dados"),
];

/// Every page and form that needs the store, from a browser with its cookies.
async fn pages(browser: &mut Browser, language: &str, token: &str, authorize: &str) {
    let said = SAID.iter().find(|(tag, _)| *tag == language).unwrap().1;
    let lang = format!("lang={language}");
    let mut answers = Vec::new();
    for path in ["/log-in?", &format!("{authorize}&")] {
        answers.push((path.to_owned(), browser.get(&format!("{path}{lang}")).await));
    }
    let own = [("form_token", token)];
    let log_in = [("who", "ann"), ("passphrase", PASSPHRASE)];
    let sign_up = [
        ("name", "dora"),
        ("mail", "dora@mail.example"),
        ("passphrase", PASSPHRASE),
    ];
    let link = [("id", "123456789"), ("state", "1")];
    let forms: [(&str, &[(&str, &str)]); 6] = [
        ("/log-in", &log_in),
        ("/log-out", &[]),
        ("/oauth/authorize", &[("decision", "allow")]),
        ("/sign-up", &sign_up),
        ("/sign-up/resend", &[("mail", "dora@mail.example")]),
        ("/confirm", &link),
    ];
    for (path, fields) in forms {
        let fields = [&own, fields].concat();
        let answer = browser.submit(&format!("{path}?{lang}"), &fields).await;
        answers.push((path.to_owned(), answer));
    }
    for (path, answer) in answers {
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(answer.headers().contains_key("retry-after"), "{path}");
        let kind = answer.headers()["content-type"].to_str().unwrap();
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
        assert_eq!(answer.headers()["content-language"], language, "{path}");
        let body = answer.text().await.unwrap();
        assert!(body.contains(said), "{path}: {body}");
    }
}

/// What needs the store where its tokens and secrets are right.
fn tokens(app: &Registered, access: &str, native: &str) -> [(&'static str, Value); 4] {
    let client = json!({ "client_id": app.id, "client_secret": app.secret });
    let with = |more: Value| {
        let mut body = client.clone();
        let more = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(more);
        body
    };
    let password = json!({ "grant_type": "password", "username": "ann", "password": PASSPHRASE });
    let own = json!({ "grant_type": "client_credentials" });
    [
        ("/oauth/token", with(password)),
        ("/oauth/token", with(own)),
        ("/api/driftline/v1/refresh", json!({ "token": native })),
        ("/oauth/revoke", with(json!({ "token": access }))),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_say_in_the_readers_language_that_the_store_is_away() {
    let mut postgres = Outage::start();
    let open = |app: &mut App| app.people.sign_up.mode = SignUpMode::Open;
    let (world, mailbox) = people_world_on(postgres.fresh(), open).await;
    world.account("ann").await;
    let app = world.app("toot", OOB, "read").await;
    let access = world.token(&app, "ann", "read").await;
    let native = json!({ "who": "ann", "passphrase": PASSPHRASE });
    let native = parsed(world.post("/api/driftline/v1/log-in", &native).await).await;
    let native = native["token"].as_str().unwrap().to_owned();
    let mut browser = world.browser();
    browser.log_in("ann", PASSPHRASE).await;
    let page = browser.get("/log-in").await.text().await.unwrap();
    let token = hidden(&page, "form_token");
    // And one whom nobody is logged in with: its cookies need no store.
    let mut stranger = world.browser();
    let page = stranger.get("/log-in").await.text().await.unwrap();
    let strangers = hidden(&page, "form_token");

    postgres.stop();
    for (language, said) in SAID {
        pages(&mut browser, language, &token, &app.authorize(&[])).await;
        for (path, fields) in [
            ("/log-in", [("who", "ann"), ("passphrase", PASSPHRASE)]),
            ("/confirm", [("id", "123456789"), ("state", "1")]),
        ] {
            let fields = [&[("form_token", &*strangers)], &fields[..]].concat();
            let path = format!("{path}?lang={language}");
            let answer = stranger.submit(&path, &fields).await;
            assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
            assert!(answer.text().await.unwrap().contains(said), "{path}");
        }
    }
    assert!(mailbox.all().is_empty());
    for (path, body) in tokens(&app, &access, &native) {
        let answer = world.post(path, &body).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(answer.headers().contains_key("retry-after"), "{path}");
    }

    postgres.start_again();
    wait("the store is back", async || {
        world.answer("/readyz").await.status() == StatusCode::OK
    })
    .await;
    let page = browser.get("/log-in").await.text().await.unwrap();
    assert!(page.contains("@ann"), "{page}");
    assert!(!browser.allow(&app, &[]).await.is_empty());
    // The refresh token that was sent is not used up, and the token not revoked.
    let answer = world
        .get_with("/api/v1/accounts/verify_credentials", &access)
        .await;
    assert_eq!(answer.status(), StatusCode::OK);
    for (path, body) in tokens(&app, &access, &native) {
        let answer = world.post(path, &body).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
    }
    // Nothing of the outage counts as a wrong passphrase.
    let fields = [
        ("form_token", &*strangers),
        ("who", "ann"),
        ("passphrase", PASSPHRASE),
    ];
    let answer = stranger.submit("/log-in", &fields).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    world.close().await;
}
