//! Requests to an upstream and its answers, independent of HTTP.

use serde::{Deserialize, Serialize};

use crate::{post::Post, upstream_id::UpstreamId};

/// A request for one page of a timeline. All bounds are exclusive. The client of an upstream whose
/// `max_id` is inclusive (Twitter's v1.1) converts it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageRequest {
    /// Only posts above this ID, the newest first.
    pub since_id: Option<UpstreamId>,
    /// Only posts below this ID, the newest first.
    pub max_id: Option<UpstreamId>,
    /// The posts just above this ID. `since_id` and `max_id` must then be `None`.
    pub min_id: Option<UpstreamId>,
    /// The largest number of posts in the answer.
    pub limit: u16,
}

/// The abilities of an upstream's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// The largest number of posts in one page.
    pub page_limit: u16,
    /// True if it supports `min_id`.
    pub min_id: bool,
}

/// A page that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Its posts in the answer's order. The API promises newest first, which the timeline machine
    /// checks.
    pub listed: Vec<Listed>,
    /// The positions of listed items that are not posts or cannot be read, in the answer's order.
    /// An example is a follow among the notifications from which mentions are read. Like posts,
    /// they show the range of the page.
    pub passed: Vec<UpstreamId>,
    /// Items from which no post could be read. The known positions of such items are also in
    /// `passed`. An item without a position lies between its neighbours.
    pub unreadable: Vec<Unreadable>,
    /// The answer's headers, size and times.
    pub headers: AnswerHeaders,
}

/// The thread of a post, as a server shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    /// The posts to which it replies, the oldest first.
    pub ancestors: Vec<Post>,
    /// The replies to it, and the replies to these.
    pub descendants: Vec<Post>,
    /// The number of items from which no post could be read.
    pub unreadable: usize,
    /// The answer's headers, size and times.
    pub headers: AnswerHeaders,
}

/// A post and its position in the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The ID that determines the order and is used in bounds. It is the post's own ID, except if
    /// the timeline lists other entities with posts: a mention is listed by its notification's ID.
    pub position: UpstreamId,
    /// The post.
    pub post: Post,
}

/// An item of a page from which no post could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its position in the timeline, if that can be read.
    pub position: Option<UpstreamId>,
    /// The position of the item listed before it.
    pub above: Option<UpstreamId>,
    /// The position of the item listed after it.
    pub below: Option<UpstreamId>,
    /// The item as received.
    pub bytes: Vec<u8>,
    /// The reason, without secrets.
    pub reason: String,
}

/// The metadata of an answer: its headers, size and times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerHeaders {
    /// The time at which the request was sent, by the local clock, in Unix ms.
    pub sent_at_ms: i64,
    /// The time at which the answer was complete, by the local clock, in Unix ms.
    pub received_at_ms: i64,
    /// The time from sending to the answer's head, by a monotonic clock, in ms.
    pub round_trip_ms: i64,
    /// The `Date` header in Unix ms, which the sender rounds down to a second.
    pub date_ms: Option<i64>,
    /// The rate limit in the headers.
    pub throttle: Option<Throttle>,
    /// The size of the body as transferred or, if unknown, as decoded.
    pub body_bytes: u64,
    /// The limit that was sent, if it was smaller than the requested one.
    pub limit: Option<u16>,
}

/// A rate limit in an upstream's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// The number of requests in a window.
    pub limit: u32,
    /// The number of remaining requests in the window.
    pub remaining: u32,
    /// The latest end of the window, in Unix ms by the local clock.
    pub reset_at_ms: i64,
    /// The time by which it may end earlier, in ms: the duration of the answer, and the second to
    /// which its `Date` is exact. 0 if the end was not computed from a `Date`.
    #[serde(skip)]
    pub error_ms: i64,
}

/// The result of a look-up of one post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookUp {
    /// The current post.
    Found(Box<Post>),
    /// The upstream reports that the post does not exist (404 or 410). It is deleted, or hidden
    /// from this reader, or its look-ups do not know this ID.
    Gone,
    /// The upstream omits the post without an error, or reports that it is hidden from this reader.
    Hidden,
}

/// The results of a look-up of several posts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookUps {
    /// Each requested ID, once, with its result.
    pub findings: Vec<(UpstreamId, Finding)>,
    /// The answer's headers, size and times.
    pub headers: AnswerHeaders,
}

/// The result for one post of a look-up of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The current post.
    Found(Box<Post>),
    /// The answer omits the post without an error. It is deleted, or hidden from this reader.
    Missing,
    /// The upstream reports that the post does not exist.
    Gone,
    /// The upstream reports that the post is hidden from this reader.
    Hidden,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A post appeared in the timeline.
    Posted(Box<Post>),
    /// A post was edited. Contains the current version.
    Edited(Box<Post>),
    /// A post was deleted.
    Deleted(UpstreamId),
}

/// A request without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// The cause, the place and the remedy, without secrets.
    pub message: String,
    /// The rate limit in the headers, if any.
    pub throttle: Option<Throttle>,
    /// The wait that the upstream requests (`Retry-After`), in ms.
    pub retry_after_ms: Option<i64>,
}

impl Failure {
    /// A failure without headers.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            throttle: None,
            retry_after_ms: None,
        }
    }
}

named_enum! {
    /// The kinds of errors that a source reports.
    pub enum FailureKind: "snake_case" {
        /// The connection failed, or broke before an answer began.
        Unreachable,
        /// No answer arrived within the timeout.
        TimedOut,
        /// The certificate or the TLS handshake was rejected.
        Tls,
        /// The address resolves to a private network, which is not allowed.
        PrivateAddress,
        /// A redirect to another host, or too many redirects.
        Redirected,
        /// 401 or 403: the token is missing, invalid, or not sufficient.
        Unauthorized,
        /// 403 to a look-up: at least one of its posts is hidden from this reader, or all access is denied.
        Forbidden,
        /// 404 or 410: the timeline or the server does not exist.
        NotFound,
        /// 429.
        Throttled,
        /// The upstream's monthly cap on posts is exhausted.
        Capped,
        /// 5xx.
        ServerError,
        /// 400, 413, 414 or 422: the upstream rejected the request.
        Refused,
        /// Any other status.
        UnexpectedStatus,
        /// The body is not JSON, but for example an HTML page.
        NotJson,
        /// The body is JSON but not a list of posts.
        BadJson,
        /// The status is 200, but the body is an error object.
        ErrorBody,
        /// The body ended early.
        Truncated,
        /// The body is larger than the cap.
        TooLarge,
        /// A post has no usable ID, or another one than requested.
        BadId,
        /// The page's IDs are not in order, repeat, or lie outside the request's bounds. Such pages are
        /// read today; stores contain this kind from earlier versions.
        WrongOrder,
    }
}
