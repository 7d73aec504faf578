//! Certificates are verified, and there is no way around it.

use std::{io::Write, net::TcpListener, sync::Arc, thread};

use crate::server::{Server, client, options};
use driftline_core::answer::{FailureKind, PageRequest};
use driftline_upstream::Timeline;
use rustls::{ServerConfig, ServerConnection, Stream, pki_types::PrivateKeyDer};

async fn kind_and_message(port: u16) -> (FailureKind, String) {
    let client = client(&format!("https://localhost:{port}"), options(), None);
    let failure = client
        .page(&Timeline::Public, &PageRequest::default())
        .await
        .expect_err("not trusted");
    (failure.kind, failure.message)
}

#[tokio::test]
async fn an_unknown_certificate_is_refused() {
    let port = self_signed_server();
    let (kind, message) = kind_and_message(port).await;
    assert_eq!(kind, FailureKind::Tls, "{message}");
    assert!(message.contains("certificate"), "{message}");
}

#[tokio::test]
async fn a_server_without_tls_is_reported() {
    for bytes in ["HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", ""] {
        let server = Server::start_at_once(bytes).await;
        let (kind, message) = kind_and_message(server.port()).await;
        assert_eq!(kind, FailureKind::Tls, "{bytes}: {message}");
    }
}

/// Serves TLS under a self-signed certificate, for `localhost`.
fn self_signed_server() -> u16 {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let mut tls = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            // The client is expected to break off.
            let _ = Stream::new(&mut tls, &mut socket)
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]");
        }
    });
    port
}
