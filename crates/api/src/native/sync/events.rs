use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    http::header::{CACHE_CONTROL, HeaderName},
    response::{
        IntoResponse as _, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use driftline_store::{LocalAccountId, StoreError, sync::current_cursor};
use futures_util::{Stream, stream};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    App,
    auth::{LoggedIn, needs, opaque_secret::fill_random},
    transport::ApiResult,
};

/// Tells a device that its account's library has changes: server-sent events named `news`, the first at once. Changes
/// within half a second are told once. The stream ends after ten minutes, and when the store fails.
#[utoipa::path(
    get, path = "/api/driftline/v1/sync/events", tag = "sync",
    security(("account" = ["read"])),
    responses((status = 200, content_type = "text/event-stream", body = String)),
)]
pub(super) async fn events(caller: LoggedIn<needs::Read>) -> ApiResult<Response> {
    let device = Device {
        app: Arc::clone(&caller.app),
        account: caller.account.id,
        commits: caller.app.store.commits(),
        told: None,
        end: Instant::now() + LONGEST,
    };
    let events = Sse::new(told(device)).keep_alive(KeepAlive::default());
    // nginx would keep events back.
    let headers = [(ACCEL_BUFFERING, "no"), (CACHE_CONTROL, "no-store")];
    Ok((headers, events.into_response()).into_response())
}

/// A device that waits for changes.
struct Device {
    app: Arc<App>,
    account: LocalAccountId,
    commits: watch::Receiver<u64>,
    /// The USN up to which it was told.
    told: Option<i64>,
    end: Instant,
}

fn told(device: Device) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(device, async |mut device| {
        device.news().await?;
        Some((Ok(Event::default().event("news").data("{}")), device))
    })
}

impl Device {
    /// Waits for changes; `None` at the end.
    async fn news(&mut self) -> Option<()> {
        if self.told.is_some() {
            sleep(pause()).await;
        }
        while Instant::now() < self.end {
            self.commits.mark_unchanged();
            let usn = self.update_count().await.ok()?;
            if self.told.replace(usn) != Some(usn) {
                return Some(());
            }
            // Another process may have written, too.
            let look = self.end.min(Instant::now() + LOOK);
            match timeout_at(look, self.commits.changed()).await {
                Ok(Ok(())) | Err(_) => sleep(pause()).await,
                Ok(Err(_)) => return None,
            }
        }
        None
    }

    async fn update_count(&self) -> Result<i64, StoreError> {
        let account = self.account;
        let read = self.app.store.read(move |tx| current_cursor(tx, account));
        Ok(read.await?.usn)
    }
}

/// 500 to 700 ms, so that many devices do not ask at once.
fn pause() -> Duration {
    let mut random = [0; 1];
    // Without randomness they ask at once.
    let _ = fill_random(&mut random);
    Duration::from_millis(500 + u64::from(random[0]) * 200 / 255)
}

/// The longest time that changes of another process stay unseen.
const LOOK: Duration = Duration::from_secs(5);
/// The time after which a device connects again, so that a revoked token ends.
const LONGEST: Duration = Duration::from_secs(600);
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
