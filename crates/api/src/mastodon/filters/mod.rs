//! Filters of posts, in both versions of Mastodon's API.

pub(crate) mod cache;
mod params;
mod v1;
mod v2;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// The routes of filters.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().merge(v2::routes()).merge(v1::routes())
}
