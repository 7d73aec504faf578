//! The observation of a post in an answer, and the context of an intake.

use std::borrow::Cow;

use driftline_core::{post::Post, refresh::Policy};

use crate::{mirror::entry, text::without_nul};

/// A post at its position in the source, as shown by an answer.
pub(crate) struct PostObservation<'a> {
    pub(crate) post: &'a Post,
    pub(crate) upstream_id: Cow<'a, str>,
    pub(crate) position: &'a str,
    /// The time in its position, in Unix ms, if there is one.
    pub(crate) position_ms: Option<i64>,
    /// True if it is history. The ID of a new entry then comes from its own time, and no
    /// notification follows.
    pub(crate) is_history: bool,
    /// The source's entry at this position.
    pub(crate) entry: Option<entry::KnownEntry>,
}

/// The context of observations.
#[derive(Clone, Copy)]
pub(crate) struct IntakeContext<'p> {
    /// The time of the request, in Unix ms by the local clock.
    pub(crate) asked_at_ms: i64,
    pub(crate) now_ms: i64,
    /// True if a stream and no page showed them. They then revive no post, because events may
    /// arrive out of order.
    pub(crate) streamed: bool,
    /// The policy for scheduling posts.
    pub(crate) policy: &'p Policy,
}

impl<'p> IntakeContext<'p> {
    /// The context of an answer to a request.
    pub(crate) fn answered(asked_at_ms: i64, now_ms: i64, policy: &'p Policy) -> Self {
        IntakeContext {
            asked_at_ms,
            now_ms,
            streamed: false,
            policy,
        }
    }
}

impl<'a> PostObservation<'a> {
    pub(crate) fn new(
        post: &'a Post,
        position: &'a str,
        position_ms: Option<i64>,
        entry: Option<entry::KnownEntry>,
    ) -> PostObservation<'a> {
        PostObservation {
            post,
            upstream_id: without_nul(post.id.as_str()),
            position,
            position_ms,
            is_history: false,
            entry,
        }
    }

    /// True if it may contain a change for the source's library.
    pub(crate) fn may_be_news(&self) -> bool {
        self.entry.as_ref().is_none_or(|entry| {
            entry.gone || entry.stale || entry.content_hash != self.post.hashes.content
        })
    }
}
