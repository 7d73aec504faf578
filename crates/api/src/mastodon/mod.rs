//! Mastodon's API.

mod accounts;
pub(crate) mod answer;
mod bodies;
pub(crate) mod entities;
pub(crate) mod filters;
pub(crate) mod instance;
mod notifications;
mod page;
mod page_query;
mod search;
mod statuses;
pub(crate) mod streaming;
mod timelines;
mod values;
mod view;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::App;

/// The routes that Mastodon documents.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .merge(timelines::routes())
        .merge(statuses::routes())
        .merge(instance::routes())
        .merge(accounts::routes())
        .merge(filters::routes())
        .merge(notifications::routes())
        .merge(search::routes())
        .merge(streaming::routes())
}
