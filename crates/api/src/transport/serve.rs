use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use driftline_runtime::FaultLog;
use hyper::server::conn::http1::Builder;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    time::timeout,
};
use tower_http::{
    add_extension::AddExtension, map_request_body::MapRequestBody, normalize_path::NormalizePath,
};

use super::{
    ConnectionEnds, TrustedProxies, accept, connection_counts::ConnectionCounts,
    timed_body::timed_body,
};

/// Limits on connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at a time; more wait until one has ended.
    pub connections: usize,
    /// How long a connection may wait for a complete request header, at its beginning and between
    /// requests, before it is closed, and for the next part of a body.
    pub silence: Duration,
    /// The longest time for a request's whole body.
    pub body: Duration,
    /// The proxies, whose connections are only limited together.
    pub proxies: TrustedProxies,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_000,
            silence: Duration::from_secs(15),
            body: Duration::from_secs(60),
            proxies: TrustedProxies::default(),
        }
    }
}

/// Serves HTTP/1.1 until `shutdown` is done and the requests in flight are answered, or some seconds
/// have passed. A slash at the end of a path changes nothing: Mastodon.py writes some.
///
/// # Errors
/// The listener's.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listening = listener.local_addr()?;
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.silence);
    let (ending, _) = watch::channel(());
    let room = Arc::new(Semaphore::new(limits.connections));
    let most = (limits.connections / SHARE).max(MIN_SHARE);
    let counts = ConnectionCounts::new(most, limits.proxies.clone());
    let mut has_refused = false;
    let mut shutdown = pin!(shutdown);
    // Not a layer of the router: those run after the route is chosen.
    let router = NormalizePath::trim_trailing_slash(router);
    let mut accepting = FaultLog::default();
    loop {
        let next = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (
                permit,
                accept(&listener, "HTTP", &mut accepting, || {}).await,
            )
        };
        let (permit, stream) = tokio::select! {
            next = next => next,
            () = &mut shutdown => break,
        };
        // A connection that broke meanwhile has no other end.
        let Ok(peer) = stream.peer_addr().map(|peer| peer.ip()) else {
            continue;
        };
        let local = stream.local_addr().unwrap_or(listening);
        let Some(counted) = counts.count(peer) else {
            if !std::mem::replace(&mut has_refused, true) {
                tracing::warn!(
                    %peer,
                    "an address has its share of HTTP connections, and more are closed; if it is a proxy, name it in server.trusted_proxies"
                );
            }
            continue;
        };
        let service = AddExtension::new(router.clone(), ConnectionEnds { peer, local });
        let service = MapRequestBody::new(service, move |body| {
            timed_body(body, limits.silence, limits.body)
        });
        let service = TowerToHyperService::new(service);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut ending = ending.subscribe();
        tokio::spawn(async move {
            let mut connection = pin!(connection.with_upgrades());
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                _ = ending.changed() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP connection broke");
            }
            drop((permit, counted));
        });
    }
    drop(listener);
    ending.send_replace(());
    // All permits are back once every connection has ended.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    if timeout(GRACE, room.acquire_many(all)).await.is_err() {
        tracing::warn!("the server stopped with requests in flight");
    }
    Ok(())
}

/// One address has at most this fraction (1/8) of all connections.
const SHARE: usize = 8;
/// The least limit for one address.
const MIN_SHARE: usize = 64;
const GRACE: Duration = Duration::from_secs(4);
