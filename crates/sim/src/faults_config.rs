//! The knobs of what goes wrong.

use std::collections::BTreeMap;

use driftline_core::upstream_id::UpstreamId;
use smart_default::SmartDefault;

use crate::{
    quota::{PostsCap, ThrottleRule},
    span::SpanMs,
    streams_config::StreamsConfig,
};

/// What goes wrong with answers. By default nothing does.
///
/// The shares are of requests, between 0 and 1; their sum should not pass 1.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct FaultsConfig {
    /// Rate limits, all obeyed at once. Default none.
    pub throttles: Vec<ThrottleRule>,
    /// The faults that come at random, each with its share. Default none.
    pub shares: BTreeMap<FaultKind, f64>,
    /// How far ahead a 429 without a used-up budget says that the window ends. Default 2 to 5 s.
    #[default(SpanMs::new(2_000, 5_000))]
    pub throttled_reset_ms: SpanMs,
    /// How long a stall holds the connection. Default 30 s.
    #[default(SpanMs::new(30_000, 30_000))]
    pub stall_ms: SpanMs,
    /// How late a delayed answer comes. Default 0.5 to 3 s.
    #[default(SpanMs::new(500, 3_000))]
    pub delay_ms: SpanMs,
    /// Faults that every request meets for a while. Default none.
    pub outages: Vec<Outage>,
    /// Faults that each token meets once. Default none.
    pub mishaps: Vec<Mishap>,
    /// Tokens that are refused with 401 from a time on; such requests count
    /// against no budget. Default none.
    pub revocations: Vec<Revocation>,
    /// Posts that some token, or any, may no longer see. Default none.
    pub hidings: Vec<Hiding>,
    /// IDs that spoil every look-up that names them, alone or among others.
    /// Default none.
    pub poison_ids: Vec<UpstreamId>,
    /// The share of all IDs that do so too. Default 0.
    pub poison_share: f64,
    /// What such a look-up is answered with. Default 500.
    #[default(PoisonAnswer::InternalError)]
    pub poison_answer: PoisonAnswer,
    /// A cap on the posts that X's version 2 gives out. Default none.
    pub posts_cap: Option<PostsCap>,
    /// What goes wrong with streams. Default nothing.
    pub streams: StreamsConfig,
    /// How far the front end's clock, which `Date` and the resets show, is
    /// ahead (negative: behind). Default 0.
    pub date_offset_ms: i64,
    /// Whether answers carry `Date`; over HTTP they always do. Default true.
    #[default(true)]
    pub date_header: bool,
    /// From sending a request to its answer, in virtual time only. Default
    /// 20 to 120 ms.
    #[default(SpanMs::new(20, 120))]
    pub round_trip_ms: SpanMs,
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// 429.
    Throttled,
    /// 500.
    InternalError,
    /// 502 with an HTML page.
    BadGateway,
    /// 503 with an HTML page.
    Unavailable,
    /// No answer, then a closed connection.
    Stall,
    /// A body that ends early.
    Cut,
    /// 200 with an HTML page.
    Html,
    /// 200 with an error object.
    ErrorObject,
    /// 200 with JSON that is no list of posts.
    BadJson,
    /// 200 with an empty list though there are posts.
    EmptyPage,
    /// The right answer, late.
    Delay,
    /// 401.
    Unauthorized,
    /// The request is counted and processed, then the connection breaks before anything of the
    /// answer comes.
    Lost,
}

/// A fault that every request meets for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When it begins, after the world's start.
    pub after_ms: i64,
    /// How long it lasts.
    pub for_ms: i64,
    /// What requests meet.
    pub fault: FaultKind,
}

/// A fault that each token's first request after a time meets, once. Of two
/// requests in a row only one meets a mishap, so that slow pollers live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mishap {
    /// From when on, after the world's start.
    pub after_ms: i64,
    /// What the request meets.
    pub fault: FaultKind,
}

/// A token that is refused from a time on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    /// The bearer token, or OAuth's `oauth_token`.
    pub token: String,
    /// From when on, ms after the world's start (a server's: after its own).
    pub after_ms: i64,
}

/// A post that is no longer shown: pages and look-ups of several leave it
/// out, a look-up of one finds nothing (X: that it is not allowed).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hiding {
    /// The post.
    pub id: UpstreamId,
    /// The token that may not see it; `None` hides it from every token.
    pub token: Option<String>,
    /// From when on, ms after the world's start (a server's: after its own).
    pub after_ms: i64,
}

/// What a look-up that names a poison ID is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoisonAnswer {
    /// 400.
    BadRequest,
    /// 422.
    Unprocessable,
    /// 500.
    InternalError,
    /// 403.
    Forbidden,
    /// Nothing for as long as a stall lasts, then a closed connection; in
    /// virtual time the connection is closed at once.
    Silence,
}
