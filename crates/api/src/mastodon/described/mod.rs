//! The description of Mastodon's routes: each function has the path, the parameters and the answers of
//! one, and nothing else. `mastodon::routes` joins them to what answers.

#![allow(dead_code, reason = "only their descriptions are used")]

pub(crate) mod entities;

use utoipa::IntoParams;

use crate::{
    native::ids::{ListId, StatusId},
    transport::Problem,
};
use entities::{InstanceV1, InstanceV2, List, Status, StatusEdit};

/// Which part of a timeline.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
struct PageParams {
    /// Only what is older than that.
    #[param(value_type = Option<StatusId>)]
    max_id: Option<String>,
    /// Only what is newer than that; the newest of it.
    #[param(value_type = Option<StatusId>)]
    since_id: Option<String>,
    /// Only what is newer than that; the oldest of it.
    #[param(value_type = Option<StatusId>)]
    min_id: Option<String>,
    /// How many, at most 40; 20 without it.
    #[param(minimum = 1, maximum = 40)]
    limit: Option<u16>,
    /// Only statuses with media of their own.
    only_media: Option<bool>,
}

/// Which of the public timeline.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
struct PublicParams {
    /// Only statuses that were written here.
    local: Option<bool>,
    /// Only statuses of other servers: all are.
    remote: Option<bool>,
}

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
struct StreamParams {
    /// Only statuses with media of their own.
    only_media: Option<bool>,
}

/// The public posts of every source, newest first.
#[utoipa::path(
    get, path = "/api/v1/timelines/public", tag = "timelines", params(PublicParams, PageParams), security(()),
    responses(
        (status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))),
        (status = 400, body = Problem),
    )
)]
fn public_timeline() {}

/// The posts of a list.
#[utoipa::path(
    get, path = "/api/v1/timelines/list/{id}", tag = "timelines",
    params(("id" = ListId, Path), PageParams), security(("operator" = [])),
    responses(
        (status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))),
        (status = 400, body = Problem),
        (status = 404, body = Problem),
    )
)]
fn list_timeline() {}

/// The lists: the sources whose requested history is stored.
#[utoipa::path(get, path = "/api/v1/lists", tag = "lists", security(("operator" = [])), responses((status = 200, body = [List])))]
fn lists() {}

/// A list.
#[utoipa::path(
    get, path = "/api/v1/lists/{id}", tag = "lists", params(("id" = ListId, Path)), security(("operator" = [])),
    responses((status = 200, body = List), (status = 404, body = Problem))
)]
fn list() {}

/// A status.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}", tag = "statuses", params(("id" = StatusId, Path)), security(()),
    responses((status = 200, body = Status), (status = 404, body = Problem, description = "It is unknown, or not for this client"))
)]
fn status() {}

/// The versions of a status, the oldest first, the one that is shown now at the end.
#[utoipa::path(
    get, path = "/api/v1/statuses/{id}/history", tag = "statuses", params(("id" = StatusId, Path)), security(()),
    responses((status = 200, body = [StatusEdit]), (status = 404, body = Problem))
)]
fn status_history() {}

/// This server, in the form of Mastodon's version 1.
#[utoipa::path(get, path = "/api/v1/instance", tag = "server", security(()), responses((status = 200, body = InstanceV1)))]
fn instance_v1() {}

/// This server.
#[utoipa::path(get, path = "/api/v2/instance", tag = "server", security(()), responses((status = 200, body = InstanceV2)))]
fn instance_v2() {}

/// A WebSocket, over which a client subscribes to streams. `list` needs the operator's token.
#[utoipa::path(
    get, path = "/api/v1/streaming", tag = "streaming", security(()),
    params(
        ("stream" = Option<String>, Query, description = "The first stream: `public`, `public:local`, `public:remote`, each with `:media`; `list`"),
        ("list" = Option<ListId>, Query, description = "Which list"),
        ("access_token" = Option<String>, Query, description = "A token, for clients that cannot send headers"),
    ),
    responses(
        (status = 101, description = "The WebSocket is open"),
        (status = 400, body = Problem, description = "No WebSocket, or no such stream"),
        (status = 401, body = Problem),
    )
)]
fn streaming() {}

/// Whether streams are served.
#[utoipa::path(get, path = "/api/v1/streaming/health", tag = "streaming", security(()), responses((status = 200, body = String, content_type = "text/plain")))]
fn streaming_health() {}

/// What comes into the public timeline, as server-sent events `update`, `status.update` and `delete`.
#[utoipa::path(
    get, path = "/api/v1/streaming/public", tag = "streaming", params(StreamParams), security(()),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem))
)]
fn streaming_public() {}

/// The same of statuses that were written here: none.
#[utoipa::path(
    get, path = "/api/v1/streaming/public/local", tag = "streaming", params(StreamParams), security(()),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem))
)]
fn streaming_local() {}

/// The same of statuses of other servers: all.
#[utoipa::path(
    get, path = "/api/v1/streaming/public/remote", tag = "streaming", params(StreamParams), security(()),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem))
)]
fn streaming_remote() {}

/// What comes into a list.
#[utoipa::path(
    get, path = "/api/v1/streaming/list", tag = "streaming", params(("list" = ListId, Query)), security(("operator" = [])),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 404, body = Problem),
        (status = 503, body = Problem),
    )
)]
fn streaming_list() {}
