//! Driftline's own routes.

mod find;
pub(crate) mod health;
mod instances;
mod list_feed;
pub(crate) mod session;
pub mod sources;
pub(crate) mod stream;
pub(crate) mod sync;
pub(crate) mod track;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::App;

/// The routes whose answers are compressed and which pages of other sites may ask for.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(health::live))
        .routes(routes!(health::metrics))
        .merge(find::routes())
        .merge(instances::routes())
        .merge(list_feed::routes())
        .merge(stream::routes())
        .merge(sync::routes())
}
