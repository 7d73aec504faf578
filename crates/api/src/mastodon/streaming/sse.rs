use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{
    extract::Query,
    http::HeaderMap,
    response::{
        IntoResponse as _,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    channel::{Channel, Timeline},
    follower::{Follower, check},
    message::Message,
};
use crate::{
    auth::{LoggedIn, MayRead, OperatorOrAccount, RequestContext, caller::authenticate, needs},
    description::ids::ListId,
    transport::{ApiError, ApiResult, Problem},
};

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
struct MediaParams {
    /// Only statuses with media of their own.
    only_media: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct StreamQuery {
    only_media: Option<String>,
    list: Option<String>,
}

impl StreamQuery {
    fn only_media(&self) -> bool {
        let given = self.only_media.as_deref();
        given.is_some_and(|given| matches!(given, "1" | "t" | "true" | "on"))
    }
}

/// What comes into the public timeline, as server-sent events `update`, `status.update` and `delete`.
#[utoipa::path(
    get, path = "/api/v1/streaming/public", tag = "streaming", params(MediaParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn public(
    reader: MayRead<needs::ReadStatuses>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> ApiResult {
    let channel = (Timeline::Public, query.only_media());
    answer(&reader, headers, channel).await
}

/// What comes into the public timeline from other servers: all of it.
#[utoipa::path(
    get, path = "/api/v1/streaming/public/remote", tag = "streaming", params(MediaParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn remote(
    reader: MayRead<needs::ReadStatuses>,
    query: Query<StreamQuery>,
    headers: HeaderMap,
) -> ApiResult {
    public(reader, query, headers).await
}

/// What is written here: nothing.
#[utoipa::path(
    get, path = "/api/v1/streaming/public/local", tag = "streaming", params(MediaParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn local(
    reader: MayRead<needs::ReadStatuses>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> ApiResult {
    let channel = (Timeline::Local, query.only_media());
    answer(&reader, headers, channel).await
}

/// What comes into the home timeline, and notifications.
#[utoipa::path(
    get, path = "/api/v1/streaming/user", tag = "streaming", security(("account" = ["read:statuses"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn user(caller: LoggedIn<needs::ReadStatuses>, headers: HeaderMap) -> ApiResult {
    answer(&caller, headers, (Timeline::User, false)).await
}

/// The notifications of the account.
#[utoipa::path(
    get, path = "/api/v1/streaming/user/notification", tag = "streaming", security(("account" = ["read:notifications"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn user_notifications(
    caller: LoggedIn<needs::ReadNotifications>,
    headers: HeaderMap,
) -> ApiResult {
    answer(&caller, headers, (Timeline::Notifications, false)).await
}

/// What comes into a list of the account's own; into a source for the operator.
#[utoipa::path(
    get, path = "/api/v1/streaming/list", tag = "streaming", params(("list" = ListId, Query)),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 404, body = Problem),
        (status = 422, body = Problem, description = "The predicate of the list cannot be read"),
        (status = 503, body = Problem, description = "Too many follow already"),
    ),
)]
pub(super) async fn list(
    reader: OperatorOrAccount<needs::ReadLists>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> ApiResult {
    let channel = Channel::named("list", query.list.as_deref()).ok_or(ApiError::NotFound)?;
    let caller = authenticate(&headers, &reader.app).await?;
    check(&reader.app, channel, &caller).await?;
    answer(&reader, headers, (channel.timeline, false)).await
}

async fn answer(
    context: &RequestContext,
    headers: HeaderMap,
    (timeline, only_media): (Timeline, bool),
) -> ApiResult {
    let channel = Channel {
        timeline,
        only_media,
    };
    let follower = Follower::new(context.clone(), headers, vec![channel]).await?;
    let events = stream::unfold(
        (follower, VecDeque::new()),
        |(mut follower, mut waiting)| async move {
            let message = next(&mut follower, &mut waiting).await?;
            let event = Event::default().event(message.event).data(message.payload);
            Some((Ok::<_, Infallible>(event), (follower, waiting)))
        },
    );
    let alive = KeepAlive::new().interval(SILENCE).text("thump");
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

/// The next message; `None` at the end.
async fn next(follower: &mut Follower, waiting: &mut VecDeque<Message>) -> Option<Message> {
    loop {
        if let Some(message) = waiting.pop_front() {
            return Some(message);
        }
        let happening = follower.wait().await;
        let found = follower.messages(happening).await?;
        waiting.extend(found.into_iter().map(|(_, message)| message));
    }
}

pub(super) const SILENCE: Duration = Duration::from_secs(15);
