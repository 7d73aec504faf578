//! What ends log-ins, and what their tokens may read.

use driftline_core::{
    audience::Audience,
    post::Visibility,
    social::{AccountName, AccountState},
};
use driftline_runtime::CommandError;
use driftline_server::admin::{
    AccountTokenRow, ChangeAccountState, DeleteAccount, Host, ListAccountTokens, Request as _,
    ResetPassphrase, RevokeAccountToken, TokenKind,
};
use driftline_store::{
    Tx, source,
    timeline::{self, Range, Viewer},
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    people::{OOB, PASSPHRASE, Registered, hashed, location, people_world},
    world::{TOKEN, World, parsed, status as post_status},
};

const OWN: &str = "/api/v1/accounts/verify_credentials";

/// A server with an account, and where the operator's commands on it are executed.
async fn world() -> (World, Host) {
    let mut callers = None;
    let (world, _) = people_world(|app| callers = Some(app.people.callers.clone())).await;
    let mut host = Host::of(&world.store);
    host.callers = callers.unwrap();
    world.account("ann").await;
    (world, host)
}

fn ann() -> AccountName {
    AccountName::new("ann").unwrap()
}

async fn status(world: &World, path: &str, token: &str) -> u16 {
    world.get_with(path, token).await.status().as_u16()
}

async fn tokens(host: &Host) -> Vec<AccountTokenRow> {
    let list = ListAccountTokens { name: ann() };
    list.execute(host).await.unwrap()
}

/// All that one can be logged in with: a token, a native one, a browser, and a code that is not exchanged.
async fn everything(
    world: &World,
    app: &Registered,
) -> (String, String, crate::people::Browser, String) {
    let token = world.token(app, "ann", "read").await;
    let body = json!({ "who": "ann", "passphrase": PASSPHRASE, "device": "phone" });
    let native = parsed(world.post("/api/driftline/v1/log-in", &body).await).await;
    let native = native["token"].as_str().unwrap().to_owned();
    let mut browser = world.browser();
    browser.log_in("ann", PASSPHRASE).await;
    let code = browser.allow(app, &[]).await;
    (token, native, browser, code)
}

#[tokio::test(flavor = "multi_thread")]
async fn freezing_resetting_and_deleting_end_all_that_is_logged_in_at_once() {
    for how in ["freeze", "reset", "delete"] {
        let (world, host) = world().await;
        let app = world.app("toot", OOB, "read").await;
        let (token, native, mut browser, code) = everything(&world, &app).await;
        // They are cached.
        assert_eq!(status(&world, OWN, &token).await, 200);
        assert_eq!(status(&world, OWN, &native).await, 200);
        let kinds: Vec<TokenKind> = tokens(&host).await.iter().map(|row| row.kind).collect();
        assert_eq!(
            kinds,
            [TokenKind::App, TokenKind::Device, TokenKind::Browser]
        );
        let freeze = |from, to| ChangeAccountState {
            name: ann(),
            from,
            to,
        };
        match how {
            "freeze" => {
                freeze(None, AccountState::Frozen)
                    .execute(&host)
                    .await
                    .unwrap();
            }
            "reset" => {
                let passphrase = hashed("another passphrase").await;
                let reset = ResetPassphrase {
                    name: ann(),
                    passphrase,
                };
                reset.execute(&host).await.unwrap();
            }
            _ => {
                DeleteAccount { name: ann() }.execute(&host).await.unwrap();
            }
        }
        for ended in [&token, &native] {
            assert_eq!(status(&world, OWN, ended).await, 401, "{how}");
        }
        let asked = browser.get(&app.authorize(&[])).await;
        assert!(location(&asked).starts_with("/log-in"), "{how}");
        if how == "freeze" {
            assert!(tokens(&host).await.is_empty());
            let thaw = freeze(Some(AccountState::Frozen), AccountState::Active);
            thaw.execute(&host).await.unwrap();
        }
        // Nothing of before comes back.
        let answer = world.post("/oauth/token", &app.exchange(&code, None)).await;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{how}");
        assert_eq!(status(&world, OWN, &token).await, 401, "{how}");
        let refresh = world
            .post("/api/driftline/v1/refresh", &json!({ "token": native }))
            .await;
        assert_eq!(refresh.status(), StatusCode::UNAUTHORIZED, "{how}");
        world.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silenced_account_reads_on() {
    let (world, host) = world().await;
    let app = world.app("toot", OOB, "read").await;
    let token = world.token(&app, "ann", "read").await;
    let silence = ChangeAccountState {
        name: ann(),
        from: None,
        to: AccountState::Silenced,
    };
    silence.execute(&host).await.unwrap();
    assert_eq!(status(&world, OWN, &token).await, 200);
    assert_eq!(
        status(&world, "/api/v1/timelines/public", &token).await,
        200
    );
    let own = parsed(world.get_with(OWN, &token).await).await;
    let picture = world.client.get(own["avatar"].as_str().unwrap()).send();
    assert_eq!(
        picture.await.unwrap().headers()["content-type"],
        "image/png"
    );
    assert!(!world.token(&app, "ann", "read").await.is_empty());
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_ends_one_of_an_accounts_log_ins() {
    let (world, host) = world().await;
    let app = world.app("toot", OOB, "read").await;
    let (token, native, _, _) = everything(&world, &app).await;
    let rows = tokens(&host).await;
    assert_eq!(
        (&*rows[0].name, rows[0].scopes.as_deref()),
        ("toot", Some("read"))
    );
    assert!(!format!("{rows:?}").contains("dla_"));
    assert_eq!(status(&world, OWN, &token).await, 200);
    let revoke = |id: u64| RevokeAccountToken { name: ann(), id };
    let id = rows[0].id.parse().unwrap();
    revoke(id).execute(&host).await.unwrap();
    assert_eq!(status(&world, OWN, &token).await, 401);
    assert_eq!(status(&world, OWN, &native).await, 200, "another one");
    let again: Result<_, CommandError> = revoke(id).execute(&host).await;
    assert!(again.unwrap_err().to_string().contains("account tokens"));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_reads_what_the_world_reads_and_needs_the_scope_of_the_route() {
    let (world, _) = world().await;
    let app = world.app("toot", OOB, "read write").await;
    let reads = world.token(&app, "ann", "read").await;
    let narrow = world.token(&app, "ann", "read:statuses").await;
    let writes = world.token(&app, "ann", "write").await;
    let own = json!({
        "grant_type": "client_credentials", "client_id": app.id, "client_secret": app.secret,
    });
    let own = parsed(world.post("/oauth/token", &own).await).await;
    let own = own["access_token"].as_str().unwrap();
    let unknown = "x".repeat(40);
    let public = "/api/v1/timelines/public";
    for (path, all) in [
        (public, [200, 200, 403, 200, 401]),
        ("/api/v1/statuses/1", [404, 404, 403, 404, 401]),
        ("/api/v1/statuses/1/history", [404, 404, 403, 404, 401]),
        ("/api/v1/lists", [200, 403, 403, 422, 401]),
        ("/api/v1/lists/1", [404, 403, 403, 422, 401]),
        ("/api/v1/timelines/list/1", [404, 403, 403, 422, 401]),
        ("/api/v1/streaming/list?list=1", [404, 403, 403, 422, 401]),
        (OWN, [200, 403, 403, 422, 401]),
    ] {
        for (token, expected) in [&*reads, &narrow, &writes, own, &unknown].iter().zip(all) {
            assert_eq!(
                status(&world, path, token).await,
                expected,
                "{path} {token:.6}"
            );
        }
    }
    assert_eq!(world.json(public).await, json!([]));
    let lists: Value = parsed(world.get_with("/api/v1/lists", &reads).await).await;
    assert_eq!(lists, json!([]));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_reads_what_sources_show_members_and_nobody_elses_private_ones() {
    let operator = driftline_api::auth::OperatorToken::new(&TOKEN.to_owned().into()).unwrap();
    let (world, _) = people_world(|app| {
        app.authorization = driftline_api::auth::Authorization::Operator(operator);
    })
    .await;
    world.account("ann").await;
    let app = world.app("toot", OOB, "read").await;
    let anns = world.token(&app, "ann", "read").await;
    let mut feed = world.feed("members").await;
    let unlisted = driftline_sim::Status {
        visibility: Visibility::Unlisted,
        ..post_status(2)
    };
    feed.poll(&[post_status(1), unlisted]).await;
    let key = feed.source;
    let all = Range {
        limit: 40,
        ..Range::default()
    };
    let read = move |tx: &mut Tx<'_>| timeline::source(tx, key, &all, Viewer::Operator);
    let posts = world.store.read(read).await.unwrap();
    let public = "/api/v1/timelines/public";
    for (audience, [strangers, members]) in [
        (Audience::Public, [[1, 1], [1, 2]]),
        (Audience::Members, [[0, 0], [1, 2]]),
        (Audience::Private, [[0, 0], [0, 0]]),
    ] {
        let set = world.store.write(source::root(key), move |tx| {
            source::set_audience(tx, key, audience)
        });
        set.await.unwrap();
        for (token, [listed, by_id]) in [(None, strangers), (Some(&*anns), members)] {
            let get = async |path: &str| match token {
                Some(token) => world.get_with(path, token).await,
                None => world.answer(path).await,
            };
            let page = parsed(get(public).await).await;
            assert_eq!(page.as_array().unwrap().len(), listed, "{audience:?}");
            let mut found = 0;
            for post in &posts {
                for of_post in ["", "/history"] {
                    let path = format!("/api/v1/statuses/{}{of_post}", post.id);
                    let answer = get(&path).await.status();
                    assert!([StatusCode::OK, StatusCode::NOT_FOUND].contains(&answer));
                    found += usize::from(answer == StatusCode::OK);
                }
            }
            assert_eq!(found, 2 * by_id, "{audience:?}");
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_token_goes_on_working_beside_those_of_accounts() {
    const OPERATOR: &str = "an-operators-token-of-some-length-1";
    let token = driftline_api::auth::OperatorToken::new(&OPERATOR.to_owned().into()).unwrap();
    let (world, _) = people_world(|app| {
        app.authorization = driftline_api::auth::Authorization::Operator(token);
    })
    .await;
    world.account("ann").await;
    let app = world.app("toot", OOB, "read").await;
    let anns = world.token(&app, "ann", "read").await;
    for (path, operator, ann, nobody) in [
        ("/api/v1/timelines/public", 200, 200, 200),
        ("/api/v1/lists", 200, 200, 401),
        ("/api/v1/lists/1", 404, 404, 401),
        ("/api/v1/track", 400, 401, 401),
        ("/api/v1/stream/posts?since=x", 400, 401, 401),
        (OWN, 422, 200, 401),
    ] {
        assert_eq!(status(&world, path, OPERATOR).await, operator, "{path}");
        assert_eq!(status(&world, path, &anns).await, ann, "{path}");
        let answer = world.client.get(format!("{}{path}", world.base)).send();
        assert_eq!(answer.await.unwrap().status().as_u16(), nobody, "{path}");
    }
    world.close().await;
}
