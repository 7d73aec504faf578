//! Tokens: those that end, those of another account or server, and errors, which show none.

use std::{fs, os::unix::fs::PermissionsExt as _};

use driftline_replica::{InitOutcome, ReplicaError};
use serde_json::json;

use crate::support::{
    ACCOUNT, Answer, Device, SERVER, Server, TOKEN,
    notes::{OTHER, POST, chunk, note, object, status, synced, texts},
    stored,
};

#[tokio::test]
async fn a_token_that_has_ended_costs_nothing_and_is_replaced() {
    let server = Server::start();
    let device = synced(&server, json!([object(POST, 3, "a")])).await;
    device.edit(OTHER, Some(note("b"))).await;
    server.then(Answer::Json(401, json!({"error": "unknown token"})));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(
        error,
        ReplicaError::Unauthorized { status: 401, .. }
    ));
    assert!(
        error.to_string().contains("driftline replica init"),
        "{error}"
    );
    let before = status(&device).await;
    assert_eq!((before.dirty, before.cursor.as_deref()), (1, Some("c9")));

    let device = device.with_token("another-token");
    server.then_news(json!([]));
    assert_eq!(
        device.init(&server).await.unwrap(),
        InitOutcome::TokenRenewed
    );
    assert_eq!(status(&device).await, before);
    let file = device.folder().join("token");
    assert_eq!(fs::read_to_string(&file).unwrap(), "another-token\n");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.requests();
    server.then_news(json!([]));
    server.then(stored(&[(OTHER, 10)], "c9", "c10"));
    device.sync(&server).await.unwrap();
    for request in server.requests() {
        assert_eq!(request.authorization, "Bearer another-token");
    }
}

#[tokio::test]
async fn a_token_that_ends_in_the_middle_of_a_sync_costs_nothing() {
    let server = Server::start();
    let device = Device::made(&server).await;
    device.edit(POST, Some(note("a"))).await;
    let unauthorized = || Answer::Json(401, json!({"error": "unknown token"}));
    let newest = json!([object(OTHER, 9, "b")]);
    server.then_news(chunk("full", "c5", true, newest, json!([])));
    server.then(unauthorized());
    let error = device.sync(&server).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::Unauthorized { .. }),
        "{error}"
    );
    let before = status(&device).await;
    assert_eq!((before.dirty, before.cursor.as_deref()), (1, Some("c5")));

    // Another account must not get what waits here.
    let device = device.with_token("another-token");
    let other = json!({"server": SERVER, "account": "999", "news": []});
    server.then(Answer::Json(200, other));
    let error = device.init(&server).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::OtherAccount { .. }),
        "{error}"
    );
    server.then_news(json!([]));
    device.init(&server).await.unwrap();
    assert_eq!(status(&device).await, before);

    // The next token ends before the push.
    server.requests();
    server.then_news(chunk("full", "c9", false, json!([]), json!([])));
    server.then_news(json!([]));
    server.then(unauthorized());
    let error = device.sync(&server).await.unwrap_err();
    assert!(
        matches!(error, ReplicaError::Unauthorized { .. }),
        "{error}"
    );
    let [last_chunk, _, first] = server.requests().try_into().unwrap();
    assert_eq!(last_chunk.cursor(), "c5");
    server.then_news(json!([]));
    server.then(stored(&[(POST, 10)], "c9", "c10"));
    let report = device.sync(&server).await.unwrap();
    assert_eq!((report.work.pushed, report.dirty), (1, 0));
    assert_eq!(server.requests().pop().unwrap().body, first.body);
    assert_eq!(texts(&device.objects().await), [(POST, "a"), (OTHER, "b")]);
}

#[tokio::test]
async fn another_account_and_another_server_get_nothing() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    let before = status(&device).await;
    for (store, account) in [(SERVER, "999"), ("5c01", ACCOUNT)] {
        let answer = json!({"server": store, "account": account, "news": []});
        for _ in 0..2 {
            server.then(Answer::Json(200, answer.clone()));
        }
        let of_sync = device.sync(&server).await.unwrap_err();
        let of_init = device.init(&server).await.unwrap_err();
        for error in [of_sync, of_init] {
            match store == SERVER {
                true => assert!(matches!(error, ReplicaError::OtherAccount { .. })),
                false => assert!(matches!(error, ReplicaError::OtherServer { .. })),
            }
            assert!(error.to_string().contains("Nothing was pushed"), "{error}");
        }
    }
    assert!(server.requests().iter().all(|request| !request.is_push()));
    assert_eq!(status(&device).await, before);
    let token = fs::read_to_string(device.folder().join("token")).unwrap();
    assert_eq!(token.trim(), TOKEN);
}

#[tokio::test]
async fn a_token_of_no_account_refuses_no_change() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    device.edit(POST, Some(note("a"))).await;
    server.then_news(json!([]));
    let needed = json!({"error": "This method requires an authenticated user"});
    server.then(Answer::Json(422, needed));
    let error = device.sync(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::NoAccount(_)), "{error}");
    let status = status(&device).await;
    assert_eq!((status.dirty, status.open_conflicts), (1, 0));
}

#[tokio::test]
async fn a_server_that_gives_no_answer_leaves_no_folder() {
    let server = Server::start();
    let device = Device::new();
    server.then(Answer::Lost);
    let error = device.init(&server).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Unreachable { .. }), "{error}");
    assert!(!device.folder().exists());
}

#[tokio::test]
async fn no_error_shows_the_token() {
    let server = Server::start();
    let device = synced(&server, json!([])).await;
    let echo = json!({"error": format!("not {TOKEN}"), "server": "", "account": "", "news": TOKEN});
    for code in [200, 302, 400, 401, 403, 404, 409, 413, 422, 429, 500, 503] {
        server.then(Answer::Json(code, echo.clone()));
        let error = device.sync(&server).await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(TOKEN), "{code}: {shown}");
    }
    assert_eq!(server.answers_left(), 0);
    let shown = format!("{:?}", device.client(&server));
    assert!(!shown.contains(TOKEN), "{shown}");
}
