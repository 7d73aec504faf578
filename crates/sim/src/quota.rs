//! The knobs of rate limits.

/// A rate limit: so many requests in each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleRule {
    /// Requests in a window.
    pub limit: u32,
    /// The window's length.
    pub window_ms: i64,
    /// Which requests count.
    pub counts: Counted,
    /// When windows begin. Default with the Unix epoch.
    pub windows: Windows,
    /// Requests that another user of the same budget sends in each window,
    /// evenly over its time. Default 0.
    pub others: u32,
    /// A lower limit from a time on. Default none.
    pub cut: Option<QuotaCut>,
}

impl ThrottleRule {
    /// A limit on all requests.
    pub const fn all(limit: u32, window_ms: i64) -> Self {
        Self::on(Counted::All, limit, window_ms)
    }

    /// A limit on requests with `since_id`, `max_id` or `min_id`.
    pub const fn paged(limit: u32, window_ms: i64) -> Self {
        Self::on(Counted::Paged, limit, window_ms)
    }

    /// A limit on the requests of some kind.
    pub const fn on(counts: Counted, limit: u32, window_ms: i64) -> Self {
        Self {
            limit,
            window_ms,
            counts,
            windows: Windows::Aligned,
            others: 0,
            cut: None,
        }
    }

    /// X's and Twitter's limit on one endpoint, in windows of 15 minutes that
    /// begin with the first request.
    pub const fn endpoint(endpoint: Endpoint, limit: u32) -> Self {
        Self {
            windows: Windows::FromFirst,
            ..Self::on(Counted::Endpoint(endpoint), limit, QUARTER_HOUR_MS)
        }
    }

    /// The limit at a time after the start.
    pub(crate) fn limit_at(&self, since_start_ms: i64) -> u32 {
        match self.cut {
            Some(cut) if cut.after_ms <= since_start_ms => cut.limit,
            _ => self.limit,
        }
    }
}

/// Which requests a throttle counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Every request.
    All,
    /// Requests with `since_id`, `max_id` or `min_id`.
    Paged,
    /// Those to one endpoint.
    Endpoint(Endpoint),
}

impl Counted {
    pub(crate) fn includes(self, asked: RequestKind) -> bool {
        match self {
            Self::All => true,
            Self::Paged => asked.paged,
            Self::Endpoint(endpoint) => endpoint == asked.endpoint,
        }
    }
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// The home timeline.
    Home,
    /// What one account wrote.
    User,
    /// Posts that name the reader.
    Mentions,
    /// A list.
    List,
    /// A public timeline or a tag's.
    Public,
    /// A look-up of one post.
    LookUp,
    /// A look-up of several posts, which is one request.
    LookUps,
    /// Who the token belongs to.
    Credentials,
}

/// What the faults know of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestKind {
    /// What it is for.
    pub endpoint: Endpoint,
    /// Whether it carries `since_id`, `max_id` or `min_id`.
    pub paged: bool,
}

impl RequestKind {
    /// A request without bounds.
    pub const fn plain(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            paged: false,
        }
    }
}

/// When a throttle's windows begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Windows {
    /// At whole multiples of their length since the Unix epoch (Mastodon).
    #[default]
    Aligned,
    /// With the first request after the last one ended (X and Twitter).
    FromFirst,
}

/// A limit that is lowered (or raised) while a server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaCut {
    /// From when on, ms after the world's start (a server's: after its own).
    pub after_ms: i64,
    /// The limit from then on.
    pub limit: u32,
}

/// A cap on the posts that X's version 2 gives out to all tokens together:
/// those under `data`, of timelines and look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostsCap {
    /// Posts in each period.
    pub posts: u64,
    /// The period's length from the server's start on: 30 days, say.
    pub period_ms: i64,
    /// Whether requests above it get 403; else 429.
    pub forbidden: bool,
}

/// The window of X's and Twitter's limits.
pub const QUARTER_HOUR_MS: i64 = 900_000;
