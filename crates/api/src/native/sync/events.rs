use std::{collections::BTreeSet, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    http::{
        HeaderMap, Uri,
        header::{CACHE_CONTROL, HeaderName},
    },
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use driftline_store::{LocalAccountId, StoreError, Viewer};
use futures_util::{Stream, stream};
use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep, timeout_at},
};
use url::form_urlencoded;

use super::{ACCOUNT, notified_usns::NotifiedUsns, pull::MAX_LIBRARIES};
use crate::{
    App,
    auth::{
        LoggedIn,
        caller::{TOKEN_CHECK, is_still_of},
        needs,
        opaque_secret::fill_random,
    },
    transport::{ApiError, ApiResult, Problem},
};

/// Notifies a device of changes that its account may see, in the account's library or in the sources' libraries that the request
/// names: server-sent events named `news`, the first at once. Changes within half a second are one event. The stream ends after
/// ten minutes, some seconds after its token, when the store fails, and when the account has opened 200 later ones.
#[utoipa::path(
    get, path = "/api/driftline/v1/sync/events", tag = "sync",
    params(("library" = Option<Vec<String>>, Query, description = "A source's library, `source:ID`; may come up to 200 times")),
    security(("account" = ["read"])),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = 404, body = Problem, description = "The account may not read one of the libraries"),
        (status = 422, body = Problem, description = "Too many libraries"),
        (status = 503, body = Problem, description = "Too many devices wait already"),
    ),
)]
pub(super) async fn events(
    caller: LoggedIn<needs::Read>,
    uri: Uri,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let sources = named_sources(uri.query().unwrap_or_default())?;
    // Before the first look at the store, so that nothing falls between the two.
    let commits = caller.app.store.commits();
    let viewer = caller.viewer;
    let nothing = NotifiedUsns::nothing(sources);
    let notified = caller.read(move |tx, account| Ok(nothing.look(tx, account, viewer)?.0));
    let notified = notified.await?;
    if !notified.is_readable() {
        return Err(ApiError::NotFound);
    }
    let account = caller.account.id;
    let device = Device {
        app: Arc::clone(&caller.app),
        account,
        viewer,
        headers,
        check: Instant::now() + TOKEN_CHECK,
        commits,
        notified,
        is_first: true,
        ended: caller.app.people.device_streams.open(account)?,
        end: Instant::now() + LONGEST,
    };
    let events = Sse::new(news(device)).keep_alive(KeepAlive::default());
    // nginx would keep events back.
    let headers = [(ACCEL_BUFFERING, "no"), (CACHE_CONTROL, "no-store")];
    Ok((headers, events.into_response()).into_response())
}

/// The libraries of sources that a query names.
fn named_sources(query: &str) -> ApiResult<BTreeSet<String>> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let named = pairs.filter(|(name, _)| name.strip_suffix("[]").unwrap_or(name) == "library");
    let libraries = named.map(|(_, library)| library.into_owned());
    let sources: BTreeSet<String> = libraries.filter(|library| library != ACCOUNT).collect();
    match sources.len() {
        0..=MAX_LIBRARIES => Ok(sources),
        _ => Err(ApiError::Unprocessable(format!(
            "a request names at most {MAX_LIBRARIES} libraries"
        ))),
    }
}

/// A device that waits for changes.
struct Device {
    app: Arc<App>,
    account: LocalAccountId,
    viewer: Viewer,
    /// With the token, which may end meanwhile.
    headers: HeaderMap,
    /// The time of the next look at the token, and for changes of other processes.
    check: Instant,
    commits: watch::Receiver<u64>,
    notified: NotifiedUsns,
    is_first: bool,
    /// Returns once the stream has to make room.
    ended: oneshot::Receiver<()>,
    end: Instant,
}

fn news(device: Device) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(device, async |mut device| {
        device.news().await?;
        Some((Ok(Event::default().event("news").data("{}")), device))
    })
}

impl Device {
    /// Waits for changes; `None` at the end.
    async fn news(&mut self) -> Option<()> {
        if std::mem::take(&mut self.is_first) {
            return Some(());
        }
        self.pause().await?;
        while Instant::now() < self.end {
            self.commits.mark_unchanged();
            let (notified, is_news) = self.look().await.ok()?;
            self.notified = notified;
            if is_news || Instant::now() >= self.check {
                if !is_still_of(self.viewer, &self.headers, &self.app).await {
                    return None;
                }
                self.check = Instant::now() + TOKEN_CHECK;
            }
            if is_news {
                return Some(());
            }
            let look = self.end.min(self.check);
            tokio::select! {
                committed = timeout_at(look, self.commits.changed()) => {
                    if let Ok(Err(_)) = committed {
                        return None;
                    }
                }
                _ = &mut self.ended => return None,
            }
            self.pause().await?;
        }
        None
    }

    /// Waits before the next query; `None` if the stream has to make room.
    async fn pause(&mut self) -> Option<()> {
        tokio::select! {
            () = sleep(pause()) => Some(()),
            _ = &mut self.ended => None,
        }
    }

    async fn look(&self) -> Result<(NotifiedUsns, bool), StoreError> {
        let (notified, account, viewer) = (self.notified.clone(), self.account, self.viewer);
        let read = self
            .app
            .store
            .read(move |tx| notified.look(tx, account, viewer));
        read.await
    }
}

/// 500 to 700 ms, so that many devices do not ask at once.
fn pause() -> Duration {
    let mut random = [0; 1];
    // Without randomness they ask at once.
    let _ = fill_random(&mut random);
    Duration::from_millis(500 + u64::from(random[0]) * 200 / 255)
}

/// The time after which a device connects again.
const LONGEST: Duration = Duration::from_secs(600);
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
