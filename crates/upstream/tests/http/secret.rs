//! The token appears in no error, no `Debug` and no log.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use crate::server::{Server, answer, head, options};
use driftline_core::{answer::PageRequest, api::Api};
use driftline_upstream::Timeline;

const TOKEN: &str = "tOkEn-0123456789abcdefghijklmnopqrstuvwxyz";

#[tokio::test]
async fn a_server_that_repeats_the_token_does_not_make_us_repeat_it() {
    let (log, _guard) = Log::listen();

    let padded = format!("[{}{TOKEN}", "x".repeat(60));
    let location = format!("Location: http://{TOKEN}.example/{TOKEN}?t={TOKEN}");
    let relative = format!("Location: /{TOKEN}?t={TOKEN}");
    let echo = format!("X-Echo: {TOKEN}");
    let error = format!(r#"{{"error":"The token {TOKEN} was revoked"}}"#);
    let html = format!("<title>{TOKEN}</title>");
    let without_id = format!(r#"{{"id":{{"{TOKEN}":1}}}}"#);
    let mut cut = head("200 OK", &["Content-Length: 1000", &echo]);
    cut.extend_from_slice(TOKEN.as_bytes());
    let content_type = format!("Content-Type: {TOKEN}");
    for bytes in [
        answer("200 OK", &[], &error),
        answer("200 OK", &[], &html),
        answer("200 OK", &[], &padded),
        answer("200 OK", &[], TOKEN),
        answer(
            "200 OK",
            &[],
            format!("[{}]", [without_id.as_str(); 6].join(",")),
        ),
        answer("200 OK", &[&content_type], "[x]"),
        answer("401 Unauthorized", &[&echo], &error),
        answer("403 Forbidden", &[], &html),
        answer("500 Internal Server Error", &[], &padded),
        answer("422 Unprocessable Content", &[], TOKEN),
        answer("301 Moved Permanently", &[&location], ""),
        answer("301 Moved Permanently", &[&relative], ""),
        format!("HTTP/1.1 {TOKEN}\r\n\r\n").into_bytes(),
        cut,
        Vec::new(),
    ] {
        let server = Server::sending(bytes.clone()).await;
        let client = server.client_with(options(), Some(TOKEN));
        let failure = client
            .page(&Timeline::Home, &PageRequest::default())
            .await
            .expect_err("a failure");
        assert!(server.requests()[0].contains(TOKEN), "it was sent");
        let shown = format!("{failure} {failure:?} {client:?}").to_ascii_lowercase();
        let kept = "0123456789";
        assert!(
            !shown.contains(kept),
            "{}\ngave {shown}",
            String::from_utf8_lossy(&bytes)
        );
    }
    let logged = log.text();
    assert!(logged.contains("upstream"), "something was logged");
    assert!(!logged.contains("0123456789"), "{logged}");
}

/// Each of the four texts of OAuth 1.0a holds this; the text around it is
/// written otherwise in a header or in an address.
const KEPT: &str = "0123456789abcdefghijklmnop";

#[tokio::test]
async fn no_client_repeats_any_text_of_its_credential() {
    let (log, _guard) = Log::listen();

    let texts = ["ck", "cs", "7-at", "ts"].map(|name| format!("{name}+{KEPT}/="));
    let [ck, cs, at, ts] = &texts;
    let oauth = format!(
        "consumer_key={ck}\nconsumer_secret={cs}\naccess_token={at}\naccess_token_secret={ts}"
    );
    let account = Timeline::Account("7".into());
    let credentials = texts
        .iter()
        .map(|text| (text, text))
        .chain(texts.iter().map(|text| (text, &oauth)));
    for (echoed, credential) in credentials {
        let encoded = echoed
            .replace('+', "%2B")
            .replace('/', "%2F")
            .replace('=', "%3D");
        for echo in [echoed, &encoded] {
            for (status, body) in [
                (
                    "200 OK",
                    format!(
                        r#"{{"errors":[{{"code":999,"message":"{echo}","detail":"{echo}"}}]}}"#
                    ),
                ),
                ("200 OK", format!(r#"{{"data":[{{"id":"{echo}"}}]}}"#)),
                (
                    "200 OK",
                    format!(r#"[{{"id_str":"{echo}","id":{{"a":"{echo}"}}}}]"#),
                ),
                (
                    "200 OK",
                    format!(
                        r#"{{"id_str":"{echo}","screen_name":"{echo}","acct":"{echo}","data":{{"id":"42","username":"{echo}"}}}}"#
                    ),
                ),
                (
                    "403 Forbidden",
                    format!(r#"{{"title":"{echo}","detail":"{echo}"}}"#),
                ),
                (
                    "400 Bad Request",
                    format!(r#"{{"errors":[{{"message":"{echo}"}}]}}"#),
                ),
            ] {
                let server = Server::sending(answer(status, &[], &body)).await;
                for api in [Api::Mastodon, Api::X, Api::Twitter] {
                    if api == Api::Mastodon && *credential == oauth {
                        continue;
                    }
                    let client = server.upstream(api, credential);
                    let request = PageRequest::default();
                    let shown = [
                        format!("{client:?}"),
                        format!("{:?}", client.page(&account, &request).await.err()),
                        format!("{:?}", client.page(&Timeline::Home, &request).await.err()),
                        format!(
                            "{:?}",
                            client.look_up_many(&["5".into(), "6".into()]).await.err()
                        ),
                        format!("{:?}", client.has_batch_look_up(&"5".into()).await),
                        format!("{:?}", client.verify().await),
                    ];
                    for shown in shown {
                        assert!(!shown.contains(&KEPT[..10]), "{api}: {body}\ngave {shown}");
                    }
                }
            }
        }
    }
    let logged = log.text();
    assert!(logged.contains("upstream"), "something was logged");
    assert!(!logged.contains(&KEPT[..10]), "{logged}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collects what is logged until the guard is dropped.
    fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no panic")).to_ascii_lowercase()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
