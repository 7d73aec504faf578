//! A server in this process, which counts its requests and the bytes of its answers.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    body::{Body, HttpBody as _},
    extract::{Request, State},
    http::{HeaderValue, header::CONTENT_LENGTH},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use driftline_api::router;
use driftline_mirror::SourceHealth;
use driftline_server::testing::app;
use driftline_store::{
    LocalAccountId, Store,
    sync::{Cursor, current_cursor},
};
use futures_util::TryStreamExt as _;
use tokio::runtime::Runtime;

use super::library::ACCOUNT;
use crate::{database::Place, failure::Failure, http, read::reader};

/// A store with an account, and its server.
pub(super) struct Server {
    runtime: Runtime,
    pub(super) store: Store,
    pub(super) account: LocalAccountId,
    pub(super) address: SocketAddr,
    counts: Arc<Counts>,
}

/// The requests that were answered, and the bytes of the answers' bodies as they were sent.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Server {
    pub(super) fn start(place: &Place, account: LocalAccountId) -> Result<Self, Failure> {
        let runtime = Runtime::new()?;
        let store = place.open()?;
        let counts = Arc::new(Counts::default());
        let app = runtime.block_on(async { app(&store, SourceHealth::default()) });
        let routes = router(app).layer(from_fn_with_state(Arc::clone(&counts), count));
        let address = http::serve(&runtime, routes)?;
        Ok(Self {
            runtime,
            store,
            account,
            address,
            counts,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Logs the account in; its token, which is valid for 15 minutes.
    pub(super) fn token(&self) -> Result<String, Failure> {
        reader::log_in_as(self.address, ACCOUNT)
    }

    /// The requests so far, and the bytes of their answers.
    pub(super) fn counted(&self) -> [f64; 2] {
        let Counts { requests, bytes } = &*self.counts;
        [requests, bytes].map(|count| count.load(Ordering::Relaxed) as f64)
    }

    /// The cursor of a replica that has all of the account's library.
    pub(super) fn cursor(&self) -> Result<Cursor, Failure> {
        let account = self.account;
        let cursor = self
            .store
            .read_blocking(move |tx| current_cursor(tx, account))?;
        Ok(cursor)
    }

    pub(super) fn close(self) {
        self.runtime.block_on(self.store.close());
    }
}

async fn count(State(counts): State<Arc<Counts>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    counts.requests.fetch_add(1, Ordering::Relaxed);
    let (mut head, body) = response.into_parts();
    // A stream does not say its length.
    if let Some(length) = body.size_hint().exact() {
        head.headers
            .insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let parts = body.into_data_stream().inspect_ok(move |part| {
        counts.bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
    });
    Response::from_parts(head, Body::from_stream(parts))
}
