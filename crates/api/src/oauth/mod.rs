//! OAuth 2.0, as Mastodon's apps use it: apps register themselves, send people to our page of consent, and
//! exchange a code for a token that does not expire.

mod apps;
pub(crate) mod authorize;
mod client;
mod error;
mod metadata;
mod redirect_uri;
mod revoke;
mod token;
mod user_info;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    routing::{get, post},
};

pub(crate) use token::give;

use crate::App;

/// The routes that programs call, from pages of other sites too.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/apps", post(apps::register))
        .route("/api/v1/apps/verify_credentials", get(apps::verify))
        .route("/oauth/token", post(token::token))
        .route("/oauth/revoke", post(revoke::revoke))
        .route("/oauth/userinfo", get(user_info::user_info))
        .route(
            "/.well-known/oauth-authorization-server",
            get(metadata::metadata),
        )
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Of requests whose parameters are short.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;
