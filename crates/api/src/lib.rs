//! What is stored, as a Mastodon server would show it to someone who has not logged in.
//!
//! # What clients may rely on
//! - Only public posts are shown, in every timeline and by every ID.
//! - Lists (which reveal what the operator follows), metrics and everything that changes something
//!   need the operator's token, also on this machine: see [`auth`].
//! - IDs are local and only grow: in the public timeline and by themselves posts go by their own
//!   ID, in a list (a source) by their entry's. `/api/v1/statuses/` takes either.
//! - A source is a list once the requested history is stored. Before that neither
//!   `/api/v1/lists` nor its timeline knows it (404), since an empty page would read as an empty
//!   timeline.
//! - Every ID of a post or an account is local, in boosted and quoted posts and in unknown members
//!   too. What is not stored, or hidden, has one of the same kind, under which nothing is found (404)
//!   until it is shown: `docs/api.md`.
//! - A post is shown with all that its server says of it, members that Mastodon does not document
//!   included, in its order, but for what concerns the account whose token mirrors it
//!   (`favourited`, a poll's `voted`…). A boosted or quoted post that not everyone may see is
//!   `null`.
//! - HTML is cleaned by Mastodon's rules (`docs/api.md`).
//! - Posts are never written here, so `local=true` yields an empty page.

pub mod auth;
mod description;
pub mod feed;
pub mod find;
pub mod long_reads;
mod mastodon;
mod native;
mod node_info;
mod oauth;
mod own_instance;
mod pages;
pub mod people;
mod port;
mod sign_up;
pub mod transport;
mod web_finger;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::header::LINK,
    middleware::map_response_with_state,
    response::Response,
};
use driftline_runtime::{StoreFault, StoreProbe};
use driftline_store::Store;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;
use tower_http::{
    CompressionLevel,
    compression::{
        CompressionLayer,
        predicate::{NotForContentType, Predicate as _, SizeAbove},
    },
    cors::{AllowHeaders, Any, CorsLayer},
    trace::TraceLayer,
};
use tracing::Span;
use url::Url;
use utoipa::openapi::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use description::api_description;
pub use native::sources;
pub use own_instance::{ConfiguredInstance, OwnInstance};
pub use port::MirrorPort;

use auth::Authorization;
use feed::Feed;
use find::SearchBudget;
use people::People;
use transport::{ApiError, StoreFailure, TrustedProxies, refuse_undeclared_proxies};

/// What is served.
#[derive(Clone)]
pub struct App {
    /// Where posts are read.
    pub store: Store,
    /// What changes in it, for those who follow.
    pub feed: Feed,
    /// What reads upstreams.
    pub mirror: Arc<dyn MirrorPort>,
    /// The OpenAPI description of all that is served.
    pub description: OpenApi,
    /// What `/metrics` shows; without it the path answers 404.
    pub metrics: Option<PrometheusHandle>,
    /// The address that clients use. Without it links begin with `http` and the host that the
    /// client named, so behind a proxy that speaks TLS it has to be set.
    pub public_base: Option<Url>,
    /// The proxies before it.
    pub proxies: TrustedProxies,
    /// What this server says of itself.
    pub own: OwnInstance,
    /// Who may do more than read public posts.
    pub authorization: Authorization,
    /// What people's accounts, tokens and pages need.
    pub people: People,
    /// The limits of a search in one request.
    pub search_budget: SearchBudget,
    /// Outages of the store, which the process logs once.
    pub store_fault: StoreFault,
    /// Whether the process has begun its work; `/readyz` asks.
    pub ready: watch::Receiver<bool>,
}

/// The routes of the API.
pub fn router(app: App) -> Router {
    let app = Arc::new(app);
    let probe = StoreProbe::new(app.store.clone());
    let is_public = app.public_base.is_some();
    let groups = Groups::new();
    let routes = |group: OpenApiRouter<Arc<App>>| Router::from(group);
    let router = routes(groups.open)
        .fallback(async || ApiError::NotFound)
        .method_not_allowed_fallback(async || ApiError::MethodNotAllowed)
        .layer(
            CompressionLayer::new()
                .quality(CompressionLevel::Fastest)
                // An event must not wait until others fill a block.
                .compress_when(SizeAbove::new(MIN_COMPRESSED_BYTES).and(NotForContentType::SSE)),
        )
        .layer(
            CorsLayer::new()
                .allow_origin(Any)
                .allow_methods(Any)
                // The asterisk would not allow `Authorization` (Fetch, 4.9).
                .allow_headers(AllowHeaders::mirror_request())
                .expose_headers([LINK]),
        )
        .merge(routes(groups.own))
        .layer(map_response_with_state(Arc::clone(&app), record_outage))
        .layer(TraceLayer::new_for_http().make_span_with(request_span))
        // Not logged: probes come every second, and the answer says what is wrong.
        .merge(routes(groups.ready).layer(Extension(probe)))
        .with_state(app);
    match is_public {
        true => router,
        false => refuse_undeclared_proxies(router),
    }
}

/// All routes with their descriptions, by how they are served. This is the one place that lists them.
struct Groups {
    /// Their answers are compressed, and pages of other sites may ask for them.
    open: OpenApiRouter<Arc<App>>,
    /// No page of another site may ask for them.
    own: OpenApiRouter<Arc<App>>,
    /// Not logged.
    ready: OpenApiRouter<Arc<App>>,
}

impl Groups {
    fn new() -> Self {
        Self {
            open: mastodon::routes()
                .merge(native::routes())
                .merge(description::routes())
                .merge(node_info::routes())
                .merge(web_finger::routes())
                .merge(oauth::routes()),
            own: native::track::routes()
                .merge(native::session::routes())
                .merge(native::sources::routes())
                .merge(pages::routes()),
            ready: OpenApiRouter::new().routes(routes!(native::health::ready)),
        }
    }
}

/// Of one outage all requests fail that need the store.
async fn record_outage(State(app): State<Arc<App>>, mut answer: Response) -> Response {
    if let Some(StoreFailure(failure)) = answer.extensions_mut().remove() {
        app.store_fault.failed(&failure);
    }
    answer
}

/// Without the query, which may hold a token, a code or what a mail confirms.
fn request_span(request: &Request) -> Span {
    tracing::debug_span!("request", method = %request.method(), path = request.uri().path())
}

const MIN_COMPRESSED_BYTES: u64 = 1024;
