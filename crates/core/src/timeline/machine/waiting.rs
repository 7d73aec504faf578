//! The wait that a server requests (`Retry-After`), and its early end.

use super::Machine;
use crate::{
    answer::FailureKind,
    clock::Deadline,
    timeline::{backoff::backoff_ms, settings::Settings},
};

/// A wait that the server has requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its end, in Unix ms by the local clock.
    pub until_ms: i64,
    /// The failure with the request.
    pub kind: FailureKind,
}

impl Machine {
    /// The wait that the server has requested, if it is not over at `now_ms`, in Unix ms by the
    /// local clock.
    pub fn waiting(&self, now_ms: i64) -> Option<Waiting> {
        let error = self.errors.ongoing()?;
        error.retry_after_ms?;
        let until_ms = self.blocked_until_ms();
        (until_ms > now_ms).then_some(Waiting {
            until_ms,
            kind: error.kind,
        })
    }

    /// Records that another request to the same server succeeded at `at_ms`, in Unix ms by the
    /// local clock. The requested wait of a failing server is then shortened to the wait without a
    /// request. The wait of a throttle is not, because other requests may not count against it.
    pub fn server_answered(&mut self, settings: &Settings, at_ms: i64) {
        let Some(error) = self.errors.ongoing() else {
            return;
        };
        let is_failing = error.kind == FailureKind::ServerError && error.retry_after_ms.is_some();
        if !is_failing || error.at_ms >= at_ms {
            return;
        }
        let wait_ms = backoff_ms(settings.every_ms, self.pace.server_failures, 0);
        let wait = Deadline::after(error.at_ms, wait_ms);
        if wait.until_ms() < self.pace.blocked.until_ms() {
            self.pace.blocked = wait;
        }
        self.errors.end_wait();
    }

    fn blocked_until_ms(&self) -> i64 {
        let waits = [self.pace.blocked, self.pace.work_blocked];
        waits.map(Deadline::until_ms).into_iter().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        answer::{Abilities, Failure},
        timeline::{RequestPurpose, Step},
    };

    const ABILITIES: Abilities = Abilities {
        page_limit: 40,
        min_id: true,
    };

    /// A machine whose first poll, at 1 s, was rejected with `Retry-After: 120`.
    fn refused(kind: FailureKind) -> Machine {
        let mut machine = Machine::default();
        let failure = Failure {
            retry_after_ms: Some(120_000),
            ..Failure::new(kind, "https://a.example: later")
        };
        let (settings, poll) = (Settings::default(), RequestPurpose::Poll);
        machine.failed(&settings, &poll, &failure, 1_000, 0);
        machine
    }

    fn next_ms(machine: &mut Machine, now_ms: i64) -> i64 {
        match machine.next(&Settings::default(), ABILITIES, now_ms, false) {
            Step::Wait { until_ms } => until_ms,
            step => panic!("{step:?} at {now_ms}"),
        }
    }

    #[test]
    fn a_wait_is_known_until_it_is_over_also_after_a_restart() {
        let machine = refused(FailureKind::ServerError);
        let stored = serde_json::to_string(&machine).expect("JSON");
        let mut machine: Machine = serde_json::from_str(&stored).expect("its own JSON");
        let waiting = Waiting {
            until_ms: 121_000,
            kind: FailureKind::ServerError,
        };
        assert_eq!(machine.waiting(2_000), Some(waiting));
        assert_eq!(next_ms(&mut machine, 2_000), 121_000);
        assert_eq!(machine.waiting(121_000), None);
    }

    #[test]
    fn only_a_failing_servers_wait_ends_when_the_server_answers_another_request() {
        let settings = Settings::default();
        let mut failing = refused(FailureKind::ServerError);
        failing.server_answered(&settings, 1_000);
        assert!(failing.waiting(2_000).is_some(), "it was sent before");
        failing.server_answered(&settings, 1_500);
        assert_eq!(failing.waiting(2_000), None);
        assert_eq!(next_ms(&mut failing, 2_000), 1_000 + settings.every_ms);
        let mut throttled = refused(FailureKind::Throttled);
        throttled.server_answered(&settings, 60_000);
        assert_eq!(next_ms(&mut throttled, 60_000), 121_000);
    }

    #[test]
    fn a_failure_that_asks_for_no_wait_is_none() {
        let mut machine = Machine::default();
        let failure = Failure::new(FailureKind::ServerError, "no");
        let (settings, poll) = (Settings::default(), RequestPurpose::Poll);
        machine.failed(&settings, &poll, &failure, 1_000, 0);
        assert_eq!(machine.waiting(1_001), None);
    }
}
