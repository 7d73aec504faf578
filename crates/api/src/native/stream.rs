//! Changes as server-sent events, resumable at any of them.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::{Query, State, rejection::QueryRejection},
    http::{
        HeaderMap,
        header::{CACHE_CONTROL, HeaderName},
    },
    response::{
        IntoResponse as _, Response,
        sse::{Event, Sse},
    },
};
use driftline_core::feed::{FeedPosition, FeedPositionError};
use driftline_runtime::StoreFault;
use driftline_store::Viewer;
use futures_util::{Stream, stream};
use serde::Deserialize;
use tokio::time::{Interval, MissedTickBehavior, interval};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::Operator,
    feed::{FeedError, FeedReader, Selection, Start},
    transport::{ApiError, Problem},
};

pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(posts))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// The names of sources, with commas between; all sources without it.
    source: Option<String>,
    /// What is told, of `new,edit,delete,left`; `new` without it.
    events: Option<String>,
    /// Whether posts are told too that were older than what their source had shown when they were
    /// stored.
    #[serde(default)]
    history: bool,
    /// Where to begin: `now`, `start`, or a position that an event had as its ID; `now` without it. The
    /// header `Last-Event-ID` counts more.
    since: Option<String>,
}

/// Changes of posts as they are stored, as server-sent events.
///
/// Each event is `new`, `edit`, `delete` or `left`, has the position after it as its ID, and a line of
/// JSON: `event`, `source`, `history`, and `post`, as `driftline export` writes it. The event
/// `position` comes first, and later when the position has moved without another event. Whoever goes
/// on at the last ID that it got misses nothing and gets nothing twice. Of several edits of one post
/// that come to be told at once, the post has its last form in each.
#[utoipa::path(
    get, path = "/api/v1/stream/posts", tag = "posts", params(StreamQuery, ("Last-Event-ID" = Option<String>, Header, description = "The position to go on after")),
    security(("operator" = [])),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 400, body = Problem, description = "No such source, event or position"),
        (status = 401, body = Problem, description = "The operator's token is needed"),
    )
)]
pub(crate) async fn posts(
    _: Operator,
    State(app): State<Arc<App>>,
    query: Result<Query<StreamQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|refused| ApiError::BadParameter(refused.body_text()))?;
    let start = match headers.get(LAST_EVENT_ID).map(|id| id.to_str()) {
        Some(Ok(id)) if !id.is_empty() => Start::After(position(id)?),
        Some(Err(_)) => return Err(ApiError::BadParameter("invalid Last-Event-ID".to_owned())),
        _ => match query.since.as_deref() {
            None | Some("" | "now") => Start::Now,
            Some(since) => Start::After(position(since)?),
        },
    };
    let reader = app.feed.follow(selection(&query)?, start).await?;
    let events = Sse::new(events(reader, app.store_fault.clone())).into_response();
    // nginx would keep events back.
    let headers = [(ACCEL_BUFFERING, "no"), (CACHE_CONTROL, "no-store")];
    Ok((headers, events).into_response())
}

fn selection(query: &StreamQuery) -> Result<Selection, ApiError> {
    let names = query.source.as_deref().unwrap_or_default().split(',');
    let kinds = match query.events.as_deref() {
        None | Some("") => Ok(Default::default()),
        Some(events) => events.parse(),
    };
    Ok(Selection {
        viewer: Viewer::Operator,
        sources: names
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        kinds: kinds.map_err(|error: driftline_core::feed::UnknownChangeKind| {
            ApiError::BadParameter(error.to_string())
        })?,
        history: query.history,
        tombstones: false,
    })
}

fn position(text: &str) -> Result<FeedPosition, ApiError> {
    text.parse()
        .map_err(|error: FeedPositionError| ApiError::BadParameter(error.to_string()))
}

/// A client that is told events.
struct Client {
    reader: FeedReader,
    store_fault: StoreFault,
    /// The position that it was told last.
    last_sent: Option<String>,
    silence: Interval,
}

fn events(
    reader: FeedReader,
    store_fault: StoreFault,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let mut silence = interval(SILENCE);
    silence.set_missed_tick_behavior(MissedTickBehavior::Delay);
    silence.reset();
    let client = Client {
        reader,
        store_fault,
        last_sent: None,
        silence,
    };
    stream::unfold(client, async |mut client| {
        let event = client.next().await?;
        Some((Ok(event), client))
    })
}

impl Client {
    /// `None` at the end: the client comes back with the last ID.
    async fn next(&mut self) -> Option<Event> {
        if self.last_sent.is_none() {
            return Some(self.position().retry(RETRY));
        }
        tokio::select! {
            next = self.reader.next() => match next {
                Ok(Some(event)) => {
                    self.silence.reset();
                    let id = self.reader.position().to_string();
                    let sent = Event::default()
                        .id(&id)
                        .event(event.change.kind.name())
                        .data(event.json());
                    self.last_sent = Some(id);
                    Some(sent)
                }
                Ok(None) => None,
                Err(error) => {
                    if !self.store_fault.takes(&error) {
                        tracing::warn!(%error, "a stream of events ends: the store cannot be read");
                    }
                    None
                }
            },
            _ = self.silence.tick() => Some(match self.last_sent.as_deref() {
                Some(last) if last == self.reader.position().to_string() => {
                    Event::default().comment("")
                }
                _ => self.position(),
            }),
        }
    }

    fn position(&mut self) -> Event {
        let id = self.reader.position().to_string();
        let event = Event::default()
            .id(&id)
            .event("position")
            .data(format!("{{\"position\":\"{id}\"}}"));
        self.last_sent = Some(id);
        event
    }
}

impl From<FeedError> for ApiError {
    fn from(error: FeedError) -> Self {
        match error {
            FeedError::Store(error) => error.into(),
            FeedError::Full => Self::Refused(error.to_string()),
            refused => Self::BadParameter(refused.to_string()),
        }
    }
}

const LAST_EVENT_ID: &str = "last-event-id";
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Proxies take a connection for dead after a minute of silence or so.
const SILENCE: Duration = Duration::from_secs(15);
/// After which a client comes back.
const RETRY: Duration = Duration::from_secs(1);
