//! Mastodon's API.

mod account_entities;
mod accounts;
mod answer;
mod filter_cache;
mod filter_params;
mod filters;
mod home;
mod instance;
mod list_timeline;
mod lists;
mod local_references;
mod markers;
mod marks;
mod notifications;
mod own_account;
mod page;
mod page_query;
mod relations;
mod search;
mod status;
mod statuses;
mod streaming;
mod tags;
mod timelines;
mod unwanted;
mod view;

use std::sync::Arc;

use axum::{Router, routing::get};

pub(crate) use filter_cache::FilterCache;
pub(crate) use streaming::StatusJson;

use crate::App;

/// The content type of every entity.
const JSON: &str = "application/json; charset=utf-8";

/// The routes that Mastodon documents.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/timelines/home", get(home::home))
        .route("/api/v1/timelines/public", get(timelines::public))
        .route("/api/v1/timelines/tag/{tag}", get(tags::timeline))
        .route("/api/v1/timelines/list/{id}", get(timelines::list))
        .route("/api/v1/statuses/{id}", get(statuses::one))
        .route("/api/v1/statuses/{id}/history", get(statuses::history))
        .route("/api/v1/instance", get(instance::v1))
        .route("/api/v2/instance", get(instance::v2))
        .merge(own_account::routes())
        .merge(accounts::routes())
        .merge(lists::routes())
        .merge(marks::routes())
        .merge(markers::routes())
        .merge(filters::routes())
        .merge(relations::routes())
        .merge(notifications::routes())
        .merge(search::routes())
        .merge(streaming::routes())
}
