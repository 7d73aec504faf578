//! What keeps an answer from coming whole, and what does not.

use std::{
    io::Write as _,
    time::{Duration, Instant},
};

use driftline_core::{answer::FailureKind, api::Api};
use driftline_net::{Http, Options};
use driftline_upstream::{Address, Credential, Upstream};

use crate::server::{
    JSON, PAGE, Reply, Server, answer, client, failure_of, head, home, ids, options,
};

#[tokio::test]
async fn compressed_bodies() {
    for (encoding, body) in [("gzip", gzip(PAGE.as_bytes())), ("br", br(PAGE.as_bytes()))] {
        let encoding = format!("Content-Encoding: {encoding}");
        let server = Server::sending(answer("200 OK", &[JSON, &encoding], &body)).await;
        let page = home(&server.client()).await.expect("a page");
        assert_eq!(ids(&page), ["2", "1"]);

        let cut = &body[..body.len() - 9];
        let failure = failure_of(answer("200 OK", &[JSON, &encoding], cut)).await;
        assert_eq!(
            failure.kind,
            FailureKind::Truncated,
            "{encoding}: {failure}"
        );
    }
    let noise = answer("200 OK", &["Content-Encoding: gzip"], "[no gzip at all]");
    let failure = failure_of(noise).await;
    assert_eq!(failure.kind, FailureKind::NotJson, "{failure}");
}

#[tokio::test]
async fn compression_bombs_are_left_at_the_cap() {
    let bomb = vec![b' '; 64 * 1024 * 1024];
    for (encoding, body) in [("gzip", gzip(&bomb)), ("br", br(&bomb))] {
        assert!(body.len() < 1024 * 1024);
        let encoding = format!("Content-Encoding: {encoding}");
        let failure = failure_of(answer("200 OK", &[JSON, &encoding], &body)).await;
        assert_eq!(failure.kind, FailureKind::TooLarge, "{encoding}: {failure}");
    }
}

#[tokio::test]
async fn bodies_up_to_the_cap_and_one_byte_more() {
    for (padding, fits) in [(0, true), (1, false)] {
        let body = format!("{PAGE}{}", " ".repeat(padding));
        let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        let mut unannounced = head("200 OK", &["Transfer-Encoding: chunked"]);
        unannounced.extend_from_slice(chunked.as_bytes());
        for bytes in [answer("200 OK", &[], &body), unannounced] {
            let server = Server::sending(bytes).await;
            let options = Options {
                max_body_bytes: PAGE.len(),
                ..options()
            };
            let outcome = home(&server.client_with(options, None)).await;
            match outcome {
                Ok(page) => assert!(fits && page.listed.len() == 2),
                Err(failure) => {
                    assert!(!fits, "{failure}");
                    assert_eq!(failure.kind, FailureKind::TooLarge);
                    assert!(failure.message.contains("max_body_bytes"), "{failure}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_page_that_is_too_large_is_asked_for_in_parts() {
    let server = Server::start(|request| {
        let limit = request.split("limit=").nth(1).expect("a limit");
        let digits: String = limit.chars().take_while(char::is_ascii_digit).collect();
        let is_short = digits.parse::<u16>().expect("a number") <= 2;
        let padding = if is_short { 0 } else { 1 };
        Reply::Bytes(answer(
            "200 OK",
            &[JSON],
            format!("{PAGE}{}", " ".repeat(padding)),
        ))
    });
    let server = server.await;
    let options = Options {
        max_body_bytes: PAGE.len(),
        ..options()
    };
    let page = home(&server.client_with(options, None))
        .await
        .expect("a page");
    assert_eq!(page.listed.len(), 2);
    assert!(server.requests().len() > 1);
}

#[tokio::test]
async fn bodies_that_end_early() {
    let mut announced = head(
        "200 OK",
        &[JSON, &format!("Content-Length: {}", PAGE.len() + 1)],
    );
    announced.extend_from_slice(PAGE.as_bytes());
    let mut chunked = head("200 OK", &[JSON, "Transfer-Encoding: chunked"]);
    chunked.extend_from_slice(format!("{:x}\r\n{PAGE}\r\n", PAGE.len()).as_bytes());
    for bytes in [announced, chunked] {
        let failure = failure_of(bytes).await;
        assert_eq!(failure.kind, FailureKind::Truncated, "{failure}");
    }
}

#[tokio::test]
async fn a_body_announced_as_too_large_is_not_waited_for() {
    let bytes = head("200 OK", &[JSON, "Content-Length: 8388609"]);
    let server = Server::start(move |_| Reply::BytesThenSilence(bytes.clone())).await;
    let failure = home(&server.client()).await.expect_err("too large");
    assert_eq!(failure.kind, FailureKind::TooLarge, "{failure}");
}

#[tokio::test]
async fn connections_that_break_before_an_answer() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Type: app",
        "SSH-2.0-OpenSSH_9.6\r\n",
    ] {
        let failure = failure_of(bytes).await;
        assert_eq!(failure.kind, FailureKind::Unreachable, "{bytes}: {failure}");
    }
    let server = Server::sending("").await;
    let closed = server.client();
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let failure = home(&closed).await.expect_err("no listener");
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(
        failure.message.contains("check that the server is up"),
        "{failure}"
    );

    let unknown = client("http://no-such-host.invalid", options(), None);
    let failure = home(&unknown).await.expect_err("no such name");
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(failure.message.contains("cannot be resolved"), "{failure}");
}

#[tokio::test]
async fn silence_and_dripping_end_in_time() {
    let mut some = head("200 OK", &[JSON, "Content-Length: 100000"]);
    some.extend_from_slice(b"[");
    let long = Duration::from_secs(60);
    let short = Duration::from_millis(200);
    type MakeReply = fn(Vec<u8>) -> Reply;
    let cases: [(MakeReply, Duration, Duration); 3] = [
        (|_| Reply::BytesThenSilence(Vec::new()), short, long),
        (Reply::BytesThenSilence, short, long),
        (Reply::BytesThenDrip, long, short),
    ];
    for (reply, read_timeout, total_timeout) in cases {
        let bytes = some.clone();
        let server = Server::start(move |_| reply(bytes.clone())).await;
        let options = Options {
            read_timeout,
            total_timeout,
            ..options()
        };
        let began = Instant::now();
        let failure = home(&server.client_with(options, None))
            .await
            .expect_err("too slow");
        assert_eq!(failure.kind, FailureKind::TimedOut, "{failure}");
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn redirects_of_the_same_server_are_followed() {
    let server = Server::start(|request| {
        Reply::Bytes(if request.starts_with("GET /moved") {
            answer("200 OK", &[JSON], PAGE)
        } else {
            answer("307 Temporary Redirect", &["Location: /moved?x=1"], "")
        })
    })
    .await;
    let client = server.client_with(options(), Some("secret-token"));
    assert_eq!(home(&client).await.expect("a page").listed.len(), 2);
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].contains("Bearer secret-token"));

    let in_circles = Server::sending(answer("302 Found", &["Location: /again"], "")).await;
    let failure = home(&in_circles.client()).await.expect_err("a circle");
    assert_eq!(failure.kind, FailureKind::Redirected);
    assert_eq!(in_circles.requests().len(), 6);
}

#[tokio::test]
async fn redirects_elsewhere_are_not_followed() {
    let other = Server::sending(answer("200 OK", &[JSON], PAGE)).await;
    let port = other.port();
    for location in [
        format!("http://localhost:{port}/"),
        format!("http://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://me:pw@127.0.0.1/".to_owned(),
        "http://".to_owned(),
    ] {
        let location = format!("Location: {location}");
        let failure = failure_of(answer("301 Moved Permanently", &[&location], "")).await;
        assert_eq!(
            failure.kind,
            FailureKind::Redirected,
            "{location}: {failure}"
        );
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn private_addresses_are_refused_unless_allowed() {
    let server = Server::sending(answer("200 OK", &[JSON], PAGE)).await;
    let port = server.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
    ] {
        let options = Options {
            allow_private: false,
            ..options()
        };
        let failure = home(&client(&format!("http://{host}:{port}"), options, None))
            .await
            .expect_err("refused");
        assert_eq!(
            failure.kind,
            FailureKind::PrivateAddress,
            "{host}: {failure}"
        );
        for advice in ["--allow-private", "upstream.allow_private"] {
            assert!(failure.message.contains(advice), "{failure}");
        }
    }
    assert_eq!(server.requests().len(), 0);
    let by_name = client(&format!("http://localhost:{port}"), options(), None);
    assert_eq!(home(&by_name).await.expect("a page").listed.len(), 2);
}

#[tokio::test]
async fn a_trusted_server_is_reached_at_its_private_address_and_no_other() {
    let page = || answer("200 OK", &[JSON], PAGE);
    let (trusted, other) = (Server::sending(page()).await, Server::sending(page()).await);
    let guarded = Http::new(Options {
        allow_private: false,
        ..options()
    });
    let guarded = guarded.expect("a client");
    // By its name too: the resolver decides there.
    let by_name = format!("http://localhost:{}", trusted.port());
    for address in [trusted.address(), by_name] {
        let address: Address = address.parse().expect("an address");
        let http = guarded.trusting(address.url()).expect("a client");
        let token = || Credential::Bearer("secret-token".to_owned().into());
        let of = |http: &Http, address: &Address, credential| {
            Upstream::new(Api::Mastodon, http.clone(), address.clone(), credential)
        };
        let client = of(&http, &address, token()).expect("a token over plain http");
        assert_eq!(home(&client).await.expect("a page").listed.len(), 2);
        let elsewhere: Address = other.address().parse().expect("an address");
        assert!(of(&http, &elsewhere, token()).is_err());
        for (http, address) in [(&http, &elsewhere), (&guarded, &address)] {
            let client = of(http, address, Credential::None).expect("no token");
            let failure = home(&client).await.expect_err("refused");
            assert_eq!(failure.kind, FailureKind::PrivateAddress, "{failure}");
        }
    }
    assert_eq!((trusted.requests().len(), other.requests().len()), (2, 0));
    let location = format!("Location: {}/x", other.address());
    let moved = Server::sending(answer("301 Moved Permanently", &[&location], "")).await;
    let address: Address = moved.address().parse().expect("an address");
    let http = guarded.trusting(address.url()).expect("a client");
    let client = Upstream::new(Api::Mastodon, http, address, Credential::None);
    let failure = home(&client.expect("no token")).await.expect_err("refused");
    assert_eq!(failure.kind, FailureKind::Redirected, "{failure}");
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn one_client_serves_many_servers() {
    let http = Http::new(options()).expect("a client");
    for _ in 0..20 {
        let server = Server::sending(answer("200 OK", &[JSON], PAGE)).await;
        let address = server.address().parse().expect("an address");
        let client = Upstream::new(Api::Mastodon, http.clone(), address, Credential::None);
        let client = client.expect("no token");
        assert_eq!(home(&client).await.expect("a page").listed.len(), 2);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn br(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    brotli::CompressorWriter::new(&mut compressed, 4096, 5, 22)
        .write_all(bytes)
        .expect("memory");
    compressed
}
