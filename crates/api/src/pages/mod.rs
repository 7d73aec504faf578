//! Our own pages: logging in, consent, signing up. Made on the server, without JavaScript, in English,
//! Japanese and Portuguese.
//!
//! No page is stored or framed, nothing runs in it, and it loads nothing. A form carries a token made from
//! the browser's cookies, which no other site can read.

mod confirm;
pub(crate) mod cookies;
pub(crate) mod form_token;
mod language;
pub(crate) mod layout;
mod log_in;
mod session;
mod sign_up;
mod style;
mod texts;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};

pub(crate) use language::Language;
pub(crate) use session::{Browser, user_agent};

use crate::{
    App,
    oauth::{MAX_BODY_BYTES, authorize},
};

/// The pages. Requests from other sites' forms are refused before anything else is read.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/oauth/authorize",
            get(authorize::ask).post(authorize::decide),
        )
        .route("/log-in", get(log_in::show).post(log_in::submit))
        .route("/log-out", post(log_in::log_out))
        .route("/sign-up", get(sign_up::show).post(sign_up::submit))
        .route("/sign-up/resend", post(sign_up::resend))
        .route("/confirm", get(confirm::show).post(confirm::submit))
        .route_layer(middleware::from_fn(form_token::refuse_other_sites))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
}
