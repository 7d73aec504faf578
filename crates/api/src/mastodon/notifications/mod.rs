//! Notifications, one by one and in groups.

mod grouped;
mod notified_posts;
pub(super) mod ungrouped;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// The routes of notifications.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(ungrouped::routes())
        .merge(grouped::routes())
}
