//! Requests to an upstream and its answers, apart from HTTP.

use serde::{Deserialize, Serialize};

use crate::{post::Post, upstream_id::UpstreamId};

/// One page of a timeline to ask for. All bounds are exclusive; a client of
/// an upstream whose `max_id` is inclusive (Twitter's v1.1) converts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageRequest {
    /// Only posts above this ID, the newest first.
    pub since_id: Option<UpstreamId>,
    /// Only posts below this ID, the newest first.
    pub max_id: Option<UpstreamId>,
    /// The posts just above this ID; with it `since_id` and
    /// `max_id` are not set.
    pub min_id: Option<UpstreamId>,
    /// The most posts to answer with.
    pub limit: u16,
}

/// What an upstream's timeline can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// The most posts that one page holds.
    pub page_limit: u16,
    /// Whether it supports `min_id`.
    pub min_id: bool,
}

/// A page that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Its posts in the answer's order: newest first by the API's contract,
    /// which the timeline machine checks.
    pub listed: Vec<Listed>,
    /// The positions of listed items that are not posts or cannot be read, in the answer's order:
    /// a follow among the notifications that mentions are read from. Like
    /// posts, they show how far the page reaches.
    pub passed: Vec<UpstreamId>,
    /// Items that no post could be read from. The known positions of such items are among
    /// `passed`; one without a position lies between its neighbours.
    pub unreadable: Vec<Unreadable>,
    /// The answer's headers, size and times.
    pub headers: AnswerHeaders,
}

/// The thread of a post that a server shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thread {
    /// What it replies to, the oldest first.
    pub ancestors: Vec<Post>,
    /// The replies to it, and to these.
    pub descendants: Vec<Post>,
    /// How many items no post could be read from.
    pub unreadable: usize,
    /// The answer's headers, size and times.
    pub headers: AnswerHeaders,
}

/// A post and its position in the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The ID that orders the timeline and that bounds name: the post's own,
    /// except where the timeline lists something around posts (a mention is
    /// listed by its notification's ID).
    pub position: UpstreamId,
    /// The post.
    pub post: Post,
}

/// An item of a page that no post could be read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Its position in the timeline, if so much can be read.
    pub position: Option<UpstreamId>,
    /// The position of the item listed before it.
    pub above: Option<UpstreamId>,
    /// The position of the item listed after it.
    pub below: Option<UpstreamId>,
    /// The item as it came.
    pub bytes: Vec<u8>,
    /// Why it cannot be read, without secrets.
    pub reason: String,
}

/// The metadata of an answer: its headers, size and times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnswerHeaders {
    /// When the request was sent, by the local clock, Unix ms.
    pub sent_at_ms: i64,
    /// When the answer was complete, by the local clock, Unix ms.
    pub received_at_ms: i64,
    /// From sending to the answer's head, by a monotonic clock, ms.
    pub round_trip_ms: i64,
    /// The `Date` header, Unix ms, floored to a second by the sender.
    pub date_ms: Option<i64>,
    /// The rate limit in the headers.
    pub throttle: Option<Throttle>,
    /// The body's size as it travelled or, when unknown, as it was decoded.
    pub body_bytes: u64,
    /// The limit that was sent, if it was a smaller one than was asked for.
    pub limit: Option<u16>,
}

/// A rate limit in an upstream's headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Requests in a window.
    pub limit: u32,
    /// Requests left in the window.
    pub remaining: u32,
    /// When the window ends at the latest, Unix ms by the local clock.
    pub reset_at_ms: i64,
    /// By how much it may end earlier, ms: the time that the answer took and the second to which its `Date` is
    /// exact. 0 if the end was not computed from a `Date`.
    #[serde(skip)]
    pub error_ms: i64,
}

/// The result of a look-up of one post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookUp {
    /// The current post.
    Found(Box<Post>),
    /// The upstream says that it does not exist (404 or 410): deleted, or
    /// hidden from this reader, or not known by this ID to its look-ups.
    Gone,
    /// The upstream leaves it out without an error, or says that it is hidden from this reader.
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
    /// The answer leaves it out without an error: it is deleted, or hidden from this reader.
    Missing,
    /// The upstream says that it does not exist.
    Gone,
    /// The upstream says that it is hidden from this reader.
    Hidden,
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A post appeared in the timeline.
    Posted(Box<Post>),
    /// A post was edited; the current version.
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
    /// The cause, the place and the remedy. Never holds a secret.
    pub message: String,
    /// The rate limit in the headers, if any.
    pub throttle: Option<Throttle>,
    /// How long the upstream asks to wait (`Retry-After`), ms.
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
        /// No connection, or it broke before an answer began.
        Unreachable,
        /// No answer came within the timeout.
        TimedOut,
        /// The certificate or the TLS handshake was refused.
        Tls,
        /// The address resolves to a private network, which is not allowed.
        PrivateAddress,
        /// A redirect to another host, or too many.
        Redirected,
        /// 401 or 403: the token is missing, wrong, or not allowed this.
        Unauthorized,
        /// 403 to a look-up: at least one of its posts is hidden from this reader, or all access is denied.
        Forbidden,
        /// 404 or 410: the timeline or the server does not exist.
        NotFound,
        /// 429.
        Throttled,
        /// The upstream's monthly cap on posts is used up.
        Capped,
        /// 5xx.
        ServerError,
        /// 400, 413, 414 or 422: the upstream rejected the request.
        Refused,
        /// Any other status.
        UnexpectedStatus,
        /// The body is not JSON (an HTML page, say).
        NotJson,
        /// The body is JSON but not a list of posts.
        BadJson,
        /// A 200 whose body is an error object.
        ErrorBody,
        /// The body ended early.
        Truncated,
        /// The body is larger than the cap.
        TooLarge,
        /// A post without a usable ID, or another than was asked for.
        BadId,
        /// The page's IDs are not in order, repeat, or lie outside the request's bounds. Such pages are
        /// read for what they show now; stores have it of earlier versions.
        WrongOrder,
    }
}
