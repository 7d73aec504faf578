//! Forms of our pages that pages of other sites send.

use driftline_api::people::SignUpMode;
use serde_json::{Value, json};

use super::operation::{Operation, description, operations};
use crate::people::{Browser, PASSPHRASE, hidden, people_world};

async fn submit(
    browser: &mut Browser,
    operation: &Operation,
    body: &Value,
    headers: &[(&str, &str)],
) -> u16 {
    let fields: Vec<(&str, &str)> = body
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (&**name, value.as_str().unwrap()))
        .collect();
    let answer = browser.submit_with(&operation.path, &fields, headers).await;
    answer.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_form_is_taken_that_this_browser_was_not_given() {
    let description = description();
    let (world, _) = people_world(|app| app.people.sign_up.mode = SignUpMode::Open).await;
    world.account("ann").await;
    let mut tried = 0;
    for operation in operations(&description) {
        if !operation.names("form") {
            continue;
        }
        let what = operation.name();
        for is_logged_in in [false, true] {
            let (mut browser, mut other) = (world.browser(), world.browser());
            if is_logged_in {
                browser.log_in("ann", PASSPHRASE).await;
            }
            let page = browser.get("/log-in").await.text().await.unwrap();
            let token = hidden(&page, "form_token");
            let page = other.get("/log-in").await.text().await.unwrap();
            let others = hidden(&page, "form_token");
            let body = operation.sample(&description, "1").unwrap();
            let with = |token: &str| {
                let mut body = body.clone();
                body["form_token"] = json!(token);
                body
            };
            let own = [("sec-fetch-site", "same-origin")];
            for wrong in ["", "1", &others, &token[1..]] {
                let status = submit(&mut browser, &operation, &with(wrong), &own).await;
                assert_eq!(status, 403, "{what} with the token {wrong:?}");
            }
            for strange in [
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
                ("origin", "https://evil.example"),
                ("origin", "null"),
            ] {
                let status = submit(&mut browser, &operation, &with(&token), &[strange]).await;
                assert_eq!(status, 403, "{what} {strange:?}");
            }
            tried += 8;
            // With its own token it is taken, if nobody has to be logged in.
            if is_logged_in || !operation.names("session") {
                let status = submit(&mut browser, &operation, &with(&token), &own).await;
                assert_ne!(status, 403, "{what} with its own token");
            }
        }
    }
    assert!(tried >= 6 * 16, "{tried}");
    world.close().await;
}
