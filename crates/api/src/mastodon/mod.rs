//! Mastodon's API.

mod answer;
pub(crate) mod entities;
mod instance;
mod lists;
mod local_references;
mod own_account;
mod page_query;
mod status;
mod statuses;
mod streaming;
mod timelines;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use streaming::StatusJson;

use crate::App;

/// The content type of every entity.
const JSON: &str = "application/json; charset=utf-8";

/// The routes that Mastodon documents.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(timelines::public))
        .routes(routes!(timelines::list))
        .routes(routes!(lists::all))
        .routes(routes!(lists::one))
        .routes(routes!(statuses::one))
        .routes(routes!(statuses::history))
        .routes(routes!(instance::v1))
        .routes(routes!(instance::v2))
        .merge(own_account::routes())
        .merge(streaming::routes())
}
