//! Mastodon's API. A folder has the routes of one noun; `auth::RequestContext` is what a route knows of its request.
//!
//! | folder or file | noun |
//! |---|---|
//! | `accounts` | accounts as entities, by ID and by name; relations, mutes, the caller's own account |
//! | `statuses` | single posts: entities whose local IDs are filled in last, threads, bookmarks and favourites |
//! | `timelines` | home, public, lists, tags; posts that mutes and blocks hide; read markers |
//! | `filters`, `notifications` | filters of both versions and their cache; notifications, one by one and in groups |
//! | `instance` | this server, the servers that it knows, and answers that are always empty |
//! | `page`, `page_query`, `view` | pages of posts; their bounds and links; what posts say of their viewer |
//! | `streaming` | WebSockets and server-sent events |
//! | `entities`, `bodies` | descriptions for OpenAPI alone |

pub(crate) mod accounts;
pub(crate) mod answer;
mod bodies;
pub(crate) mod entities;
pub(crate) mod filters;
pub(crate) mod instance;
mod notifications;
pub(crate) mod page;
pub(crate) mod page_query;
mod search;
mod statuses;
pub(crate) mod streaming;
pub(crate) mod timelines;
pub(crate) mod values;
pub(crate) mod view;

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
