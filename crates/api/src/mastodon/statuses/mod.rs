//! Single posts: their entities, their threads, and what accounts do to them.

mod by_id;
pub(super) mod entity_template;
pub(super) mod local_references;
mod marked_posts;
mod threads;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// The routes of single posts.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(by_id::several))
        .routes(routes!(by_id::one))
        .routes(routes!(by_id::history))
        .merge(marked_posts::routes())
        .merge(threads::routes())
}
