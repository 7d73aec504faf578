//! The errors of a source, in a row, by what was asked for.

use serde::{Deserialize, Serialize};

use crate::answer::{Failure, FailureKind};

/// The current error of a source, or its last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// Its name.
    pub kind: FailureKind,
    /// The cause, the place and the remedy.
    pub message: String,
    /// What was asked for.
    pub request: FailedRequest,
    /// When it occurred last, Unix ms.
    pub at_ms: i64,
    /// How many of these requests have failed in a row, of whatever kind the failures were.
    pub count: u32,
    /// When the first of them failed, Unix ms.
    pub since_ms: i64,
    /// Whether a later request of its kind succeeded.
    pub over: bool,
    /// How long the server asked to wait the last time (`Retry-After`), ms; `None` if it did not, or
    /// once it answered something else.
    pub retry_after_ms: Option<i64>,
}

/// What a request that failed asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailedRequest {
    /// The newest posts.
    Poll,
    /// Another page: a gap, a look at a range, a probe.
    Page,
    /// A post that a page did not list.
    LookUp,
    /// The timeline's stream, which the server does not have.
    Stream,
}

/// The last error of each kind of request: a poll that succeeds says nothing of looks that fail.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Errors {
    poll: Option<LastError>,
    page: Option<LastError>,
    look_up: Option<LastError>,
    stream: Option<LastError>,
}

impl Errors {
    /// A request failed at this time, Unix ms.
    pub(super) fn failed(&mut self, request: FailedRequest, failure: &Failure, now_ms: i64) {
        let last = self.of(request);
        let before = last.as_ref().filter(|error| !error.over);
        *last = Some(LastError {
            kind: failure.kind,
            message: failure.message.clone(),
            request,
            at_ms: now_ms,
            count: before.map_or(0, |error| error.count).saturating_add(1),
            since_ms: before.map_or(now_ms, |error| error.since_ms),
            over: false,
            retry_after_ms: failure.retry_after_ms,
        });
    }

    /// Visits each of its times, which are of the past, by the local clock.
    pub(super) fn each_local_time(&mut self, visit: &mut impl FnMut(&mut i64)) {
        let requests = [&mut self.poll, &mut self.page, &mut self.look_up];
        for error in requests.into_iter().chain([&mut self.stream]).flatten() {
            visit(&mut error.at_ms);
            visit(&mut error.since_ms);
        }
    }

    /// A request succeeded, or is no longer due.
    pub(super) fn end(&mut self, request: FailedRequest) {
        if let Some(error) = self.of(request) {
            error.over = true;
        }
    }

    /// The server no longer asks to wait.
    pub(super) fn end_wait(&mut self) {
        for error in self.poll.iter_mut().chain(&mut self.page) {
            error.retry_after_ms = None;
        }
    }

    /// The ongoing error of the source: of its polls, else of its other pages. Posts that cannot be
    /// looked up are no error of the source.
    pub(super) fn ongoing(&self) -> Option<&LastError> {
        let pages = self.poll.iter().chain(&self.page);
        pages.into_iter().find(|error| !error.over)
    }

    /// The ongoing error, else the latest one.
    pub(super) fn last(&self) -> Option<&LastError> {
        let requests = || self.poll.iter().chain(&self.page).chain(&self.look_up);
        let all = || requests().chain(&self.stream);
        let ongoing = || all().find(|error| !error.over);
        self.ongoing()
            .or_else(ongoing)
            .or_else(|| all().max_by_key(|error| error.at_ms))
    }

    /// The last failure of a look-up.
    pub(super) fn look_up(&self) -> Option<&LastError> {
        self.look_up.as_ref()
    }

    /// Whether the last poll failed.
    pub(super) fn polls_fail(&self) -> bool {
        self.poll.as_ref().is_some_and(|error| !error.over)
    }

    fn of(&mut self, request: FailedRequest) -> &mut Option<LastError> {
        match request {
            FailedRequest::Poll => &mut self.poll,
            FailedRequest::Page => &mut self.page,
            FailedRequest::LookUp => &mut self.look_up,
            FailedRequest::Stream => &mut self.stream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FailedRequest::*, *};

    #[test]
    fn failures_are_counted_in_a_row_by_what_was_asked_for() {
        let mut errors = Errors::default();
        let failure = |kind| Failure::new(kind, "no");
        errors.failed(Page, &failure(FailureKind::ServerError), 1_000);
        for now_ms in [2_000, 4_000] {
            // Polls that succeed between say nothing of looks.
            errors.end(Poll);
            errors.failed(Page, &failure(FailureKind::WrongOrder), now_ms);
        }
        let error = errors.ongoing().expect("looks fail");
        assert_eq!(
            (error.count, error.since_ms, error.at_ms),
            (3, 1_000, 4_000)
        );
        assert!(!errors.polls_fail());
        errors.failed(Poll, &failure(FailureKind::Unauthorized), 5_000);
        assert!(errors.polls_fail());
        assert_eq!(errors.ongoing().map(|error| error.request), Some(Poll));
        errors.end(Poll);
        errors.end(Page);
        assert_eq!(errors.ongoing(), None);
        assert_eq!(errors.last().map(|error| error.at_ms), Some(5_000));
        errors.failed(Poll, &failure(FailureKind::TimedOut), 9_000);
        let error = errors.ongoing().expect("polls fail");
        assert_eq!(
            (error.count, error.since_ms),
            (1, 9_000),
            "a row of its own"
        );
    }

    #[test]
    fn neither_a_look_up_nor_a_stream_that_fails_is_an_error_of_the_source() {
        for request in [LookUp, Stream] {
            let mut errors = Errors::default();
            errors.failed(request, &Failure::new(FailureKind::NotFound, "no"), 1);
            assert_eq!(errors.ongoing(), None);
            assert_eq!(errors.last().map(|error| error.request), Some(request));
        }
    }
}
