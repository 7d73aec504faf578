//! A poller run in virtual time.

use driftline_core::{
    answer::{Failure, PageRequest},
    upstream_id::UpstreamId,
};

use crate::baseline::Poller;

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
}

/// Runs a poller; answers when its last poll was over, Unix ms. It waits for
/// a reported reset when it is throttled, as well-behaved clients do.
///
/// `ask` takes the time at which a request is sent, and returns the IDs of the page and the time at
/// which they arrive.
pub fn run(
    poller: &mut Poller,
    schedule: Schedule,
    mut ask: impl FnMut(i64, &PageRequest) -> (Result<Vec<UpstreamId>, Failure>, i64),
) -> i64 {
    let mut now_ms = schedule.from_ms;
    let mut due_ms = now_ms;
    while due_ms <= schedule.until_ms {
        now_ms = due_ms;
        let mut next = Some(poller.begin(now_ms));
        while let Some(request) = next {
            let (answer, received_at_ms) = ask(now_ms, &request);
            now_ms = received_at_ms;
            next = match answer {
                Ok(ids) => poller.take(&ids),
                Err(failure) => {
                    now_ms = now_ms.max(poller.fail(&failure));
                    None
                }
            };
        }
        due_ms = (due_ms + schedule.every_ms.max(1)).max(now_ms);
    }
    now_ms
}
