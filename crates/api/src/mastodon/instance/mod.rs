//! This server, and others that it knows.

mod empty_answers;
pub(crate) mod peers;
mod server_info;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// The routes of this server.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(server_info::v1))
        .routes(routes!(server_info::v2))
        .merge(peers::routes())
        .merge(empty_answers::routes())
}
