//! A baseline poller over real HTTP, as any script would do it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use driftline_runtime::now_ms;
use driftline_sim::baseline::Poller;
use jiff::Timestamp;
use reqwest::{Client, Response, StatusCode};
use serde::Deserialize;
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use super::{Shared, lock, score::Seen};
use crate::{duration::duration, error::CliError};

/// A poller and what it polls.
pub(super) struct Script {
    pub(super) url: String,
    pub(super) token: &'static str,
    pub(super) poller: Poller,
    pub(super) every: Duration,
    pub(super) until_ms: i64,
}

/// A poller at work.
pub(super) struct Running {
    pub(super) seen: Shared,
    task: JoinHandle<()>,
}

impl Script {
    /// Starts it.
    ///
    /// # Errors
    /// [`CliError::Failed`] if there can be no HTTP client.
    pub(super) fn start(self, stop: watch::Receiver<bool>) -> Result<Running, CliError> {
        let client = Client::builder()
            .timeout(TIMEOUT)
            .no_proxy()
            .build()
            .map_err(|error| CliError::failed(format!("no HTTP client can be built: {error}")))?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let task = tokio::spawn(self.work(client, Arc::clone(&seen), stop));
        Ok(Running { seen, task })
    }

    async fn work(mut self, client: Client, seen: Shared, mut stop: watch::Receiver<bool>) {
        let every_ms = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX);
        let mut due_ms = now_ms();
        while due_ms <= self.until_ms && !*stop.borrow() {
            tokio::select! {
                () = sleep(duration(due_ms - now_ms())) => {}
                _ = stop.changed() => return,
            }
            let rest_until_ms = self.poll(&client, &seen).await;
            due_ms = (due_ms + every_ms).max(now_ms()).max(rest_until_ms);
        }
    }

    /// One poll; answers until when a throttle asks to wait, Unix ms.
    async fn poll(&mut self, client: &Client, seen: &Shared) -> i64 {
        let mut next = Some(self.poller.begin(now_ms()));
        while let Some(request) = next {
            let sent = self.send(client, &request).await;
            let (page, reset_at_ms) = match sent {
                Ok(response) => read(response).await,
                Err(_) => (None, 0),
            };
            let Some(ids) = page else {
                self.poller.fail();
                self.record(seen, &[]);
                return reset_at_ms;
            };
            next = self.poller.take(&ids);
            self.record(seen, &ids);
        }
        0
    }

    async fn send(&self, client: &Client, request: &PageRequest) -> reqwest::Result<Response> {
        let mut url = format!(
            "{}/api/v1/timelines/public?limit={}",
            self.url, request.limit
        );
        for (name, bound) in [("since_id", &request.since_id), ("max_id", &request.max_id)] {
            if let Some(id) = bound {
                url.push_str(&format!("&{name}={id}"));
            }
        }
        client.get(url).bearer_auth(self.token).send().await
    }

    fn record(&self, seen: &Shared, ids: &[UpstreamId]) {
        let now_ms = now_ms();
        let mut seen = lock(seen);
        for id in ids {
            seen.stored_at_ms.entry(id.clone()).or_insert(now_ms);
        }
        seen.requests = self.poller.requests();
        seen.redundant = self.poller.redundant();
    }
}

impl Running {
    /// Waits for its end.
    ///
    /// # Errors
    /// [`CliError::Failed`] if it did not end by itself.
    pub(super) async fn end(self) -> Result<Seen, CliError> {
        self.task
            .await
            .map_err(|error| CliError::failed(format!("a poller broke: {error}")))?;
        Ok(lock(&self.seen).clone())
    }
}

/// The page's IDs, if it is one; and when a used-up budget is full again.
async fn read(response: Response) -> (Option<Vec<UpstreamId>>, i64) {
    #[derive(Deserialize)]
    struct Status {
        id: String,
    }
    let status = response.status();
    if status == StatusCode::TOO_MANY_REQUESTS {
        return (None, reset_at_ms(&response).unwrap_or(0));
    }
    if status != StatusCode::OK {
        return (None, 0);
    }
    let page = response
        .bytes()
        .await
        .ok()
        .and_then(|body| serde_json::from_slice::<Vec<Status>>(&body).ok())
        .map(|page| page.into_iter().map(|status| UpstreamId::new(status.id)));
    (page.map(Iterator::collect), 0)
}

fn reset_at_ms(response: &Response) -> Option<i64> {
    let reset = response.headers().get("x-ratelimit-reset")?.to_str().ok()?;
    Some(reset.parse::<Timestamp>().ok()?.as_millisecond())
}

const TIMEOUT: Duration = Duration::from_secs(10);
