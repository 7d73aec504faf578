//! A poller run against an upstream in virtual time.

use driftline_core::upstream_id::UpstreamId;

use crate::{baseline::Poller, upstream::Upstream};

/// When a poller polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// The first poll, Unix ms.
    pub from_ms: i64,
    /// No poll begins after this, Unix ms.
    pub until_ms: i64,
    /// From the beginning of one poll to that of the next, unless the poll
    /// takes longer.
    pub every_ms: i64,
    /// How long the client waits for an answer.
    pub timeout_ms: i64,
}

/// Runs a poller; answers when its last poll was over, Unix ms. It waits for
/// a reported reset when it is throttled, as well-behaved clients do.
pub fn run(upstream: &mut Upstream, poller: &mut Poller, token: &str, schedule: Schedule) -> i64 {
    let mut now_ms = schedule.from_ms;
    let mut due_ms = now_ms;
    while due_ms <= schedule.until_ms {
        now_ms = due_ms;
        let mut next = Some(poller.begin(now_ms));
        while let Some(request) = next {
            let result = upstream.answer(now_ms, token, &request);
            let waited_ms = upstream.received_at_ms() - now_ms;
            if waited_ms > schedule.timeout_ms {
                now_ms += schedule.timeout_ms;
                poller.fail();
                break;
            }
            now_ms += waited_ms;
            match result {
                Ok(page) => {
                    let ids: Vec<UpstreamId> = page
                        .listed
                        .into_iter()
                        .map(|listed| listed.position)
                        .collect();
                    next = poller.take(&ids);
                }
                Err(failure) => {
                    poller.fail();
                    let reset_at_ms = failure
                        .throttle
                        .filter(|throttle| throttle.remaining == 0)
                        .map(|throttle| throttle.reset_at_ms);
                    now_ms = now_ms.max(reset_at_ms.unwrap_or(now_ms));
                    break;
                }
            }
        }
        due_ms = (due_ms + schedule.every_ms.max(1)).max(now_ms);
    }
    now_ms
}
