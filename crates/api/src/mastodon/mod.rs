//! Mastodon's API.

mod account_entities;
mod accounts;
mod answer;
mod bodies;
pub(crate) mod entities;
mod filter_cache;
mod filter_params;
mod filters;
mod filters_v1;
mod grouped_notifications;
mod home;
mod instance;
mod list_timeline;
mod lists;
mod local_references;
mod markers;
mod marks;
mod nothing;
mod notifications;
mod notified_posts;
mod own_account;
mod page;
mod page_query;
mod peers;
mod related_accounts;
mod relations;
mod search;
mod status;
mod statuses;
mod streaming;
mod tags;
mod threads;
mod timelines;
mod unwanted;
mod view;

use std::sync::Arc;

use utoipa_axum::{router::OpenApiRouter, routes};

pub(crate) use filter_cache::FilterCache;
pub(crate) use peers::{PeerCache, known_hosts};
pub(crate) use streaming::SharedMessages;

use crate::App;

/// The content type of every entity.
const JSON: &str = "application/json; charset=utf-8";

/// The routes that Mastodon documents.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(home::home))
        .routes(routes!(timelines::public))
        .routes(routes!(tags::timeline))
        .routes(routes!(tags::one))
        .routes(routes!(timelines::list))
        .routes(routes!(statuses::several))
        .routes(routes!(statuses::one))
        .routes(routes!(statuses::history))
        .routes(routes!(instance::v1))
        .routes(routes!(instance::v2))
        .merge(peers::routes())
        .merge(nothing::routes())
        .merge(own_account::routes())
        .merge(accounts::routes())
        .merge(lists::routes())
        .merge(marks::routes())
        .merge(markers::routes())
        .merge(filters::routes())
        .merge(filters_v1::routes())
        .merge(relations::routes())
        .merge(notifications::routes())
        .merge(grouped_notifications::routes())
        .merge(search::routes())
        .merge(threads::routes())
        .merge(streaming::routes())
}
