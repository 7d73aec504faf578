//! Our own pages: what this server is, logging in, consent, signing up. Made on the server, without JavaScript, in English,
//! Japanese and Portuguese.
//!
//! No page is stored or framed, nothing runs in it, and it loads nothing. A form carries a token made from
//! the browser's cookies, which no other site can read.

mod confirm;
pub(crate) mod cookies;
pub(crate) mod form_token;
mod landing;
pub(crate) mod language;
pub(crate) mod layout;
mod log_in;
pub(crate) mod scope_words;
pub(crate) mod session;
mod sign_up;
mod style;
mod texts;

use std::sync::Arc;

use axum::{extract::DefaultBodyLimit, middleware};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    oauth::{MAX_BODY_BYTES, authorize},
};

/// The pages. Requests from other sites' forms are refused before anything else is read.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(landing::server))
        .routes(routes!(landing::account))
        .routes(routes!(landing::tag))
        .routes(routes!(landing::icon))
        .routes(routes!(landing::favicon))
        .routes(routes!(authorize::ask, authorize::decide))
        .routes(routes!(log_in::show, log_in::submit))
        .routes(routes!(log_in::log_out))
        .routes(routes!(sign_up::show, sign_up::submit))
        .routes(routes!(sign_up::resend))
        .routes(routes!(confirm::show, confirm::submit))
        .route_layer(middleware::from_fn(form_token::refuse_other_sites))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}
