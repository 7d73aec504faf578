//! What ends log-ins, and what their tokens may read.

use driftline_core::social::{AccountName, AccountState};
use driftline_runtime::CommandError;
use driftline_server::admin::{
    AccountTokenRow, ChangeAccountState, DeleteAccount, Host, ListAccountTokens, Request as _,
    ResetPassphrase, RevokeAccountToken, TokenKind,
};
use reqwest::StatusCode;
use serde_json::json;

use crate::{
    people::{OOB, PASSPHRASE, Registered, hashed, location, people_world},
    world::{World, parsed},
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
