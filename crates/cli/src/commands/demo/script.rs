//! A baseline poller over real HTTP.

use std::{sync::Arc, time::Duration};

use driftline_core::upstream_id::UpstreamId;
use driftline_runtime::now_ms;
use driftline_sim::baseline::Poller;
use driftline_upstream::{Timeline, Upstream};
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use super::{Shared, lock, score::Seen};
use crate::{duration::duration, error::CliError};

/// A poller and what it polls.
pub(super) struct Script {
    pub(super) client: Upstream,
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
    pub(super) fn start(self, stop: watch::Receiver<bool>) -> Running {
        let seen = Shared::default();
        let task = tokio::spawn(self.work(Arc::clone(&seen), stop));
        Running { seen, task }
    }

    async fn work(mut self, seen: Shared, mut stop: watch::Receiver<bool>) {
        let every_ms = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX);
        let mut due_ms = now_ms();
        while due_ms <= self.until_ms && !*stop.borrow() {
            tokio::select! {
                () = sleep(duration(due_ms - now_ms())) => {}
                _ = stop.changed() => return,
            }
            let rest_until_ms = self.poll(&seen).await;
            due_ms = (due_ms + every_ms).max(now_ms()).max(rest_until_ms);
        }
    }

    /// One poll; answers until when a throttle asks to wait, Unix ms.
    async fn poll(&mut self, seen: &Shared) -> i64 {
        let mut next = Some(self.poller.begin(now_ms()));
        while let Some(request) = next {
            match self.client.page(&Timeline::Public, &request).await {
                Ok(page) => {
                    let ids: Vec<_> = page.listed.into_iter().map(|of| of.position).collect();
                    next = self.poller.take(&ids);
                    self.record(seen, &ids);
                }
                Err(failure) => {
                    self.poller.fail();
                    self.record(seen, &[]);
                    let throttle = failure.throttle.filter(|of| of.remaining == 0);
                    return throttle.map_or(0, |throttle| throttle.reset_at_ms);
                }
            }
        }
        0
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
