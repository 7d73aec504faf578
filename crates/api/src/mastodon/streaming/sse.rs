use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{Query, State},
    http::HeaderMap,
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use driftline_core::feed::ChangeKinds;
use driftline_store::timeline::Viewer;
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    channel::{Channel, Timeline},
    follower::{Follower, check},
    message::Message,
};
use crate::{
    App,
    auth::{LoggedIn, MayRead, OperatorOrAccount, caller::authenticate, needs},
    description::ids::ListId,
    feed::Selection,
    transport::{Address, ApiError, Problem},
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
    MayRead(caller, _): MayRead<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    Query(query): Query<StreamQuery>,
    client: Client,
) -> Result<Response, ApiError> {
    let channel = (Timeline::Public, query.only_media());
    client.answer(app, caller.viewer(), channel).await
}

/// What comes into the public timeline from other servers: all of it.
#[utoipa::path(
    get, path = "/api/v1/streaming/public/remote", tag = "streaming", params(MediaParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn remote(
    reader: MayRead<needs::ReadStatuses>,
    app: State<Arc<App>>,
    query: Query<StreamQuery>,
    client: Client,
) -> Result<Response, ApiError> {
    public(reader, app, query, client).await
}

/// What is written here: nothing.
#[utoipa::path(
    get, path = "/api/v1/streaming/public/local", tag = "streaming", params(MediaParams),
    security((), ("account" = ["read:statuses"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn local(
    MayRead(caller, _): MayRead<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    Query(query): Query<StreamQuery>,
    client: Client,
) -> Result<Response, ApiError> {
    let channel = (Timeline::Local, query.only_media());
    client.answer(app, caller.viewer(), channel).await
}

/// What comes into the home timeline, and notifications.
#[utoipa::path(
    get, path = "/api/v1/streaming/user", tag = "streaming", security(("account" = ["read:statuses"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn user(
    caller: LoggedIn<needs::ReadStatuses>,
    State(app): State<Arc<App>>,
    client: Client,
) -> Result<Response, ApiError> {
    let viewer = Viewer::Account(caller.account.id);
    client.answer(app, viewer, (Timeline::User, false)).await
}

/// The notifications of the account.
#[utoipa::path(
    get, path = "/api/v1/streaming/user/notification", tag = "streaming", security(("account" = ["read:notifications"])),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 503, body = Problem, description = "Too many follow already")),
)]
pub(super) async fn user_notifications(
    caller: LoggedIn<needs::ReadNotifications>,
    State(app): State<Arc<App>>,
    client: Client,
) -> Result<Response, ApiError> {
    let viewer = Viewer::Account(caller.account.id);
    let channel = (Timeline::Notifications, false);
    client.answer(app, viewer, channel).await
}

/// What comes into a list of the account's own; into a source for the operator.
#[utoipa::path(
    get, path = "/api/v1/streaming/list", tag = "streaming", params(("list" = ListId, Query)),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 404, body = Problem),
        (status = 503, body = Problem, description = "Too many follow already"),
    ),
)]
pub(super) async fn list(
    _: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
    Query(query): Query<StreamQuery>,
    client: Client,
) -> Result<Response, ApiError> {
    let channel = Channel::named("list", query.list.as_deref()).ok_or(ApiError::NotFound)?;
    let caller = authenticate(&client.headers, &app).await?;
    check(&app, channel, &caller).await?;
    let channel = (channel.timeline, false);
    client.answer(app, caller.viewer(), channel).await
}

/// Who asks for a stream, and where.
pub(super) struct Client {
    headers: HeaderMap,
    address: Address,
}

impl axum::extract::FromRequestParts<Arc<App>> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        app: &Arc<App>,
    ) -> Result<Self, Infallible> {
        let address = Address::from_request_parts(parts, app).await?;
        Ok(Self {
            headers: parts.headers.clone(),
            address,
        })
    }
}

impl Client {
    async fn answer(
        self,
        app: Arc<App>,
        viewer: Viewer,
        (timeline, only_media): (Timeline, bool),
    ) -> Result<Response, ApiError> {
        let channel = Channel {
            timeline,
            only_media,
        };
        let follower = Follower::new(app, viewer, self.headers, self.address, vec![channel]);
        let told = stream::unfold(
            (follower.await?, VecDeque::new()),
            |(mut follower, mut told)| async move {
                let message = next(&mut follower, &mut told).await?;
                let event = Event::default().event(message.event).data(message.payload);
                Some((Ok::<_, Infallible>(event), (follower, told)))
            },
        );
        let alive = KeepAlive::new().interval(SILENCE).text("thump");
        Ok(Sse::new(told).keep_alive(alive).into_response())
    }
}

/// The next message; `None` at the end.
async fn next(follower: &mut Follower, told: &mut VecDeque<Message>) -> Option<Message> {
    loop {
        if let Some(message) = told.pop_front() {
            return Some(message);
        }
        let happening = follower.wait().await;
        let found = follower.tell(happening).await?;
        told.extend(found.into_iter().map(|(_, message)| message));
    }
}

/// Every change that a viewer may see and that is not history.
pub(super) fn everything(viewer: Viewer) -> Selection {
    Selection {
        viewer,
        kinds: ChangeKinds::ALL,
        ..Selection::default()
    }
}

pub(super) const SILENCE: Duration = Duration::from_secs(15);
