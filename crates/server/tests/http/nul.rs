//! The character U+0000, which no database stores, in every text that a request may hold.

use driftline_api::people::SignUpMode;
use driftline_db::testing::databases;
use serde_json::json;

use crate::people::{OOB, PASSPHRASE, people_world_on};

#[tokio::test(flavor = "multi_thread")]
async fn a_zero_character_in_a_query_is_no_error_of_ours() {
    for fresh in databases() {
        let (world, _) = people_world_on(fresh, |app| {
            app.people.sign_up.mode = SignUpMode::Open;
        })
        .await;
        world.account("ann").await;
        let app = world.app("toot", OOB, "read write").await;
        let token = world.token(&app, "ann", "read write").await;
        for path in [
            "/api/v2/search?q=%00",
            "/api/v2/search?q=a%00b&type=accounts",
            "/api/v2/search?q=%23%00&type=hashtags",
            "/api/v2/search?q=https://far.example/%00&resolve=true",
            "/api/v2/search?q=cat%40far.example%00&resolve=true",
            "/api/v1/accounts/search?q=%00",
            "/api/v1/accounts/lookup?acct=%00",
            "/api/v1/accounts/lookup?acct=ann%40far%00.example",
            "/api/v1/timelines/tag/%00",
            "/api/v1/timelines/tag/cats?any[]=%00",
            "/api/v1/timelines/public?max_id=%00",
            "/api/v1/accounts/1/statuses?tagged=%00",
            "/api/v1/tags/%00",
            "/api/v1/directory?order=%00",
            "/api/v1/markers?timeline[]=%00",
            "/api/v1/instance/peers?x=%00",
            "/.well-known/webfinger?resource=acct:%00@far.example",
            "/oauth/authorize?client_id=%00",
            "/log-in?to=%00",
            "/sign-up?to=%00",
            "/confirm?id=%00&state=%00",
            "/@%00",
        ] {
            let answer = world.get_with(path, &token).await;
            let status = answer.status();
            let text = answer.text().await.unwrap();
            assert!(!status.is_server_error(), "{path}: {status} {text}");
        }
        for (path, body) in [
            ("/api/v1/lists", json!({ "title": "a\0b" })),
            (
                "/api/v2/filters",
                json!({ "title": "\0", "context": ["home"] }),
            ),
            (
                "/api/driftline/v1/log-in",
                json!({ "who": "\0", "passphrase": PASSPHRASE }),
            ),
            (
                "/api/v1/apps",
                json!({ "client_name": "\0", "redirect_uris": OOB }),
            ),
        ] {
            let request = world.client.post(format!("{}{path}", world.base));
            let request = request.bearer_auth(&token);
            let request = request.header("content-type", "application/json");
            let answer = request.body(body.to_string()).send().await.unwrap();
            let status = answer.status();
            assert!(!status.is_server_error(), "{path}: {status}");
        }
        world.close().await;
    }
}
