//! A baseline poller over real HTTP.

use driftline_runtime::now_ms;
use driftline_sim::baseline::Poller;
use driftline_upstream::{Timeline, Upstream};
use tokio::{sync::watch, time::sleep};

use super::{
    scene::EVERY_MS,
    score::{PollerRecord, Progress},
};
use crate::duration::duration;

/// Polls until a time, Unix ms, or the stop signal.
pub(super) async fn poll(
    client: Upstream,
    mut poller: Poller,
    until_ms: i64,
    mut stop: watch::Receiver<bool>,
    progress: &watch::Sender<Progress>,
) -> PollerRecord {
    let mut seen = PollerRecord::default();
    let mut due_ms = now_ms();
    while due_ms <= until_ms && !*stop.borrow() {
        tokio::select! {
            () = sleep(duration(due_ms - now_ms())) => {}
            _ = stop.changed() => break,
        }
        let rest_until_ms = poll_once(&client, &mut poller, &mut seen).await;
        seen.progress = Progress {
            stored: seen.stored_at_ms.len() as u64,
            requests: poller.requests(),
            redundant: poller.fetched() - seen.stored_at_ms.len() as u64,
            remark: String::new(),
        };
        progress.send_replace(seen.progress.clone());
        due_ms = (due_ms + EVERY_MS).max(now_ms()).max(rest_until_ms);
    }
    seen
}

/// Answers until when a throttle asks to wait, Unix ms.
async fn poll_once(client: &Upstream, poller: &mut Poller, seen: &mut PollerRecord) -> i64 {
    let mut next = Some(poller.begin(now_ms()));
    while let Some(request) = next {
        match client.page(&Timeline::Public, &request).await {
            Ok(page) => {
                let ids: Vec<_> = page.listed.into_iter().map(|of| of.position).collect();
                next = poller.take(&ids);
                let now_ms = now_ms();
                for id in ids {
                    seen.stored_at_ms.entry(id).or_insert(now_ms);
                }
            }
            Err(failure) => return poller.fail(&failure),
        }
    }
    0
}
