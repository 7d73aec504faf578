//! The posts that wait for the search index, and polls that wait for the index.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    fault_log::{FaultLog, Weight},
    metrics::INDEX_WAITING,
    span::show_ms,
};

/// The posts that wait for the search index of a store, as the index's keeper in this process last
/// counted them. Clones share it.
///
/// Searches read these posts without the index, so polls wait while there are many. Completeness comes
/// first: only a keeper that is at work holds a poll up, and none for long.
#[derive(Debug, Clone, Default)]
pub struct IndexBacklog(Arc<Mutex<Reports>>);

#[derive(Debug, Default)]
struct Reports {
    last: Option<Report>,
    /// The log of times with too many posts.
    log: FaultLog,
}

/// A count of a keeper that works.
#[derive(Debug, Clone, Copy)]
struct Report {
    waiting: u32,
    at_ms: i64,
}

/// The wait of one session for the index.
#[derive(Debug, Clone, Copy, Default)]
pub struct IndexWait {
    since_ms: Option<i64>,
}

impl IndexBacklog {
    /// The number of waiting posts to which the keeper counts.
    pub const COUNTED: u32 = MAX_WAITING + 1;

    /// Reports what the keeper counted, before each part of its work and every few seconds without
    /// any. `now_ms` is a steady time.
    pub fn report(&self, waiting: u32, now_ms: i64) {
        INDEX_WAITING.set(f64::from(waiting));
        let mut reports = self.0.lock();
        reports.last = Some(Report {
            waiting,
            at_ms: now_ms,
        });
        if waiting <= MAX_WAITING {
            if let Some(behind_ms) = reports.log.succeeded(now_ms) {
                let behind = show_ms(behind_ms);
                tracing::info!("the search index has caught up, after {behind}");
            }
        } else if reports.log.failed(Weight::Passing, now_ms) {
            tracing::info!(
                "the search index is behind: more than {MAX_WAITING} posts wait for it, and polls wait until it has read them"
            );
        }
    }

    /// Reports that the keeper cannot work.
    pub fn report_failure(&self) {
        self.0.lock().last = None;
    }

    /// Returns the steady time at which a session that is about to ask its upstream for posts asks
    /// here again; `None` if it need not wait.
    pub fn wait_until(&self, wait: &mut IndexWait, now_ms: i64) -> Option<i64> {
        let report = self.0.lock().last;
        let is_behind = report.is_some_and(|report| {
            report.waiting > MAX_WAITING && now_ms - report.at_ms < MAX_REPORT_AGE_MS
        });
        let since_ms = *wait.since_ms.get_or_insert(now_ms);
        if is_behind && now_ms - since_ms < MAX_WAIT_MS {
            return Some(now_ms + LOOK_MS);
        }
        wait.since_ms = None;
        None
    }
}

/// The number of posts that may wait for the index.
const MAX_WAITING: u32 = 2_000;
/// A keeper that has reported nothing for so long is not at work.
const MAX_REPORT_AGE_MS: i64 = 5_000;
/// The longest time that a session waits before each of its requests.
const MAX_WAIT_MS: i64 = 30_000;
const LOOK_MS: i64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports so many posts every 100 ms up to `until_ms`, while a session waits, and returns for how
    /// long it did.
    fn waited_ms(waiting: u32, until_ms: i64) -> i64 {
        let (backlog, mut wait) = (IndexBacklog::default(), IndexWait::default());
        let mut now_ms = 7;
        loop {
            if now_ms <= until_ms {
                backlog.report(waiting, now_ms);
            }
            match backlog.wait_until(&mut wait, now_ms) {
                Some(next_ms) => now_ms = next_ms,
                None => return now_ms - 7,
            }
        }
    }

    #[test]
    fn only_a_keeper_that_works_and_is_far_behind_is_waited_for() {
        assert_eq!(waited_ms(MAX_WAITING, i64::MAX), 0);
        assert_eq!(waited_ms(MAX_WAITING + 1, 0), 0, "no keeper");
        assert_eq!(
            waited_ms(MAX_WAITING + 1, 1_007),
            6_000,
            "it stalled at 1 s"
        );
        assert_eq!(waited_ms(MAX_WAITING + 1, i64::MAX), MAX_WAIT_MS);
    }

    #[test]
    fn each_request_waits_anew_and_a_failure_ends_the_wait() {
        let (backlog, mut wait) = (IndexBacklog::default(), IndexWait::default());
        backlog.report(MAX_WAITING + 1, 0);
        assert_eq!(backlog.wait_until(&mut wait, 0), Some(LOOK_MS));
        backlog.report(MAX_WAITING + 1, MAX_WAIT_MS);
        assert_eq!(backlog.wait_until(&mut wait, MAX_WAIT_MS), None);
        let next_ms = MAX_WAIT_MS + 1;
        assert_eq!(
            backlog.wait_until(&mut wait, next_ms),
            Some(next_ms + LOOK_MS)
        );
        backlog.report_failure();
        assert_eq!(backlog.wait_until(&mut wait, next_ms), None);
        backlog.report(0, next_ms);
        assert_eq!(backlog.wait_until(&mut wait, next_ms), None);
    }
}
