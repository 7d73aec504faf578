//! Timelines, the lists that some of them show, and how far they were read.

pub(crate) mod hidden_posts;
pub(super) mod home;
pub(super) mod list_timeline;
pub(super) mod lists;
mod markers;
pub(super) mod public;
pub(super) mod tags;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// The routes of timelines.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(home::home))
        .routes(routes!(public::public))
        .routes(routes!(list_timeline::list))
        .routes(routes!(tags::timeline))
        .routes(routes!(tags::one))
        .merge(lists::routes())
        .routes(routes!(markers::some, markers::set))
}
