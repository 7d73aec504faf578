//! OAuth 2.0, as Mastodon's apps use it: apps register themselves, send people to our page of consent, and
//! exchange a code for a token that does not expire.

mod apps;
pub(crate) mod authorize;
mod client;
mod error;
mod metadata;
mod redirect_uri;
mod revoke;
pub(crate) mod token;
mod user_info;

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// The routes that programs call, from pages of other sites too.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(apps::register))
        .routes(routes!(apps::verify))
        .routes(routes!(token::token))
        .routes(routes!(revoke::revoke))
        .routes(routes!(user_info::user_info))
        .routes(routes!(metadata::metadata))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}

/// Of requests whose parameters are short.
pub(crate) const MAX_BODY_BYTES: usize = 64 * 1024;
