use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{Query, State},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use driftline_core::feed::ChangeKinds;
use driftline_store::{source, timeline::Viewer};
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    channel::{Channel, Timeline},
    message::{Message, message},
};
use crate::{
    App,
    auth::{MayRead, OperatorOrAccount, needs},
    description::ids::ListId,
    feed::{FeedReader, Selection, Start},
    mastodon::lists::is_the_operators,
    transport::{ApiError, Problem},
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
) -> Result<Response, ApiError> {
    answer(app, caller.viewer(), Timeline::Public, query.only_media()).await
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
) -> Result<Response, ApiError> {
    public(reader, app, query).await
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
) -> Result<Response, ApiError> {
    answer(app, caller.viewer(), Timeline::Local, query.only_media()).await
}

/// What comes into a list.
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
    reader: OperatorOrAccount<needs::ReadLists>,
    State(app): State<Arc<App>>,
    Query(query): Query<StreamQuery>,
) -> Result<Response, ApiError> {
    let OperatorOrAccount::Operator = reader else {
        return Err(ApiError::NotFound);
    };
    let channel = Channel::named("list", query.list.as_deref()).ok_or(ApiError::NotFound)?;
    if let Timeline::List(id) = channel.timeline {
        let source = app.store.read(move |tx| source::by_id(tx, id)).await?;
        if !source.is_some_and(|source| is_the_operators(&source)) {
            return Err(ApiError::NotFound);
        }
    }
    answer(app, Viewer::Operator, channel.timeline, false).await
}

async fn answer(
    app: Arc<App>,
    viewer: Viewer,
    timeline: Timeline,
    only_media: bool,
) -> Result<Response, ApiError> {
    let channel = Channel {
        timeline,
        only_media,
    };
    let reader = app.feed.follow(everything(), Start::Now).await?;
    let told = stream::unfold((app, reader), move |(app, mut reader)| async move {
        let told = next(&app, &mut reader, viewer, channel).await?;
        let event = Event::default().event(told.event).data(told.payload);
        Some((Ok::<_, Infallible>(event), (app, reader)))
    });
    let alive = KeepAlive::new().interval(SILENCE).text("thump");
    Ok(Sse::new(told).keep_alive(alive).into_response())
}

/// The next message; `None` at the end.
async fn next(
    app: &App,
    reader: &mut FeedReader,
    viewer: Viewer,
    channel: Channel,
) -> Option<Message> {
    loop {
        let told = match reader.next().await {
            Ok(Some(event)) => message(app, viewer, channel, &event).await,
            Ok(None) => return None,
            Err(error) => Err(error.into()),
        };
        match told {
            Ok(None) => {}
            Ok(told) => return told,
            // It is logged; the client comes back.
            Err(_) => return None,
        }
    }
}

/// Every change that is not history.
pub(super) fn everything() -> Selection {
    Selection {
        kinds: ChangeKinds::ALL,
        ..Selection::default()
    }
}

pub(super) const SILENCE: Duration = Duration::from_secs(15);
