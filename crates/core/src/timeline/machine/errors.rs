//! The errors of a source, consecutive ones counted, by the purpose of the request.

use serde::{Deserialize, Serialize};

use crate::answer::{Failure, FailureKind};

/// The current error of a source, or its last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// Its name.
    pub kind: FailureKind,
    /// The cause, the place and the remedy.
    pub message: String,
    /// The purpose of the request.
    pub request: FailedRequest,
    /// The time of its last occurrence, in Unix ms.
    pub at_ms: i64,
    /// The number of consecutive failed requests of this purpose, with failures of any kind.
    pub count: u32,
    /// The time of the first of them, in Unix ms.
    pub since_ms: i64,
    /// True if a later request of its kind succeeded.
    pub over: bool,
    /// The wait that the server requested the last time (`Retry-After`), in ms. `None` if it did
    /// not, or once it answered otherwise.
    pub retry_after_ms: Option<i64>,
}

/// The purpose of a failed request.
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

/// The last error of each purpose. A successful poll does not end the error of failing looks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Errors {
    poll: Option<LastError>,
    page: Option<LastError>,
    look_up: Option<LastError>,
    stream: Option<LastError>,
}

impl Errors {
    /// Records a failed request at `now_ms`, in Unix ms.
    pub(super) fn failed(&mut self, request: FailedRequest, failure: &Failure, now_ms: i64) {
        let last = self.slot(request);
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

    /// Visits each of its past times by the local clock.
    pub(super) fn each_local_time(&mut self, visit: &mut impl FnMut(&mut i64)) {
        let requests = [&mut self.poll, &mut self.page, &mut self.look_up];
        for error in requests.into_iter().chain([&mut self.stream]).flatten() {
            visit(&mut error.at_ms);
            visit(&mut error.since_ms);
        }
    }

    /// Records that a request succeeded, or is no longer due.
    pub(super) fn end(&mut self, request: FailedRequest) {
        if let Some(error) = self.slot(request) {
            error.over = true;
        }
    }

    /// Ends the wait that the server requested.
    pub(super) fn end_wait(&mut self) {
        for error in self.poll.iter_mut().chain(&mut self.page) {
            error.retry_after_ms = None;
        }
    }

    /// The ongoing error of the source: of its polls, otherwise of its other pages. Failed look-ups
    /// of posts are not errors of the source.
    pub(super) fn ongoing(&self) -> Option<&LastError> {
        let pages = self.poll.iter().chain(&self.page);
        pages.into_iter().find(|error| !error.over)
    }

    /// The ongoing error, otherwise the latest one.
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

    /// True if the last poll failed.
    pub(super) fn polls_fail(&self) -> bool {
        self.poll.as_ref().is_some_and(|error| !error.over)
    }

    fn slot(&mut self, request: FailedRequest) -> &mut Option<LastError> {
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
            // Successful polls in between do not concern looks.
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
